// Texts and JSON values of others: text nodes alone, links to http and https only, long ones opened on demand.
import { count } from "../lib/format.js";
import { jsonText } from "../lib/json_text.js";
import { readableText, splitText } from "../lib/text_links.js";
import { html, useSignal } from "../lib/ui.js";

const SHOWN_CHARS = 2_000;
const SHOWN_LINES = 24;
const OPENED_CHARS = 100_000; // more would make the page slow; the rest is for a file
const PAIRS_MAX = 16;
const SHORT_CHARS = 300;

// A text with its links, and its mentions of these handles (folded).
export function OutsideText({ text, handles, class: name = "outside-text" }) {
  return html`<${Clipped} text=${text}>${(part) => html`<div class=${name} dir="auto">${splitText(part, handles).map((each) => shown(each))}</div>`}<//>`;
}

function shown({ kind, text, href }) {
  if (kind === "link") return html`<a href=${href} target="_blank" rel="noopener noreferrer nofollow">${text}</a>`;
  return kind === "mention" ? html`<span class="mention">${text}</span>` : text;
}

// The beginning of a text, until it is opened.
function Clipped({ text, children }) {
  const isOpen = useSignal(false);
  let head = text.length > SHOWN_CHARS ? text.slice(0, SHOWN_CHARS) : text;
  const lines = head.split("\n", SHOWN_LINES + 1);
  if (lines.length > SHOWN_LINES) head = lines.slice(0, SHOWN_LINES).join("\n");
  if (head.length === text.length) return children(text);
  const opened = text.slice(0, OPENED_CHARS);
  return html`${children(isOpen.value ? opened : head)}
    ${isOpen.value && opened.length < text.length && html`<p class="faint small">The first ${count(OPENED_CHARS, "character")} of ${count(text.length, "character")}.</p>`}
    <button type="button" class="button quiet small" aria-expanded=${String(isOpen.value)} onClick=${() => { isOpen.value = !isOpen.value; }}>
      ${isOpen.value ? "Show less" : `Show more (${count(text.length, "character")})`}</button>`;
}

const isScalar = (value) => value === null || ["string", "number", "boolean"].includes(typeof value);

// A JSON value: a text as text, a small object as pairs, anything else as JSON.
export function JsonValue({ value }) {
  if (typeof value === "string") return html`<${OutsideText} text=${value} />`;
  if (isScalar(value)) return html`<code>${String(value)}</code>`;
  const pairs = Object.entries(value);
  if (!Array.isArray(value) && pairs.length > 0 && pairs.length <= PAIRS_MAX && pairs.every(([, each]) => isScalar(each) || jsonText(each).length <= SHORT_CHARS)) {
    return html`<dl class="values">${pairs.map(([name, each]) => html`<div key=${name}><dt><bdi>${readableText(name.slice(0, 200))}</bdi></dt>
      <dd>${typeof each === "string" ? html`<${OutsideText} text=${each} />` : html`<code>${readableText(jsonText(each))}</code>`}</dd></div>`)}</dl>`;
  }
  return html`<${SourceText} text=${jsonText(value, 2)} />`;
}

// JSON or its beginning, as it is written.
export function SourceText({ text }) {
  return html`<${Clipped} text=${text}>${(part) => html`<pre class="block-text">${readableText(part)}</pre>`}<//>`;
}
