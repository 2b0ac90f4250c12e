// Routes are in the fragment, below any path prefix; the page of a space has a path of its own, /spaces/<id>.
import { BASE, PAGE_PARTS, decode } from "./base.js";
import { computed, signal } from "./ui.js";

// What leads from this page to the one with the fragments.
const HOME = PAGE_PARTS.length === 0 ? "" : BASE.pathname;

function parse(hash) {
  if (PAGE_PARTS.length > 0 && !hash.startsWith("#/")) return { parts: PAGE_PARTS, query: {} };
  const [where, query = ""] = hash.replace(/^#\/?/, "").split("?");
  return { parts: where.split("/").filter(Boolean).map(decode), query: Object.fromEntries(new URLSearchParams(query)) };
}

const current = signal(parse(location.hash));

// {parts: ["conversations", "c1", "files"], query: {path: "…"}}
export const route = computed(() => current.value);

export function startRouter() {
  addEventListener("hashchange", () => { current.value = parse(location.hash); });
}

// The address of a view: href("conversations", id, "files", {path}).
export function href(...parts) {
  const last = parts.at(-1);
  const query = typeof last === "object" ? new URLSearchParams(last).toString() : "";
  const where = (query ? parts.slice(0, -1) : parts.filter((part) => typeof part !== "object"));
  return `${HOME}#/${where.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

export function go(...parts) {
  location.assign(href(...parts));
}

// The address of the page of a space.
export const spaceHref = (id) => new URL(`spaces/${encodeURIComponent(id)}`, BASE).href;

// Changes the address without an entry in the history and without a new view.
export function replaceRoute(...parts) {
  history.replaceState(null, "", href(...parts));
  current.value = parse(location.hash);
}
