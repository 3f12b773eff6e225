// The confusion matrix, as a table.

import { element } from "./dom.ts";

const CLASSES = 10;

/** Counts by what was written (row) and what was read (column). */
export function confusionMatrix(labels: Uint32Array, predictions: Uint32Array): number[][] {
  const counts = Array.from({ length: CLASSES }, () => new Array<number>(CLASSES).fill(0));
  labels.forEach((label, index) => {
    const row = counts[label] as number[];
    const read = predictions[index] as number;
    row[read] = (row[read] ?? 0) + 1;
  });
  return counts;
}

/** Shows the matrix; without counts, an empty one. */
export function showConfusion(host: HTMLElement, counts?: number[][]): void {
  const classes = Array.from({ length: CLASSES }, (_, digit) => digit);
  const head = element("tr", {}, [element("td"), ...classes.map((digit) => element("th", { scope: "col" }, [String(digit)]))]);
  const rows = classes.map((written) => {
    const row = counts?.[written];
    const total = row?.reduce((sum, count) => sum + count, 0) ?? 0;
    return element("tr", {}, [
      element("th", { scope: "row" }, [String(written)]),
      ...classes.map((read) => cell(row?.[read], total, written === read)),
    ]);
  });
  const caption = counts ? "Confusion matrix of the test digits" : "Confusion matrix, empty until the training ends";
  host.replaceChildren(
    element("table", {}, [
      element("caption", { class: "unseen" }, [caption]),
      element("thead", {}, [head]),
      element("tbody", {}, rows),
    ]),
  );
}

function cell(count: number | undefined, total: number, isRight: boolean): HTMLElement {
  if (!count) return element("td", { class: isRight ? "diagonal" : "" });
  const td = element("td", { class: isRight ? "right" : "wrong" }, [String(count)]);
  td.style.setProperty("--share", String(count / total));
  return td;
}
