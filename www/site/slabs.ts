// The slab map: each pool a bar, each tensor a block in it, all on one scale.

import type { MemoryReport, NodeReport, PoolReport } from "../lib/index.ts";
import { bytesText, element } from "./dom.ts";

// Blocks at least this wide, as a share of the widest bar, carry their name; narrower ones are named below the bar.
const NAMED_SHARE = 0.075;

/** The role of a program's own temporaries. */
export const TEMPORARY = "temporary";

/** Tensors at one place: one, or several that take turns. */
interface Place {
  names: string;
  offset: number;
  sizeBytes: number;
  role: string;
}

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
  const places = placesOf(pool.nodes, roleOf);
  const isSmall = (place: Place): boolean => place.sizeBytes / widest < NAMED_SHARE;
  const bar = element(
    "div",
    { class: "bar", style: `width: ${(pool.sizeBytes / widest) * 100}%` },
    places.map((place) => block(place, pool, !isSmall(place))),
  );
  const small = places.filter(isSmall).map(({ names, sizeBytes }) => `${names} ${bytesText(sizeBytes)}`);
  return element("li", {}, [
    element("p", { class: "pool" }, [element("strong", {}, [`pool ${pool.poolId}`]), ` ${bytesText(pool.sizeBytes)}`]),
    element("div", { class: "track" }, [bar, element("p", { class: "small" }, [small.join(" · ")])]),
  ]);
}

/** Where tensors are. Those that overlap take turns there: temporaries whose lives do not overlap. */
function placesOf(nodes: readonly NodeReport[], roleOf: ReadonlyMap<string, string>): Place[] {
  const places: Place[] = [];
  for (const { label, offset, sizeBytes } of [...nodes].sort((a, b) => a.offset - b.offset)) {
    const last = places.at(-1);
    if (last && offset < last.offset + last.sizeBytes) {
      last.names += `, ${label}`;
      last.sizeBytes = Math.max(last.sizeBytes, offset + sizeBytes - last.offset);
    } else {
      places.push({ names: label, offset, sizeBytes, role: roleOf.get(label) ?? TEMPORARY });
    }
  }
  return places;
}

function block({ names, offset, sizeBytes, role }: Place, pool: PoolReport, isNamed: boolean): HTMLElement {
  const percent = (bytes: number): string => `${(bytes / pool.sizeBytes) * 100}%`;
  return element(
    "span",
    {
      class: `block role-${role}`,
      title: `${names}: ${bytesText(sizeBytes)} at offset ${offset} of pool ${pool.poolId}`,
      style: `left: ${percent(offset)}; width: ${percent(sizeBytes)}`,
    },
    isNamed ? [names] : [],
  );
}
