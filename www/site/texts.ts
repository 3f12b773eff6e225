// The programs and kernels of the digits job and of the two devices, as they are in examples: the texts that the native
// examples read.

import classify from "../../examples/digits/classify.wgslab";
import gradients from "../../examples/digits/gradients.wgslab";
import init from "../../examples/digits/init.wgslab";
import predict from "../../examples/digits/predict.wgslab";
import rawPredict from "../../examples/digits/predict.wgsl";
import score from "../../examples/digits/score.wgslab";
import update from "../../examples/digits/update.wgslab";
import merge from "../../examples/two_devices/merge.wgslab";
import updateAll from "../../examples/two_devices/update.wgslab";

const TEXTS: Readonly<Record<string, string>> = {
  "digits/classify.wgslab": classify,
  "digits/gradients.wgslab": gradients,
  "digits/init.wgslab": init,
  "digits/predict.wgslab": predict,
  "digits/predict.wgsl": rawPredict,
  "digits/score.wgslab": score,
  "digits/update.wgslab": update,
  "two_devices/merge.wgslab": merge,
  "two_devices/update.wgslab": updateAll,
};

/** The text of a file. */
export function textOf(file: string): string {
  const text = TEXTS[file];
  if (text === undefined) throw new Error(`program.json: there is no file "${file}"`);
  return text;
}
