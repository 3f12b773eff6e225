// The page: a button that trains, everything that shows how it goes, and the section on two devices.
//
// With `?auto=1` it trains at once; with `?auto=two`, on two devices. For machines: `window.wgslabResult` is a promise of the
// first training's result, or of `{ error, code }`; the console says `progress {…}` at each read of the losses, and
// `notice …` where there is no GPU.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { type AdapterInfo, WgslabError } from "../lib/index.ts";
import { LossChart } from "./charts.ts";
import { showConfusion } from "./confusion.ts";
import { type Digits, loadDigits } from "./data.ts";
import { type Result, type Watcher, train } from "./digits.ts";
import { byId, bytesText, setBusy } from "./dom.ts";
import { PROGRAM, stepCount, stepsPerEpoch } from "./program.ts";
import { showNoSamples, showSamples } from "./samples.ts";
import { TEMPORARY, showLegend, showSlabs } from "./slabs.ts";
import { setUpPlayground } from "./playground/section.ts";
import { textOf } from "./texts.ts";
import { setUpTwoDevices } from "./two-section.ts";

type Outcome = Result | { error: string; code: string };

declare global {
  interface Window {
    wgslabResult: Promise<Outcome>;
  }
}

const DATA_URL = "digits.csv.gz";

const button = byId<HTMLButtonElement>("train");
const chart = new LossChart(byId("loss-chart"), stepCount(), stepsPerEpoch());
const roleOf = new Map(PROGRAM.nodes.map(({ name, role }) => [name, role]));
let digits: Promise<Digits> | undefined;

function say(id: string, text: string): void {
  byId(id).textContent = text;
}

function adapterText({ name, backend }: AdapterInfo): string {
  return [name, backend].filter((part) => part !== "").join(" · ");
}

function buffersText(count: number): string {
  if (!byId("notice").hidden) return "plain memory";
  return count === 1 ? "one WebGPU buffer" : `${count} WebGPU buffers`;
}

const watcher: Watcher = {
  fellBack(notice) {
    byId("notice").hidden = false;
    say("notice", notice);
    console.log(`notice ${notice}`);
  },
  opened(adapter) {
    say("adapter", adapterText(adapter));
    byId("adapter-dot").classList.add("on");
    say("status", "Compiling and linking the programs …");
  },
  placed(report) {
    showSlabs(byId("slabs"), report, roleOf);
    say("memory", bytesText(report.inUseBytes));
    say("memory-note", `${report.pools.length} slabs in ${buffersText(report.heapCount)}`);
    say("heaps", buffersText(report.heapCount));
    say("status", "Training …");
  },
  progressed({ step, steps, losses, seconds }) {
    const loss = losses[losses.length - 1] as number;
    console.log(`progress ${JSON.stringify({ step, steps, loss })}`);
    chart.add(losses);
    say("loss", loss.toFixed(4));
    say("step", String(step + 1));
    say("step-note", `of ${steps}, in ${PROGRAM.hyperparameters.epochs} epochs`);
    say("speed", ((step + 1) / seconds).toFixed(0));
    byId<HTMLProgressElement>("progress").value = (step + 1) / steps;
  },
};

/** The digits; they are fetched once, and again only after a failure. */
function load(): Promise<Digits> {
  digits ??= loadDigits(DATA_URL);
  digits.catch(() => (digits = undefined));
  return digits;
}

async function trainAndShow(): Promise<Result> {
  const data = await load();
  chart.reset();
  const { result, reading } = await train(data, watcher);
  showConfusion(byId("confusion"), reading.confusion);
  showSamples(byId("samples"), data, reading);
  say("accuracy", `${(result.test_accuracy * 100).toFixed(1)} %`);
  say("accuracy-note", `of ${reading.predictions.length} unseen digits`);
  say("speed", result.steps_per_second.toFixed(0));
  button.textContent = "Train again";
  say("status", `Trained. Peak of tensor memory: ${bytesText(result.peak_bytes)}.`);
  return result;
}

/** Trains, with the button and the messages around it. Never rejects. */
async function run(): Promise<Outcome> {
  setBusy(true);
  byId("error").hidden = true;
  say("accuracy", "–");
  say("status", "Opening the device …");
  byId<HTMLProgressElement>("progress").value = 0;
  showConfusion(byId("confusion"));
  showNoSamples(byId("samples"));
  try {
    return await trainAndShow();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    byId("error").hidden = false;
    say("error", message);
    say("status", "The training failed.");
    return { error: message, code: error instanceof WgslabError ? error.code : "bug" };
  } finally {
    byId("adapter-dot").classList.remove("on");
    setBusy(false);
  }
}

say("program", PROGRAM.step.flatMap(({ files }) => files.map(textOf)).join("\n"));
showConfusion(byId("confusion"));
showNoSamples(byId("samples"));
showLegend(byId("legend"), new Set([...roleOf.values(), TEMPORARY]));

window.wgslabResult = new Promise((resolve) => {
  button.addEventListener("click", () => void run().then(resolve));
});
setUpPlayground();
setUpTwoDevices(load);

const auto = new URLSearchParams(location.search).get("auto");
if (auto === "1") button.click();
if (auto === "two") byId<HTMLButtonElement>("two-train").click();
