// Short messages at the edge of the page. Problems stay until they are closed.
import { signal } from "./ui.js";

const SHOWN_MS = 4000;
const TOASTS_MAX = 4;
let number = 0;

export const toasts = signal([]);

export function close(id) {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

function show(toast) {
  number += 1;
  toasts.value = [...toasts.value, { id: number, ...toast }].slice(-TOASTS_MAX);
  return number;
}

export function notify(text) {
  const id = show({ kind: "done", text });
  setTimeout(() => close(id), SHOWN_MS);
}

// Shows a ProblemError, or any other error.
export function report(problem) {
  if (problem?.name === "AbortError") return;
  if (problem?.status === 401) return; // the shell asks for a key
  show({ kind: "problem", text: problem?.message ?? String(problem), code: problem?.code, requestId: problem?.request_id });
}
