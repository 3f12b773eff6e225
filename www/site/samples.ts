// Test digits with what the network reads in them.

import type { Digits } from "./data.ts";
import type { Reading } from "./digits.ts";
import { element } from "./dom.ts";

const SHOWN = 24;
const SIDE = 8;
const INK = 16;

/** Shows the misread digits first, then those that were read with the least confidence. */
export function showSamples(host: HTMLElement, digits: Digits, reading: Reading): void {
  const { predictions, confidence } = reading;
  const labels = digits.testOrder.map((row) => digits.labels[row] as number);
  const isWrong = (row: number): boolean => predictions[row] !== labels[row];
  const rows = Array.from(labels.keys()).sort(
    (a, b) => Number(isWrong(b)) - Number(isWrong(a)) || (confidence[a] as number) - (confidence[b] as number),
  );
  host.replaceChildren(...rows.slice(0, SHOWN).map((row) => sample(digits, reading, row, labels[row] as number)));
}

/** Shows empty places for the digits. */
export function showNoSamples(host: HTMLElement): void {
  host.replaceChildren(
    ...Array.from({ length: SHOWN }, () => element("li", { class: "empty", "aria-hidden": "true" }, [frame(element("canvas"))])),
  );
}

function sample(digits: Digits, { predictions, confidence }: Reading, row: number, label: number): HTMLElement {
  const prediction = predictions[row] as number;
  const isWrong = prediction !== label;
  const sure = `${Math.round((confidence[row] as number) * 100)} %`;
  const words = isWrong ? `a ${label}, misread as ${prediction}` : `a ${label}, read as ${prediction}`;
  return element("li", { class: isWrong ? "wrong" : "right" }, [
    picture(digits, digits.testOrder[row] as number, `${words}, ${sure} sure`),
    element("p", { "aria-hidden": "true" }, [
      element("strong", {}, [String(prediction)]),
      element("span", {}, [isWrong ? `is ${label}` : sure]),
    ]),
  ]);
}

function frame(canvas: HTMLCanvasElement): HTMLElement {
  return element("span", { class: "frame" }, [canvas]);
}

/** The pixels in black, one canvas pixel each: CSS scales them, and inverts them in the dark. */
function picture(digits: Digits, example: number, label: string): HTMLElement {
  const canvas = element("canvas", { role: "img", "aria-label": label, title: label });
  canvas.width = SIDE;
  canvas.height = SIDE;
  const image = new ImageData(SIDE, SIDE);
  for (let pixel = 0; pixel < SIDE * SIDE; pixel++) {
    const value = digits.pixels[example * SIDE * SIDE + pixel] as number;
    image.data[pixel * 4 + 3] = Math.round((value / INK) * 255);
  }
  canvas.getContext("2d")?.putImageData(image, 0, 0);
  return frame(canvas);
}
