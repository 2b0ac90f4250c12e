// The messages at the edge of the page.
import { close, toasts } from "../lib/toasts.js";
import { html } from "../lib/ui.js";
import { Icon } from "./icons.js";

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">${toasts.value.map((toast) => html`
    <div key=${toast.id} class=${`toast ${toast.kind === "problem" ? "bad" : ""}`}>
      <${Icon} name=${toast.kind === "problem" ? "alert" : "check"} />
      <div><p>${toast.text}</p>
        ${toast.code && html`<p class="faint small"><code>${toast.code}</code>${toast.requestId && html` · <code>${toast.requestId}</code>`}</p>`}</div>
      <button type="button" class="icon-button" aria-label="Close the message" onClick=${() => close(toast.id)}><${Icon} name="close" /></button>
    </div>`)}</div>`;
}
