// Models in the format of ONNX, made here: protocol buffers of the few messages that a small graph needs.
// Field numbers: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto

/** The version of the operators of ONNX: layer normalisation came with 17, and 21 is what all of the web runtime knows. */
const OPSET = 21;
const IR_VERSION = 10;
/** Operators of onnxruntime's own. */
const MICROSOFT = "com.microsoft";

const DATA_TYPES = { f32: 1, i32: 6, i64: 7 } as const;
type ElementType = keyof typeof DATA_TYPES;

/** A tensor that goes in or out. */
export interface Value {
  name: string;
  dtype?: ElementType;
  shape: readonly number[];
}

/** A tensor in the model. */
export interface Initializer extends Value {
  data: Float32Array | BigInt64Array;
}

/** One operator. A whole attribute is an integer, another number a float. */
export interface Operator {
  op: string;
  inputs: readonly string[];
  outputs: readonly string[];
  attributes?: Readonly<Record<string, number | readonly number[] | { float: number }>>;
  /** Whether it is one of onnxruntime's own. */
  own?: boolean;
}

/** A graph. */
export interface Graph {
  inputs: readonly Value[];
  outputs: readonly Value[];
  operators: readonly Operator[];
  initializers?: readonly Initializer[];
}

/** The bytes of a model. */
export function model({ inputs, outputs, operators, initializers = [] }: Graph): Uint8Array {
  const graph = [
    ...operators.map((operator, index) => field(1, node(operator, index))),
    field(2, text("bench")),
    ...initializers.map((one) => field(5, tensor(one))),
    ...inputs.map((value) => field(11, valueInfo(value))),
    ...outputs.map((value) => field(12, valueInfo(value))),
  ].flat();
  const opset = (domain: string, version: number) => field(8, [...field(1, text(domain)), ...number(2, version)]);
  return Uint8Array.from([...number(1, IR_VERSION), ...opset("", OPSET), ...opset(MICROSOFT, 1), ...field(7, graph)]);
}

function node({ op, inputs, outputs, attributes = {}, own = false }: Operator, index: number): number[] {
  return [
    ...inputs.flatMap((name) => field(1, text(name))),
    ...outputs.flatMap((name) => field(2, text(name))),
    ...field(3, text(`${op}_${index}`)),
    ...field(4, text(op)),
    ...Object.entries(attributes).flatMap(([name, value]) => field(5, attribute(name, value))),
    ...(own ? field(7, text(MICROSOFT)) : []),
  ];
}

function attribute(name: string, value: number | readonly number[] | { float: number }): number[] {
  const [FLOAT, INT, INTS] = [1, 2, 7];
  const head = field(1, text(name));
  if (typeof value === "number") return [...head, ...number(3, value), ...number(20, INT)];
  if ("float" in value) return [...head, ...float(2, value.float), ...number(20, FLOAT)];
  return [...head, ...value.flatMap((one) => number(8, one)), ...number(20, INTS)];
}

function tensor({ name, dtype = "f32", shape, data }: Initializer): number[] {
  return [
    ...shape.flatMap((extent) => number(1, extent)),
    ...number(2, DATA_TYPES[dtype]),
    ...field(8, text(name)),
    ...field(9, Array.from(new Uint8Array(data.buffer, data.byteOffset, data.byteLength))),
  ];
}

function valueInfo({ name, dtype = "f32", shape }: Value): number[] {
  const dims = shape.flatMap((extent) => field(1, number(1, extent)));
  const tensorType = [...number(1, DATA_TYPES[dtype]), ...field(2, dims)];
  return [...field(1, text(name)), ...field(2, field(1, tensorType))];
}

function field(id: number, body: readonly number[]): number[] {
  return [...varint((id << 3) | 2), ...varint(body.length), ...body];
}

function number(id: number, value: number): number[] {
  return [...varint(id << 3), ...varint(value)];
}

function float(id: number, value: number): number[] {
  return [...varint((id << 3) | 5), ...new Uint8Array(Float32Array.of(value).buffer)];
}

/** Seven bits a byte, the lowest first; negative ones as 64 bits in two's complement. */
function varint(value: number): number[] {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes = [];
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  return [...bytes, Number(rest)];
}

function text(value: string): number[] {
  return Array.from(new TextEncoder().encode(value));
}
