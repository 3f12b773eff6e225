// The slab map: each pool a bar, each tensor a block in it, all on one scale.

import type { MemoryReport, NodeReport, PoolReport } from "../lib/index.ts";
import { bytesText, element } from "./dom.ts";

// Blocks at least this wide, as a share of the widest bar, carry their name; narrower ones are named below the bar.
const NAMED_SHARE = 0.075;

/** Shows every pool. `roleOf` gives a tensor's role, which is its colour. */
export function showSlabs(host: HTMLElement, report: MemoryReport, roleOf: ReadonlyMap<string, string>): void {
  const widest = Math.max(...report.pools.map((pool) => pool.sizeBytes), 1);
  host.replaceChildren(...report.pools.map((pool) => poolRow(pool, widest, roleOf)));
}

/** Shows what the colours mean. */
export function showLegend(host: HTMLElement, roles: Iterable<string>): void {
  host.replaceChildren(
    ...Array.from(roles, (role) => element("li", {}, [element("span", { class: `swatch role-${role}` }), role])),
    element("li", {}, [element("span", { class: "swatch padding" }), "padding"]),
  );
}

function poolRow(pool: PoolReport, widest: number, roleOf: ReadonlyMap<string, string>): HTMLElement {
  const isSmall = (node: NodeReport): boolean => node.sizeBytes / widest < NAMED_SHARE;
  const bar = element(
    "div",
    { class: "bar", style: `width: ${(pool.sizeBytes / widest) * 100}%` },
    pool.nodes.map((node) => block(node, pool, !isSmall(node), roleOf.get(node.label) ?? "")),
  );
  const small = pool.nodes.filter(isSmall).map((node) => `${node.label} ${bytesText(node.sizeBytes)}`);
  return element("li", {}, [
    element("p", { class: "pool" }, [element("strong", {}, [`pool ${pool.poolId}`]), ` ${bytesText(pool.sizeBytes)}`]),
    element("div", { class: "track" }, [bar, element("p", { class: "small" }, [small.join(" · ")])]),
  ]);
}

function block(node: NodeReport, pool: PoolReport, isNamed: boolean, role: string): HTMLElement {
  const percent = (bytes: number): string => `${(bytes / pool.sizeBytes) * 100}%`;
  const title = `${node.label}: ${bytesText(node.sizeBytes)} at offset ${node.offset} of pool ${pool.poolId}`;
  return element(
    "span",
    {
      class: `block role-${role}`,
      title,
      style: `left: ${percent(node.offset)}; width: ${percent(node.sizeBytes)}`,
    },
    isNamed ? [node.label] : [],
  );
}
