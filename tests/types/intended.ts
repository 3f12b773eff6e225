// Intended uses of the package's types, which must type-check, and misuses, which must not. Never run.

import {
  type ArrayOf,
  type BufferLoc,
  type BlockRanges,
  type Code,
  type CompileIn,
  type CompileOptions,
  type Compaction,
  type Context,
  Device,
  type DeviceEvent,
  type DeviceLostInfo,
  type Diagnostic,
  type DebugInfo,
  type ErrorCode,
  type Forecast,
  KernelError,
  type MemoryReport,
  NotationError,
  type OptimizeCtx,
  type Program,
  type ProgramSpec,
  type Routine,
  Sequence,
  type StaticProperties,
  type TensorNode,
  WgslabError,
  globalDebugInfo,
} from "wgslab";
import * as backend from "wgslab/low-level";

/** Compiles only when `T` is exactly `Want`. */
type Exactly<T, Want> = [T, Want] extends [Want, T] ? true : never;
function exactly<T, Want>(_proof: Exactly<T, Want>): void {}

export async function quickstart(signal: AbortSignal): Promise<Float32Array> {
  using device = await Device.open({ driver: "gpu", limits: "adapter", powerPreference: "high-performance", signal });
  const x = device.node("x", { dtype: "f32", shape: [1024] });
  const y = device.node("y", { dtype: "f32", shape: [1024], mode: "on_device" });
  using root = device.context();
  using loaded = root.upload(x, new Float32Array(1024).fill(2));
  using code = await device.compile("scale", "…", {
    tensors: { x: { node: x, access: "read" }, y: { node: y, access: "write" } },
    statics: ["step"],
    grid: [16],
    signal,
  });
  using step = await loaded.link(code, { signal });
  const done: DeviceEvent = step.run({ step: 3 });
  const isDone: boolean = done.isDone;
  exactly<typeof done.completed, Promise<void>>(true);
  await done.completed;
  if (isDone) await device.awaitIdle({ signal });
  return step.context.readback(y, { signal, into: new Float32Array(1024) });
}

export async function everyDtypeHasItsArray(device: Device, context: Context): Promise<void> {
  const node = device.node("n", { dtype: "bool", shape: [2, 3] });
  exactly<typeof node, TensorNode<"bool">>(true);
  const bits = await context.readback(node);
  exactly<typeof bits, Uint8Array>(true);
  exactly<ArrayOf<"f16">, Uint16Array>(true);
  const half = device.node("h", { dtype: "bf16", shape: [] });
  const word = device.node("w", { dtype: "i32", shape: [1] });
  const [halves, words, named] = await context.readbackAll([half, word, "label"]);
  exactly<typeof halves, Uint16Array>(true);
  exactly<typeof words, Int32Array>(true);
  const length: number = named.length;
  context.uploadAll([[half, new Uint16Array(1)], [word, Int32Array.of(length)]]).zeros([node]).dispose();
}

export async function everythingHasAType(device: Device, context: Context, code: Code): Promise<void> {
  const node = context.node("n", { dtype: "u32", shape: [4] });
  const loc: BufferLoc | undefined = context.loc(node);
  const routine: Routine = await context.link(code);
  const names: readonly string[] = [...routine.statics, ...routine.inputs, ...routine.outputs, routine.explain(), code.explain()];
  const lost: DeviceLostInfo = await device.lost;
  const report: MemoryReport = device.report();
  const [pool] = report.pools;
  const bytes: number = (pool?.sizeBytes ?? 0) + report.reservedBytes + (loc?.offset ?? 0);
  const written: DeviceEvent[] = [
    context.write(node, Uint32Array.of(1), { offset: bytes }),
    context.zero(node, { offset: 1, length: 2 }),
    device.allWork(),
  ];
  await Promise.all(written.map((event) => event.completed));
  device.compile("list", names.join(), { tensors: [{ node, access: "atomic", name: "counter" }], grid: [1, 2, 3] });
  console.log(lost.reason, device.limits.segmentCapBytes, device.adapter.name, device.stats().submissions);
}

export async function programsHaveATypeToo(device: Device, context: Context, signal: AbortSignal): Promise<void> {
  const x = device.node("x", { dtype: "f32", shape: [4] });
  const code: Code = await device.compile("double", "y[i] = 2 * x[i]", { nodes: [x], outputs: ["y"], signal });
  await device.compile("alone", "q: f32[2]; q[i] = 1");
  const spec: ProgramSpec = { nodes: code.nodes };
  const program: Program = { name: "next", program: "z[i] = y[i]", spec };
  const kernel = { name: "k", wgsl: "…", spec: { tensors: [], grid: [1] as const } };
  const next: CompileIn[] = [context, code, context.optimizeCtx, code.optimizeCtx];
  const options: CompileOptions = { in: context, signal };
  await device.compile("behind", "z[i] = t[i]", { nodes: [x], in: code, outputs: ["z"] });
  for (const one of next) await device.compile("kernel", "…", { tensors: [], grid: [1], in: one });
  await device.compileBatch([{ name: "p", program: "…" }], options);
  const known: OptimizeCtx = context.optimizeCtx;
  const virtuals: readonly TensorNode[] = known.nodes;
  console.log(virtuals.length === known.size);
  const codes: Code[] = await device.compileBatch([program, kernel, { name: "alone", program: "q: f32[2]; q[i] = 1" }]);
  const y: TensorNode = code.node("y");
  exactly<typeof code.nodes, Readonly<Record<string, TensorNode>>>(true);
  using step = await context.link(code);
  const done: DeviceEvent = step.run({ batch: 3 });
  console.log(codes, y, done.isDone);
}

export async function theRestHasATypeToo(device: Device, context: Context, code: Code, other: Context): Promise<void> {
  const node = context.node("n", { dtype: "f16", shape: [4, 2] });
  const view = node.view("row", { offset: 2, shape: [2] });
  exactly<typeof view, TensorNode<"f16">>(true);
  exactly<typeof node.mode, "on_device" | "constant" | "local" | "virtual">(true);
  const whole: TensorNode<"f16"> | undefined = view.base?.node;
  using viewed = context.alias([view]);
  const codes: Code[] = await device.compileBatch([{ name: "k", wgsl: "…", spec: { tensors: [], grid: [1] } }], {});
  const [first, second]: Routine[] = await viewed.linkBatch(codes, { signal: AbortSignal.timeout(5) });
  if (!first || !second || !whole) return;
  const deps: readonly { id: number; name: string }[] = second.executionDeps;
  const isReady: boolean = second.canRun && deps.length === first.id;
  using sequence: Sequence = Sequence.record([first, [second], [second, { step: 1 }]]);
  const replayed: DeviceEvent = sequence.run({ times: sequence.length, statics: (replay, _name, recorded) => replay + recorded });
  const copy: Routine | undefined = context.deviceToDevice(node, other, { into: "merge-buffer" });
  const merged: TensorNode | undefined = copy?.context.mergeBufferNode ?? first.mergeBufferInput;
  await device.compile("m", "…", { tensors: { n: { node, access: "read", merged: isReady } }, grid: [1] });
  const forecast: Forecast = context.forecast(code);
  const arrived: DeviceEvent = await context.copyFrom(node, other, { into: "node" });
  const children: Context[] = [context.initFromDevice(node, other), await context.initFromOther(node, other)];
  context.willWaitFor(arrived);
  node.refineMode("constant");
  const writer: DeviceEvent | undefined = device.updatingFor(node);
  const numbers: number[] = [device.trim(), forecast.sizeBytes, arrived.seq, replayed.seq, node.id, children.length];
  const words: readonly string[] = [...device.undisposed, ...code.statics, String(merged), String(writer?.isDone)];
  console.log(numbers, words, code.device === device, second.code === code);
}

export async function blocksAndDevicesHaveATypeToo(device: Device, context: Context): Promise<void> {
  const node = device.node("m", { dtype: "i8", shape: [4, 6, 2] });
  const ranges: BlockRanges = [1, [0, 4, 2], null];
  const written: DeviceEvent = context.writeBlock(node, ranges, new Int8Array(4));
  const copied: DeviceEvent = context.copyBlock(node, ranges, node, [0, [2, 4], null]);
  const block = await context.readBlock(node, ranges, { signal: AbortSignal.timeout(5) });
  exactly<typeof block, Int8Array>(true);
  const { movedBytes, freedBytes }: Compaction = device.compact();
  const state: DebugInfo = device.debugInfo();
  const states: DebugInfo[] = [...globalDebugInfo(), state, backend.getDebugInfo(device), ...backend.getGlobalDebugInfo()];
  const [first]: StaticProperties[] = await Device.staticProperties({ driver: "gpu" });
  const count: number = (await Device.count()) + (await backend.numDevices("host"));
  const shared: Device[] = [await Device.get(), await Device.get(first?.ordinal, { driver: "host" })];
  shared.push(await backend.getDevice("host", 0, { wasm: "wgslab.wasm" }));
  const numbers = [movedBytes, freedBytes, count, device.usedMemory, backend.getUsedMemory(device), state.memory.peakBytes];
  console.log(written.seq, copied.seq, numbers, states, shared, await backend.staticProperties("host"));
}

export async function compilersDriveIt(gpu: GPUDevice, node: TensorNode): Promise<void> {
  using device: Device = await backend.makeDevice(gpu, 1);
  using same = await Device.open({ device: gpu, ordinal: 2 });
  backend.allocPool(device, 7, 1024, 256, "constant");
  const event: DeviceEvent = backend.memsetZero(device, 7, 0, 1024);
  const ctxBuffers = new Map([[node, { poolId: 7, offset: 0 }]]);
  const context: Context = backend.makeContext(device, { ctxBuffers, optimizeCtx: backend.emptyOptimizeCtx() });
  const child: Context = backend.makeChild(context, { ctxBuffers: [[node, { poolId: 7, offset: 256 }]], mergeBufferNode: null });
  const at = backend.resolvePool(device, { poolId: 7, offset: 0 });
  if ("buffer" in at) console.log(at.buffer.size, at.offset);
  else console.log(at.poolId, at.offset);
  const map: Map<TensorNode, BufferLoc> = backend.ctxBuffers(child);
  const cache: Map<number, BufferLoc> = backend.constantBufferCache(same);
  const record = [backend.ordinal(device), backend.deviceId(device), backend.nextPoolId(device), backend.poolSizeBytes(device, 7)];
  exactly<typeof record, number[]>(true);
  const held: { node: TensorNode; loc: BufferLoc } | undefined = backend.mergeBuffer(device);
  const known: backend.OptimizeCtx = backend.optimizeCtx(context);
  const code: Code = await backend.compile(device, known, "p", "y[i] = x[i]", { nodes: [node], outputs: ["y"] });
  const kernel: Code = await backend.compile(device, backend.optimizeCtx(code), "k", "…", { tensors: [], grid: [1] });
  const codes: Code[] = await backend.compileBatch(device, known, [{ name: "p", program: "…" }], { signal: AbortSignal.timeout(5) });
  const behind: Context = backend.makeChild(child, { optimizeCtx: codes[0]?.optimizeCtx ?? kernel.optimizeCtx });
  const words: string[] = [known, backend.dev(device), backend.runner(device)].map((value) => backend.describe(value));
  console.log(words, backend.optimizeCtx(behind).size);
  console.log(event, map, cache, held, backend.runner(device).isIdle, backend.finalized(child), backend.parent(child));
}

export function errorsSayWhatToDo(error: unknown): string {
  if (error instanceof KernelError) {
    const [first]: readonly Diagnostic[] = error.diagnostics;
    return `${first?.line}:${first?.column} ${first?.excerpt}`;
  }
  if (error instanceof NotationError) {
    const [, other]: readonly Diagnostic[] = error.diagnostics;
    return `${error.line}:${error.column} ${error.excerpt} ${other?.line}`;
  }
  if (error instanceof WgslabError) {
    const code: ErrorCode = error.code;
    switch (code) {
      case "out-of-memory":
        return error.retryable ? "free something" : "too large";
      case "device-lost":
        return "open it anew";
      default:
        return code;
    }
  }
  return String(error);
}

export async function misuses(device: Device, context: Context, code: Code, error: WgslabError): Promise<void> {
  const f = device.node("f", { dtype: "f32", shape: [4] });
  // @ts-expect-error a dtype that there is not
  device.node("d", { dtype: "f64", shape: [4] });
  // @ts-expect-error a node without a shape
  device.node("d", { dtype: "f32" });
  // @ts-expect-error the wrong array for the dtype
  context.upload(f, new Int32Array(4));
  // @ts-expect-error plain arrays are not typed arrays
  context.upload(f, [1, 2, 3, 4]);
  // @ts-expect-error the wrong array to read into
  await context.readback(f, { into: new Float64Array(4) });
  // @ts-expect-error an access that there is not
  await device.compile("k", "", { tensors: { f: { node: f, access: "readwrite" } }, grid: [1] });
  // @ts-expect-error a kernel without a grid
  await device.compile("k", "", { tensors: { f: { node: f, access: "read" } } });
  // @ts-expect-error a kernel or a program
  await device.compile("k", "", { tensors: {}, grid: [1], nodes: [f] });
  // @ts-expect-error an option that there is not
  await device.compile("p", "", { node: [f] });
  // @ts-expect-error labels are no nodes
  await device.compile("p", "", { nodes: ["f"] });
  // @ts-expect-error outputs are names
  await device.compile("p", "", { outputs: [f] });
  // @ts-expect-error a batch item without a text
  await device.compileBatch([{ name: "p" }]);
  // @ts-expect-error the nodes of a code are read-only
  code.nodes.x = f;
  // @ts-expect-error a static that is no number
  (await context.link(code)).run({ step: "3" });
  // @ts-expect-error an event is no promise: await its `completed`
  const then: unknown = (await context.link(code)).run().then;
  // @ts-expect-error a driver that there is not
  await Device.open({ driver: "cuda" });
  // @ts-expect-error devices are opened, not constructed
  new Device();
  // @ts-expect-error a code that there is not
  const typo: boolean = error.code === "out-of-memroy";
  // @ts-expect-error reports are read-only
  device.report().reservedBytes = 0;
  // @ts-expect-error a view has the dtype of its base
  f.view("v", { dtype: "i32", shape: [1] });
  // @ts-expect-error a memory mode that there is not
  f.refineMode("fast");
  // @ts-expect-error an event, not its promise
  context.willWaitFor(context.zero(f).completed);
  // @ts-expect-error the wrong array for the dtype of a block
  context.writeBlock(f, [[0, 2]], new Int32Array(2));
  // @ts-expect-error an axis has a start, an end and a step
  await context.readBlock(f, [[0, 4, 1, 2]]);
  // @ts-expect-error a driver that there is not
  await Device.get(0, { driver: "cuda" });
  // @ts-expect-error a view without a shape
  f.view("v", { offset: 1 });
  // @ts-expect-error a landing that there is not
  context.deviceToDevice(f, context, { into: "heap" });
  // @ts-expect-error there may be nothing to copy
  context.deviceToDevice(f, context).run();
  // @ts-expect-error the signal of a batch is its own
  await device.compileBatch([{ name: "k", wgsl: "", spec: { tensors: [], grid: [1], signal: AbortSignal.timeout(1) } }]);
  // @ts-expect-error what a batch is compiled in is its own
  await device.compileBatch([{ name: "p", program: "", spec: { in: context } }]);
  // @ts-expect-error a program is compiled in a context, or in a code
  await device.compile("p", "", { in: f });
  // @ts-expect-error optimization contexts are given, not made up
  await backend.compile(device, { size: 0, nodes: [] }, "p", "");
  // @ts-expect-error nodes are no optimization context
  backend.makeChild(context, { optimizeCtx: [f] });
  // @ts-expect-error a context is no optimization context
  backend.makeContext(device, { optimizeCtx: context });
  // @ts-expect-error what is known is read-only
  context.optimizeCtx.nodes.push(f);
  // @ts-expect-error a batch of texts
  await context.linkBatch(["k"]);
  // @ts-expect-error a static that is no number
  Sequence.record([[await context.link(code), { step: "3" }]]);
  // @ts-expect-error sequences are recorded, not constructed
  new Sequence();
  // @ts-expect-error copies across devices take time
  const child: Context = context.initFromOther(f, context);
  // @ts-expect-error what is remembered is read-only
  device.undisposed.push("x");
  // @ts-expect-error a pool's id is a number
  backend.allocPool(device, "p1", 256, 256);
  // @ts-expect-error a location has two parts
  backend.makeContext(device, { ctxBuffers: [[f, { poolId: 1 }]] });
  // @ts-expect-error a device is opened around a GPUDevice, not an adapter
  await backend.makeDevice({} as GPUAdapter);
  console.log(child);
  // @ts-expect-error the handle behind a node is no part of the package
  const raw: unknown = f.raw;
  console.log(then, typo, raw);
}
