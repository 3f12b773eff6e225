// Loss curves, drawn by uPlot.

import uPlot from "uplot";
import type { Side } from "./two-devices.ts";

const HEIGHT = 280;
const LINES = [0.01, 0.03, 0.1, 0.3, 1, 3];

/** What a plot shows. */
interface Content {
  steps: number;
  /** The losses at the ends of their axis, which is logarithmic. */
  range: [least: number, most: number];
  /** The curves; `color` gives the colour of that name in the style. */
  series: (color: (name: string) => string) => uPlot.Series[];
  data: () => uPlot.AlignedData;
}

/** Losses over steps, at the width of its element and in the colours of the style. */
class LossPlot {
  readonly #host: HTMLElement;
  readonly #content: Content;
  #plot: uPlot | undefined;

  constructor(host: HTMLElement, content: Content) {
    this.#host = host;
    this.#content = content;
    new ResizeObserver(() => this.#plot?.setSize({ width: host.clientWidth, height: HEIGHT })).observe(host);
    // A canvas has the colours it was drawn with.
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.draw();
  }

  /** Shows the data as they are now. */
  update(label: string): void {
    this.#plot?.setData(this.#content.data());
    this.#host.ariaLabel = label;
  }

  /** Draws anew. */
  draw(): void {
    this.#plot?.destroy();
    const { steps, range, series, data } = this.#content;
    const style = getComputedStyle(this.#host);
    const color = (name: string): string => style.getPropertyValue(name).trim();
    const axis: uPlot.Axis = {
      stroke: color("--muted"),
      font: `12px ${style.fontFamily}`,
      grid: { stroke: color("--line"), width: 1 },
      ticks: { show: false },
    };
    this.#plot = new uPlot(
      {
        width: this.#host.clientWidth,
        height: HEIGHT,
        padding: [8, 8, 0, 0],
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: false, range: () => [0, steps] }, y: { distr: 3, range: () => range } },
        axes: [
          { ...axis, grid: { show: false }, size: 28 },
          {
            ...axis,
            size: 44,
            splits: () => LINES.filter((line) => line > range[0] && line < range[1]),
            values: (_, splits) => splits.map((value) => String(value ?? "")),
          },
        ],
        series: [{}, ...series(color)],
      },
      data(),
      this.#host,
    );
  }
}

/** The loss of every step, and its mean over each epoch; the axis of losses is logarithmic. */
export class LossChart {
  readonly #plot: LossPlot;
  readonly #steps: number;
  readonly #stepsPerEpoch: number;
  #losses: number[] = [];

  constructor(host: HTMLElement, steps: number, stepsPerEpoch: number) {
    this.#steps = steps;
    this.#stepsPerEpoch = stepsPerEpoch;
    this.#plot = new LossPlot(host, {
      steps,
      range: [0.005, 5],
      series: (color) => [
        { stroke: color("--accent-soft"), width: 1, points: { show: false } },
        { stroke: color("--accent"), width: 2.5, spanGaps: true, points: { show: false } },
      ],
      data: () => this.#data(),
    });
  }

  /** Starts anew. */
  reset(): void {
    this.#losses = [];
    this.#plot.draw();
  }

  /** Adds the losses of the next steps. */
  add(losses: Float32Array): void {
    this.#losses.push(...losses);
    const last = this.#losses.at(-1)?.toPrecision(3);
    this.#plot.update(
      `Loss curve: ${this.#losses.length} of ${this.#steps} steps, from ${this.#losses[0]?.toPrecision(3)} to ${last}`,
    );
  }

  #data(): uPlot.AlignedData {
    const steps = this.#losses.map((_, step) => step + 1);
    const means = steps.map((_, step) => this.#meanUpTo(step));
    return [steps, this.#losses, means];
  }

  /** The mean of the epoch that ends with this step; null within an epoch, where no point is drawn. */
  #meanUpTo(step: number): number | null {
    if ((step + 1) % this.#stepsPerEpoch !== 0) return null;
    const epoch = this.#losses.slice(step + 1 - this.#stepsPerEpoch, step + 1);
    return epoch.reduce((sum, loss) => sum + loss, 0) / epoch.length;
  }
}

/** The losses of two trainings of the same steps: a broad line, and a thin one that may cover it. */
export class PairChart {
  readonly #plot: LossPlot;
  readonly #steps: number;
  #losses: Record<Side, number[]> = { two: [], joined: [] };

  constructor(host: HTMLElement, steps: number) {
    this.#steps = steps;
    this.#plot = new LossPlot(host, {
      steps,
      range: [0.05, 5],
      series: (color) => [
        { stroke: color("--accent-soft"), width: 7, points: { show: false } },
        { stroke: color("--accent"), width: 2, points: { show: false } },
      ],
      data: () => this.#data(),
    });
  }

  /** Starts anew. */
  reset(): void {
    this.#losses = { two: [], joined: [] };
    this.#plot.draw();
  }

  /** Adds the losses of the next steps of one of them. */
  add(side: Side, losses: Float32Array): void {
    this.#losses[side].push(...losses);
    const told = (side: Side): string => `${this.#losses[side].length} of ${this.#steps} steps`;
    this.#plot.update(`Loss curves: two devices ${told("two")}, one device ${told("joined")}`);
  }

  #data(): uPlot.AlignedData {
    const { two, joined } = this.#losses;
    const steps = Array.from({ length: Math.max(two.length, joined.length) }, (_, step) => step + 1);
    const filled = (losses: number[]): (number | null)[] => steps.map((_, step) => losses[step] ?? null);
    return [steps, filled(joined), filled(two)];
  }
}
