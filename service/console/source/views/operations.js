// The view of operations.
import { html } from "../lib/ui.js";
import { Empty, Page } from "../parts/basics.js";

export function Operations() {
  return html`<${Page} title="Operations"><${Empty} title="Nothing here yet" icon="gauge" /><//>`;
}
