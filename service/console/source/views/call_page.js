// The view of one call: #/calls/<conversation>/<tool call>.
import { href } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Page } from "../parts/basics.js";

export function CallPage({ parts: [conversation, call] }) {
  return html`<${Page} title=${call} crumbs=${[{ text: conversation, href: href("conversations", conversation, "timeline") }]} wide />`;
}
