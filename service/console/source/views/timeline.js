// The timeline of a conversation: each block beside what a model reads of it, with its tokens.
import { get, path } from "../lib/api.js";
import { bytes, count, time } from "../lib/format.js";
import { href } from "../lib/router.js";
import { html, useSignal } from "../lib/ui.js";
import { Badge, Choice, Empty, Name, Panel, ProblemNote } from "../parts/basics.js";
import { Icon } from "../parts/icons.js";
import { usePages } from "../parts/page_list.js";

const PAGE = 100;
const SHOWN_CHARS = 1_200;
const SHOWN_LINES = 14;
const KINDS = { "user.prompt": "info", "user.attachment": "info", "user.attachment.meta": "info", "assistant.completion": "good", "react.notice": "warn", "conv.range.summary": "warn" };

export function Timeline({ conversation }) {
  const shown = useSignal("both");
  const pages = usePages(
    (after, signal) => get(`${path`v1/conversations/${conversation}`}/timeline/aligned`, { after, limit: PAGE }, { signal }),
    (page) => page.entries.map((entry) => ({ ...entry, pre_tail: page.pre_tail, tail: page.tail })),
    (page) => (page.more ? page.last : null),
    [conversation],
  );
  const entries = pages.items.value;
  const tokens = entries.reduce((sum, entry) => sum + entry.tokens, 0);
  const end = entries.at(-1);
  if (entries.length === 0 && pages.isOver.value) {
    return html`<${Panel}><${Empty} title="The timeline is empty" icon="chat">Calls, attachments and messages of the agent loop appear here.<//><//>`;
  }
  return html`<div class="stack">
    <div class="row timeline-head">
      <${Choice} label="Show" value=${shown.value} onChange=${(id) => { shown.value = id; }}
        options=${[{ id: "both", text: "Both" }, { id: "blocks", text: "Blocks" }, { id: "model", text: "Model" }]} />
      <span class="faint small grow">${entries.length > 0 && html`${count(entries.length, "block")}, <b>${count(tokens, "token")}</b>${!pages.isOver.value && " so far"}
        ${end.tail > 0 && html` · cache points at ${end.pre_tail > 0 && html`${end.pre_tail} and `}${end.tail}`}`}</span>
      <button type="button" class="button" onClick=${pages.restart}><${Icon} name="refresh" />Refresh</button>
    </div>
    <${ProblemNote} problem=${pages.problem.value} retry=${pages.more} />
    <${Panel} class=${`timeline ${shown.value}`}>
      ${shown.value === "both" && html`<div class="entry entry-titles" aria-hidden="true"><h3>Block</h3><h3>What the model reads</h3></div>`}
      ${entries.map((entry) => html`<${Entry} key=${entry.position} entry=${entry} conversation=${conversation} shown=${shown.value} />`)}
      <${pages.Foot} what="block" />
    <//>
  </div>`;
}

function Entry({ entry, conversation, shown }) {
  const { block, position } = entry;
  const isPoint = position === entry.pre_tail || position === entry.tail;
  return html`<article class=${`entry${block.meta?.hidden ? " is-hidden" : ""}`} aria-label=${`Block ${position}`}>
    ${shown !== "model" && html`<div class="entry-block">
      <div class="row entry-head"><span class="number faint">${position}</span><${Badge} kind=${KINDS[block.type] ?? "quiet"}>${block.type}<//>
        ${block.meta?.hidden && html`<${Badge} kind="warn">hidden<//>`}
        <span class="faint small grow">${block.author} · ${block.turn_id}${block.ts ? html` · <span title=${block.ts}>${time(block.ts)}</span>` : ""}</span>
        ${block.call_id && html`<a class="small" href=${href("calls", conversation, block.call_id)}>call</a>`}</div>
      ${block.path && html`<div class="small mono faint"><${Name}>${block.path}<//></div>`}
      ${block.text ? html`<${Clipped} text=${block.text} />` : ""}
      ${entry.base64_chars > 0 && html`<p class="faint small">${block.mime ?? "binary"}, ${bytes(Math.floor(entry.base64_chars * 0.75))} as base64</p>`}
    </div>`}
    ${shown !== "blocks" && html`<div class="entry-text">
      <div class="row entry-head"><span class="faint small grow">${entry.tokens === 0 ? "not read" : count(entry.tokens, "token")}</span>
        ${isPoint && html`<${Badge} kind="info">${position === entry.tail ? "tail" : "pre-tail"} cache point<//>`}</div>
      ${entry.text && html`<${Clipped} text=${entry.text.replace(/^\n+|\n+$/g, "")} />`}
    </div>`}
  </article>`;
}

// A text with its beginning only, until it is opened: a block may have megabytes.
function Clipped({ text }) {
  const isOpen = useSignal(false);
  let head = text.length > SHOWN_CHARS ? text.slice(0, SHOWN_CHARS) : text;
  const lines = head.split("\n");
  if (lines.length > SHOWN_LINES) head = lines.slice(0, SHOWN_LINES).join("\n");
  const isClipped = head.length < text.length;
  return html`<pre class="block-text">${isOpen.value || !isClipped ? text : head}</pre>
    ${isClipped && html`<button type="button" class="button quiet small" aria-expanded=${String(isOpen.value)} onClick=${() => { isOpen.value = !isOpen.value; }}>
      ${isOpen.value ? "Show less" : `Show all (${count(text.length, "character")})`}</button>`}`;
}
