// Values as a picture, one cell a pixel, and as numbers.

type Color = readonly [red: number, green: number, blue: number];

// Dark to light for values of one sign (after viridis, by S. van der Walt and N. Smith, CC0); two colors around the middle
// for values of both.
const SCALE: readonly Color[] = [[46, 22, 82], [52, 73, 137], [33, 131, 141], [85, 188, 107], [244, 227, 74]];
const BELOW: Color = [47, 111, 237];
const MIDDLE: Color = [240, 240, 238];
const ABOVE: Color = [222, 92, 40];
const NOT_FINITE: Color = [120, 120, 126];

// Heads, channels and such stand side by side.
const GAP = 2;
const MOST_PLANES = 8;
const MOST_SIDE = 1024;
const BAR_HEIGHT = 48;

function mix(from: Color, to: Color, share: number): Color {
  return from.map((part, at) => part + ((to[at] as number) - part) * share) as unknown as Color;
}

/** The color of a value between the smallest and the largest. */
function colorOf(value: number, least: number, most: number): Color {
  if (!Number.isFinite(value)) return NOT_FINITE;
  if (least < 0 && most > 0) {
    const share = value / Math.max(most, -least);
    return mix(MIDDLE, share < 0 ? BELOW : ABOVE, Math.abs(share));
  }
  const share = most > least ? (value - least) / (most - least) : 0;
  const at = share * (SCALE.length - 1);
  const index = Math.min(Math.floor(at), SCALE.length - 2);
  return mix(SCALE[index] as Color, SCALE[index + 1] as Color, at - index);
}

/** The smallest and the largest finite value; 0 and 0 where there is none. */
export function range(values: Float64Array): [least: number, most: number] {
  let [least, most] = [Infinity, -Infinity];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < least) least = value;
    if (value > most) most = value;
  }
  return least <= most ? [least, most] : [0, 0];
}

/**
 * Draws values of a shape: the last two axes are rows and columns, those before stand side by side; one axis alone is bars.
 * False where there is nothing to see: a single value, or none.
 */
export function draw(canvas: HTMLCanvasElement, shape: readonly number[], values: Float64Array): boolean {
  if (values.length < 2) return false;
  const columns = Math.min(shape.at(-1) ?? 1, MOST_SIDE);
  if (shape.length === 1) {
    drawBars(canvas, values.subarray(0, columns));
    return true;
  }
  const [stride, rows] = [shape.at(-1) as number, Math.min(shape.at(-2) as number, MOST_SIDE)];
  const plane = stride * (shape.at(-2) as number);
  const planes = Math.min(values.length / plane, MOST_PLANES);
  canvas.width = planes * (columns + GAP) - GAP;
  canvas.height = rows;
  const image = new ImageData(canvas.width, canvas.height);
  const [least, most] = range(values);
  for (let at = 0; at < planes * rows * columns; at += 1) {
    const [column, row, which] = [at % columns, Math.floor(at / columns) % rows, Math.floor(at / columns / rows)];
    const color = colorOf(values[which * plane + row * stride + column] as number, least, most);
    image.data.set([...color, 255], 4 * (row * canvas.width + which * (columns + GAP) + column));
  }
  canvas.getContext("2d")?.putImageData(image, 0, 0);
  return true;
}

function drawBars(canvas: HTMLCanvasElement, values: Float64Array): void {
  canvas.width = values.length;
  canvas.height = BAR_HEIGHT;
  const [least, most] = range(values);
  const [low, high] = [Math.min(least, 0), Math.max(most, 0)];
  const y = (value: number): number => Math.round(((high - value) / (high - low || 1)) * BAR_HEIGHT);
  const pen = canvas.getContext("2d");
  if (!pen) return;
  for (const [at, value] of values.entries()) {
    const [top, bottom] = [y(Math.max(value, 0)), y(Math.min(value, 0))];
    pen.fillStyle = `rgb(${(value < 0 ? ABOVE : BELOW).join()})`;
    if (Number.isFinite(value)) pen.fillRect(at, top, 1, Math.max(bottom - top, 1));
  }
}

const MOST_NUMBERS = [6, 6] as const;

/** The first rows and columns as text. */
export function numbers(shape: readonly number[], values: Float64Array): string {
  if (values.length === 0) return "no elements";
  const [columns, rows] = [shape.at(-1) ?? 1, shape.at(-2) ?? 1];
  const shown = Array.from({ length: Math.min(rows, MOST_NUMBERS[0]) }, (_, row) =>
    Array.from({ length: Math.min(columns, MOST_NUMBERS[1]) }, (_, column) => word(values[row * columns + column] as number)),
  );
  const width = Math.max(...shown.flat().map(({ length }) => length));
  const lines = shown.map((cells) => {
    return cells.map((cell) => cell.padStart(width)).join("  ") + (columns > MOST_NUMBERS[1] ? "  …" : "");
  });
  return [...lines, ...(values.length / columns > lines.length ? ["…"] : [])].join("\n");
}

function word(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return String(value);
  return Number.isFinite(value) ? value.toPrecision(4) : String(value);
}
