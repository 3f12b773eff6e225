// What a row is measured on: one library that has the row's inputs on its device.

import type { Outputs } from "./compare.ts";
import type { Arrays, RowSpec } from "./rows.ts";

/** A row, ready to run. */
export interface Side {
  /** Runs it that often, until the device is done. */
  run(count: number): Promise<void>;
  /** The outputs of the last run, flat and row-major in the shapes of the row. */
  read(): Promise<Outputs>;
  /** Frees what it has on the device. */
  dispose(): void;
  /** What is worth knowing of how it does it. */
  note?: string;
}

/** A library. */
export interface Library {
  /** Its name, with its version where it is not ours. */
  name: string;
  /** Its ways of a row, the one that should be the fastest first; one without a name if left out. The first that is right counts. */
  ways?(row: RowSpec): readonly string[];
  /** Makes a row ready; throws where the library cannot. */
  prepare(row: RowSpec, inputs: Arrays, way: string): Promise<Side>;
}
