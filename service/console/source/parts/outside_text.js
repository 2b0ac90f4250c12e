// Texts and JSON values of others: text nodes alone, links to http and https only, long ones opened on demand.
import { count } from "../lib/format.js";
import { isDeep, jsonText, textAt } from "../lib/json_text.js";
import { ReadingContext } from "../lib/reading.js";
import { readableText, splitText } from "../lib/text_links.js";
import { html, useContext, useId, useLayoutEffect, useSignal } from "../lib/ui.js";

const SHOWN_CHARS = 2_000;
const SHOWN_LINES = 24;
const OPENED_CHARS = 100_000; // more would make the page slow; the rest is for a file
const PAIRS_MAX = 16;
const SHORT_CHARS = 300;
const NAME_CHARS = 200;

// A text with its links, and its mentions of these handles (folded); with isWhole all of it at once.
export function OutsideText({ text, handles, isWhole = false }) {
  const draw = (part) => html`<div class="outside-text" dir="auto">${splitText(part, handles).map((each) => shown(each))}</div>`;
  return isWhole ? draw(text) : html`<${Clipped} text=${text}>${draw}<//>`;
}

function shown({ kind, text, href }) {
  if (kind === "link") return html`<a href=${href} target="_blank" rel="noopener noreferrer nofollow">${text}</a>`;
  return kind === "mention" ? html`<span class="mention">${text}</span>` : text;
}

// The beginning of a text, until it is opened. Of what is to be approved, all can be opened.
function Clipped({ text, children }) {
  const reading = useContext(ReadingContext);
  const id = useId();
  const isOpen = useSignal(false);
  const wasOpen = useSignal(false);
  const open = () => { isOpen.value = wasOpen.value = true; };
  const openings = reading?.openings.value ?? 0;
  useLayoutEffect(() => { if (openings > 0) open(); }, [openings]);
  const head = headOf(text);
  const hidden = text.length - head.length;
  useLayoutEffect(() => (reading !== null && hidden > 0 && !wasOpen.value ? reading.close(id, hidden) : undefined), [reading, hidden, wasOpen.value]);
  if (hidden === 0) return children(text);
  const opened = reading === null ? text.slice(0, OPENED_CHARS) : text;
  return html`${children(isOpen.value ? opened : head)}
    ${isOpen.value && opened.length < text.length && html`<p class="faint small">The first ${count(OPENED_CHARS, "character")} of ${count(text.length, "character")}.</p>`}
    <button type="button" class="button quiet small" aria-expanded=${String(isOpen.value)} onClick=${() => { if (isOpen.value) isOpen.value = false; else open(); }}>
      ${isOpen.value ? "Show less" : `Show more (${count(text.length, "character")})`}</button>`;
}

function headOf(text) {
  const head = text.slice(0, SHOWN_CHARS);
  const lines = head.split("\n", SHOWN_LINES + 1);
  return lines.length > SHOWN_LINES ? lines.slice(0, SHOWN_LINES).join("\n") : head;
}

const isScalar = (value) => value === null || ["string", "number", "boolean"].includes(typeof value);

// The JSON value holder[name]: a text as text, a small object as pairs, anything else as JSON.
export function JsonValue({ holder, name }) {
  const value = holder[name];
  if (typeof value === "string") return html`<${OutsideText} text=${value} />`;
  if (isScalar(value)) return html`<code>${textAt(holder, name)}</code>`;
  if (isSmall(value)) {
    return html`<dl class="values">${Object.keys(value).map((key) => html`<div key=${key}><dt><bdi>${readableText(key)}</bdi></dt>
      <dd>${typeof value[key] === "string" ? html`<${OutsideText} text=${value[key]} />` : html`<code>${readableText(textAt(value, key))}</code>`}</dd></div>`)}</dl>`;
  }
  return html`<${JsonSource} value=${value} />`;
}

// A value that is nested too deeply is not: the words in its place are short, and JsonSource has to note that it is not shown.
export function isSmall(value) {
  const pairs = Array.isArray(value) || isDeep(value) ? [] : Object.entries(value);
  return pairs.length > 0 && pairs.length <= PAIRS_MAX && pairs.every(([name, each]) => name.length <= NAME_CHARS && (isScalar(each) || jsonText(each).length <= SHORT_CHARS));
}

// A value as JSON. One that cannot be shown cannot be approved either.
export function JsonSource({ value }) {
  const reading = useContext(ReadingContext);
  const id = useId();
  const isShown = !isDeep(value);
  useLayoutEffect(() => (reading !== null && !isShown ? reading.close(id, Infinity) : undefined), [reading, isShown]);
  return html`<${SourceText} text=${jsonText(value, 2)} />`;
}

// JSON or its beginning, as it is written.
export function SourceText({ text }) {
  return html`<${Clipped} text=${text}>${(part) => html`<pre class="block-text">${readableText(part)}</pre>`}<//>`;
}
