// Keys of the whole page. A view adds its own with useShortcut.
import { useEffect } from "./ui.js";
import { singleKeys } from "./session.js";

const registered = new Map();
const SEQUENCE_MS = 1200;
let prefix = "";
let prefixTime = 0;

// name: "mod+enter" (Ctrl, or Command on a Mac), "?", "g r" (one after another), "escape".
export function addShortcut(name, run) {
  registered.set(name, run);
  return () => { if (registered.get(name) === run) registered.delete(name); };
}

export function useShortcut(name, run) {
  useEffect(() => addShortcut(name, run));
}

export function startShortcuts() {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const pressed = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey) {
      run(`mod+${pressed}`, event);
      return;
    }
    if (pressed === "escape") {
      run("escape", event);
      return;
    }
    if (event.altKey || !singleKeys.value || isTyping(event.target)) return;
    const sequence = Date.now() - prefixTime < SEQUENCE_MS && prefix ? `${prefix} ${pressed}` : pressed;
    if (!run(sequence, event)) {
      prefix = pressed;
      prefixTime = Date.now();
    } else {
      prefix = "";
    }
  });
}

function run(name, event) {
  const work = registered.get(name);
  if (!work || document.querySelector("dialog[open]")) return false;
  event.preventDefault();
  work();
  return true;
}

function isTyping(element) {
  return element.closest("input, textarea, select, [contenteditable], .cm-editor") !== null;
}
