// The parts that all views are made of: page, notes, states, tables.
import { duration, visible, words } from "../lib/format.js";
import { html, useEffect, useRef } from "../lib/ui.js";
import { Icon } from "./icons.js";

// A view: heading, actions at its right, content. `crumbs` is a list of {text, href}.
export function Page({ title, crumbs = [], actions, children, wide = false }) {
  useEffect(() => { document.title = `${title} · Proofbox`; }, [title]);
  return html`<section class=${wide ? "page wide" : "page"}>
    <header class="page-head">
      <div class="page-title">
        ${crumbs.length > 0 && html`<nav class="crumbs" aria-label="Path">
          ${crumbs.map(({ text, href }) => html`<a href=${href}>${text}</a><span aria-hidden="true">/</span>`)}
        </nav>`}
        <h1>${title}</h1>
      </div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${children}
  </section>`;
}

// A part of a view with a heading of its own.
export function Panel({ title, actions, children, class: name = "" }) {
  return html`<section class=${`panel ${name}`}>
    ${title && html`<header class="panel-head"><h2>${title}</h2>${actions && html`<div class="actions">${actions}</div>`}</header>`}
    ${children}
  </section>`;
}

// Why there is nothing to see, and what to do about it.
export function Empty({ title, children, icon = "circle" }) {
  return html`<div class="empty"><${Icon} name=${icon} /><p class="empty-title">${title}</p>
    ${children && html`<div class="empty-text">${children}</div>`}</div>`;
}

// A problem document as text, with the refused fields, the code and the request's id.
export function ProblemNote({ problem, retry }) {
  if (!problem) return null;
  return html`<div class="note bad" role="alert">
    <${Icon} name="alert" />
    <div class="note-text">
      <p>${problem.detail ?? problem.message ?? String(problem)}</p>
      ${problem.errors?.some((each) => !String(problem.detail).includes(each.message)) && html`<ul>${problem.errors.map((each) =>
        html`<li><code>${each.field}</code>: ${each.message}</li>`)}</ul>`}
      <p class="faint small">
        ${problem.code && html`<code>${problem.code}</code>`}
        ${problem.request_id && html` · request <code>${problem.request_id}</code>`}
      </p>
    </div>
    ${retry && html`<button type="button" class="button" onClick=${retry}>Try again</button>`}
  </div>`;
}

export const Loading = ({ text = "Loading…" }) => html`<p class="loading" role="status"><span class="spinner" />${text}</p>`;

// Content of useLoad: loading, problem with a retry, or children(data).
export function Loaded({ of, children }) {
  if (of.problem.value) return html`<${ProblemNote} problem=${of.problem.value} retry=${of.reload} />`;
  if (of.data.value === null) return html`<${Loading} />`;
  return children(of.data.value);
}

const KINDS = {
  done: "good", ok: "good", produced: "good", ready: "good",
  running: "info", queued: "info", internal: "quiet", extra: "quiet",
  cancelled: "warn", stale_file: "warn",
};

// A state as a small label: colour and word, so that colour alone carries nothing.
export function Badge({ state, kind, children }) {
  const shown = kind ?? KINDS[state] ?? "bad";
  return html`<span class=${`badge ${shown}`}>${children ?? words(state)}</span>`;
}

// columns: [{name, title, align, cell: (row) => content}]; a row with `href` is a link at its first cell.
export function Table({ columns, rows, caption, keyOf = (row, i) => i }) {
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label=${caption}><table>
    <caption class="hidden">${caption}</caption>
    <thead><tr>${columns.map((c) => html`<th scope="col" class=${c.align ?? ""}>${c.title}</th>`)}</tr></thead>
    <tbody>${rows.map((row, i) => html`<tr key=${keyOf(row, i)}>
      ${columns.map((c) => html`<td class=${c.align ?? ""}>${c.cell(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

// Links that look like tabs: tabs = [{id, text, href}].
export function Tabs({ tabs, active, label }) {
  return html`<nav class="tabs" aria-label=${label}>${tabs.map((tab) =>
    html`<a href=${tab.href} aria-current=${tab.id === active ? "page" : null}>${tab.text}</a>`)}</nav>`;
}

// One of a few choices, as buttons side by side.
export function Choice({ label, options, value, onChange }) {
  return html`<div class="choice" role="group" aria-label=${label}>${options.map((option) =>
    html`<button type="button" aria-pressed=${String(option.id === value)}
      onClick=${() => onChange(option.id)}>${option.text}</button>`)}</div>`;
}

// A labelled control; `hint` is read with it.
export function Field({ label, hint, children, class: name = "" }) {
  return html`<label class=${`field ${name}`}><span class="field-label">${label}</span>${children}
    ${hint && html`<span class="field-hint">${hint}</span>`}</label>`;
}

// A modal dialog; the browser holds the focus inside and gives it back.
export function Dialog({ title, onClose, children, class: name = "" }) {
  const ref = useRef(null);
  useEffect(() => {
    const dialog = ref.current;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return html`<dialog ref=${ref} class=${name} aria-label=${title} onClose=${onClose}
      onClick=${(event) => { if (event.target === ref.current) ref.current.close(); }}>
    <header class="panel-head"><h2>${title}</h2>
      <button type="button" class="icon-button" aria-label="Close" onClick=${() => ref.current.close()}><${Icon} name="close" /></button>
    </header>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

// A name from outside: controls and marks of direction are shown as codes.
export const Name = ({ children }) => html`<bdi class="name">${visible(String(children))}</bdi>`;

export const Duration = ({ ms }) => html`<span class="number">${duration(ms)}</span>`;
