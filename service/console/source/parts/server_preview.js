// Pictures of pages and tables, which the service makes in a sandbox.
import { request } from "../lib/api.js";
import { previewPath } from "../lib/downloads.js";
import { count } from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { html, useEffect, useSignal } from "../lib/ui.js";
import { Choice, Loaded, Loading } from "./basics.js";
import { Icon } from "./icons.js";

const OFFICE = "application/vnd.openxmlformats-officedocument.";
const PAGES = new Set([
  "application/pdf", "text/html", "image/svg+xml", "image/tiff",
  `${OFFICE}wordprocessingml.document`, `${OFFICE}presentationml.presentation`,
]);
const TABLES = new Set([
  "text/csv", "text/tab-separated-values", "application/vnd.apache.parquet", `${OFFICE}spreadsheetml.sheet`,
]);

// Whether the service can show a file of this media type.
export const canShow = (mime) => PAGES.has(mime) || TABLES.has(mime);

// file: {logical_path, mime, version?}
export function ServerPreview({ conversation, file }) {
  const page = useSignal(1);
  const total = useSignal(0);
  const url = useSignal(null);
  const shown = useLoad(async (signal) => {
    const answer = await request(previewPath(conversation, file.logical_path), { query: { page: page.value, version: file.version }, signal });
    if (!answer.headers.get("Content-Type").startsWith("image/")) return { table: await answer.json() };
    const content = await answer.blob();
    if (signal.aborted) return null;
    if (url.peek()) URL.revokeObjectURL(url.peek());
    url.value = URL.createObjectURL(content);
    total.value = Number(answer.headers.get("Preview-Pages"));
    return { isSimilar: answer.headers.get("Preview-Layout") === "similar" };
  }, [conversation, file.logical_path, file.version, page.value]);
  useEffect(() => () => { if (url.peek()) URL.revokeObjectURL(url.peek()); }, []);
  const go = (step) => { page.value = Math.min(Math.max(1, page.value + step), total.value); };
  return html`
    ${total.value > 1 && html`<div class="pager" role="group" aria-label="Pages">
      <button type="button" class="icon-button" aria-label="Previous page" disabled=${page.value <= 1} onClick=${() => go(-1)}><${Icon} name="left" /></button>
      <span class="number small">${page.value} of ${total.value}</span>
      <button type="button" class="icon-button" aria-label="Next page" disabled=${page.value >= total.value} onClick=${() => go(1)}><${Icon} name="right" /></button>
      ${shown.loading.value && html`<span class="spinner" role="status" aria-label="Loading" />`}
    </div>`}
    ${shown.data.value === null && !shown.problem.value
      ? html`<div class="preview waiting"><${Loading} text="A sandbox opens the file…" /></div>`
      : html`<${Loaded} of=${shown}>${(data) => data.table
        ? html`<${TablePreview} table=${data.table} onSheet=${(number) => { page.value = number; }} />`
        : html`<div class="preview" tabindex="0" role="region" aria-label=${`Page ${page.value}`}><div class="pages">
            <img src=${url.value} alt=${`Page ${page.value} of ${total.value}`} />
            ${data.isSimilar && html`<p class="faint small">The layout is similar: the real program may break lines and pages elsewhere.</p>`}
          </div></div>`}<//>`}`;
}

function TablePreview({ table, onSheet }) {
  const { rows, sheets } = table;
  const width = Math.max(1, ...rows.map((row) => row.length));
  const isPart = table.rows_total > rows.length || table.columns_total > width;
  return html`
    ${sheets.length > 1 && html`<div class="panel-body">${sheets.length <= 6
      ? html`<${Choice} label="Sheet" value=${table.page} onChange=${onSheet} options=${sheets.map((text, i) => ({ id: i + 1, text }))} />`
      : html`<label class="field"><span class="field-label">Sheet</span><select value=${table.page} onChange=${(event) => onSheet(Number(event.target.value))}>
          ${sheets.map((text, i) => html`<option value=${i + 1}>${text}</option>`)}</select></label>`}</div>`}
    <div class="preview" tabindex="0" role="region" aria-label="Rows of the table">
      ${rows.length === 0 ? html`<p class="panel-body faint">The table is empty.</p>` : html`<table class="cells"><tbody>
        ${rows.map((row, i) => html`<tr key=${i}><th scope="row" class="right">${i + 1}</th>
          ${Array.from({ length: width }, (_, column) => html`<td>${row[column] ?? ""}</td>`)}</tr>`)}</tbody></table>`}
      ${isPart && html`<p class="panel-body faint small">The first ${count(rows.length, "row")} of ${count(table.rows_total, "row")}, ${Math.min(width, table.columns_total)} of ${count(table.columns_total, "column")}.</p>`}
    </div>`;
}
