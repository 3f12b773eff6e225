// Opening a device, whatever the machine has.

import { Device, WgslabError } from "../lib/index.ts";

const NO_GPU =
  "There is no WebGPU here, so this runs on the host driver, on the CPU. For the GPU use a browser with WebGPU (a current " +
  "Chrome, Edge, Firefox or Safari) with graphics acceleration on, over https or from localhost.";

/** A device of the GPU; where there is none, of the host driver, and `say` is told so. */
export async function openDevice(say: (notice: string) => void): Promise<Device> {
  try {
    return await Device.open();
  } catch (error) {
    if (!(error instanceof WgslabError) || error.code !== "no-adapter") throw error;
    say(NO_GPU);
    return Device.open({ driver: "host" });
  }
}

/** Lets the page paint and listen: the host driver computes on its thread. */
export function breathe({ driver }: Device): Promise<void> {
  return driver === "host" ? new Promise((resolve) => setTimeout(resolve)) : Promise.resolve();
}
