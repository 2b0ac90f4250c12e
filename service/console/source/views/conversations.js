// The view of conversations.
import { html } from "../lib/ui.js";
import { Empty, Page } from "../parts/basics.js";

export function Conversations() {
  return html`<${Page} title="Conversations"><${Empty} title="Nothing here yet" icon="chat" /><//>`;
}
