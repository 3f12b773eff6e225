// The loss curve, drawn by uPlot.

import uPlot from "uplot";

const HEIGHT = 280;
const LEAST = 0.005;
const MOST = 5;
const LINES = [0.01, 0.03, 0.1, 0.3, 1, 3];

/** The loss of every step, and its mean over each epoch; the axis of losses is logarithmic. */
export class LossChart {
  readonly #host: HTMLElement;
  readonly #stepsPerEpoch: number;
  #steps: number;
  #losses: number[] = [];
  #plot: uPlot | undefined;

  constructor(host: HTMLElement, steps: number, stepsPerEpoch: number) {
    this.#host = host;
    this.#steps = steps;
    this.#stepsPerEpoch = stepsPerEpoch;
    new ResizeObserver(() => this.#plot?.setSize({ width: host.clientWidth, height: HEIGHT })).observe(host);
    // A canvas has the colours it was drawn with.
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
    this.#draw();
  }

  /** Starts anew. */
  reset(): void {
    this.#losses = [];
    this.#draw();
  }

  /** Adds the losses of the next steps. */
  add(losses: Float32Array): void {
    this.#losses.push(...losses);
    this.#plot?.setData(this.#data());
    const last = this.#losses.at(-1)?.toPrecision(3);
    this.#host.ariaLabel = `Loss curve: ${this.#losses.length} of ${this.#steps} steps, from ${this.#losses[0]?.toPrecision(3)} to ${last}`;
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

  #draw(): void {
    this.#plot?.destroy();
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
        scales: { x: { time: false, range: () => [0, this.#steps] }, y: { distr: 3, range: () => [LEAST, MOST] } },
        axes: [
          { ...axis, grid: { show: false }, size: 28 },
          { ...axis, size: 44, splits: () => LINES, values: (_, splits) => splits.map((value) => String(value ?? "")) },
        ],
        series: [
          {},
          { stroke: color("--accent-soft"), width: 1, points: { show: false } },
          { stroke: color("--accent"), width: 2.5, spanGaps: true, points: { show: false } },
        ],
      },
      this.#data(),
      this.#host,
    );
  }
}
