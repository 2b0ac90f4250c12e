// Routes are in the fragment: one page serves all, below any path prefix.
import { computed, signal } from "./ui.js";

function parse(hash) {
  const [where, query = ""] = hash.replace(/^#\/?/, "").split("?");
  return { parts: where.split("/").filter(Boolean).map(decode), query: Object.fromEntries(new URLSearchParams(query)) };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
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
  return `#/${where.map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

export function go(...parts) {
  location.hash = href(...parts);
}

// Changes the address without an entry in the history and without a new view.
export function replaceRoute(...parts) {
  history.replaceState(null, "", href(...parts));
  current.value = parse(location.hash);
}
