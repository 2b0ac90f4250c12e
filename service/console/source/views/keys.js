// The view of keys.
import { html } from "../lib/ui.js";
import { Empty, Page } from "../parts/basics.js";

export function Keys() {
  return html`<${Page} title="Keys"><${Empty} title="Nothing here yet" icon="key" /><//>`;
}
