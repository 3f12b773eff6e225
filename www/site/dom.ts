// Helpers for the page's elements.

/** An element with attributes and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>> = {},
  children: readonly (Node | string)[] = [],
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== "") made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The element with that id; a missing one is a broken page. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`bug: the page has no element "${id}"`);
  return found as T;
}

/** Whether something runs: then nothing else can be started, and the times that are shown are of that alone. */
export function setBusy(isBusy: boolean): void {
  for (const button of document.querySelectorAll("button")) button.disabled = isBusy;
}

/** Bytes in words: `37.9 KB`. */
export function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 ** 2) return `${(bytes / 1024).toFixed(1)} KB`;
  return `${(bytes / 1024 ** 2).toFixed(1)} MB`;
}
