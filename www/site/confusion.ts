// The confusion matrix, as a table.

import { element } from "./dom.ts";

const CLASSES = 10;

/** Shows the matrix, counts by what was written (row) and what was read (column); without counts, an empty one. */
export function showConfusion(host: HTMLElement, counts?: Int32Array): void {
  const classes = Array.from({ length: CLASSES }, (_, digit) => digit);
  const head = element("tr", {}, [element("td"), ...classes.map((digit) => element("th", { scope: "col" }, [String(digit)]))]);
  const rows = classes.map((written) => {
    const row = counts?.subarray(written * CLASSES, (written + 1) * CLASSES);
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
