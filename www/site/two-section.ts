// The section on two devices: a button, both loss curves, and what the weights say.
//
// With `?auto=two` it trains at once. For machines: `window.wgslabTwoDevices` is a promise of the first training's result,
// or of `{ error, code }`.

import { WgslabError } from "../lib/index.ts";
import { PairChart } from "./charts.ts";
import type { Digits } from "./data.ts";
import { byId, setBusy } from "./dom.ts";
import { type Difference, type Result, type Watcher, trainOnTwo } from "./two-devices.ts";
import { STEPS } from "./two-program.ts";

type Outcome = Result | { error: string; code: string };

declare global {
  interface Window {
    wgslabTwoDevices: Promise<Outcome>;
  }
}

const FIGURES = ["two-between", "two-joined", "two-accuracy", "two-seconds"];

function say(id: string, text: string): void {
  byId(id).textContent = text;
}

function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** A difference over the largest weight: `0`, or `2.5e-7`. */
function relative({ relative }: Difference): string {
  return relative === 0 ? "0" : relative.toExponential(1);
}

function show(result: Result): void {
  const { between_devices, to_joined, test_accuracy, seconds, steps, tolerance, agrees } = result;
  say("two-between", relative(between_devices));
  say("two-joined", relative(to_joined));
  const [accuracy, ...others] = new Set(test_accuracy.devices.map(percent));
  say("two-accuracy", accuracy as string);
  const other = others.map((share) => `, ${share} on the other`).join("");
  say("two-accuracy-note", `on ${others.length > 0 ? "one" : "each"}${other}; ${percent(test_accuracy.joined)} on one alone`);
  say("two-seconds", seconds.two_devices.toFixed(1));
  say("two-seconds-note", `seconds; ${seconds.joined.toFixed(1)} on one alone`);
  const same = between_devices.absolute === 0 ? "the same weights, bit for bit" : `weights within ${relative(between_devices)}`;
  say(
    "two-status",
    agrees
      ? `After ${steps} steps both devices have ${same}: those of one device, up to rounding.`
      : `The weights differ by more than ${tolerance.to_joined} of the largest: something is wrong.`,
  );
}

/** Makes the section work; `load` gives the digits. */
export function setUpTwoDevices(load: () => Promise<Digits>): void {
  const button = byId<HTMLButtonElement>("two-train");
  const chart = new PairChart(byId("two-chart"), STEPS);
  const watcher: Watcher = {
    fellBack(notice) {
      byId("two-notice").hidden = false;
      say("two-notice", notice);
      console.log(`notice ${notice}`);
    },
    opened(devices) {
      say("two-status", `Compiling for ${devices.map(({ name }) => name).join(" and ")} …`);
    },
    progressed({ side, step, losses }) {
      chart.add(side, losses);
      const who = side === "two" ? "Two devices" : "One device";
      say("two-status", `${who}: step ${step + 1} of ${STEPS} …`);
    },
  };

  /** Trains, with the button and the messages around it. Never rejects. */
  const run = async (): Promise<Outcome> => {
    setBusy(true);
    byId("two-error").hidden = true;
    say("two-status", "Opening two devices …");
    for (const id of FIGURES) say(id, "–");
    chart.reset();
    try {
      const result = await trainOnTwo(await load(), watcher);
      show(result);
      button.textContent = "Train both again";
      return result;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      byId("two-error").hidden = false;
      say("two-error", message);
      say("two-status", "The training failed.");
      return { error: message, code: error instanceof WgslabError ? error.code : "bug" };
    } finally {
      setBusy(false);
    }
  };
  window.wgslabTwoDevices = new Promise((resolve) => {
    button.addEventListener("click", () => void run().then(resolve));
  });
}
