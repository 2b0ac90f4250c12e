// The view that runs programs and renders documents.
import { html } from "../lib/ui.js";
import { Empty, Page } from "../parts/basics.js";

export function Run() {
  return html`<${Page} title="Run"><${Empty} title="Nothing here yet" icon="run" /><//>`;
}
