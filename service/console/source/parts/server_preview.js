// Pictures of pages and rows of tables, made by the service in a sandbox.
import { request } from "../lib/api.js";
import { count } from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { html, useEffect, useRef, useSignal } from "../lib/ui.js";
import { Choice, Loaded, Table } from "./basics.js";
import { Icon } from "./icons.js";

const OFFICE = "application/vnd.openxmlformats-officedocument.";
const PAGES = new Set([
  "application/pdf", `${OFFICE}wordprocessingml.document`, `${OFFICE}presentationml.presentation`,
  "text/html", "image/svg+xml", "image/tiff",
]);
const TABLES = new Set([
  "text/csv", "text/tab-separated-values", `${OFFICE}spreadsheetml.sheet`, "application/vnd.apache.parquet", "application/parquet",
]);

// Whether the service can show a file of this media type.
export const canShow = (mime) => PAGES.has(mime) || TABLES.has(mime);

const previewPath = (conversation, logicalPath) =>
  `v1/conversations/${encodeURIComponent(conversation)}/previews/${logicalPath.split("/").map(encodeURIComponent).join("/")}`;

// file: {logical_path, mime, version?}
export function ServerPreview({ conversation, file }) {
  const page = useSignal(1);
  const kept = useRef(null); // the object URL on the page
  useEffect(() => () => { if (kept.current) URL.revokeObjectURL(kept.current); }, []);
  const loaded = useLoad(async (signal) => {
    const query = { page: page.value, version: file.version };
    const answer = await request(previewPath(conversation, file.logical_path), { query, signal });
    if (answer.headers.get("Content-Type")?.startsWith("application/json")) return { table: await answer.json() };
    if (kept.current) URL.revokeObjectURL(kept.current);
    kept.current = URL.createObjectURL(await answer.blob());
    return {
      url: kept.current,
      pages: Number(answer.headers.get("Preview-Pages") ?? 1),
      isSimilar: answer.headers.get("Preview-Layout") === "similar",
    };
  }, [conversation, file.logical_path, file.version, page.value]);
  return html`<div class="preview" tabindex="0" role="region" aria-label="Preview">
    <${Loaded} of=${loaded}>${(found) => found.table
      ? html`<${Rows} table=${found.table} page=${page} />`
      : html`<${Picture} found=${found} page=${page} name=${file.logical_path} />`}<//>
  </div>`;
}

function Picture({ found, page, name }) {
  return html`<div class="pages">
    <img src=${found.url} alt=${`Page ${page.value} of ${name}`} />
    ${found.pages > 1 && html`<${Pager} page=${page} pages=${found.pages} />`}
    ${found.isSimilar && html`<p class="faint small">An approximation: no office program lays out this file here.</p>`}
  </div>`;
}

function Pager({ page, pages }) {
  const turn = (by) => () => { page.value = Math.min(pages, Math.max(1, page.value + by)); };
  return html`<div class="row" role="group" aria-label="Pages">
    <button type="button" class="icon-button" aria-label="Page before" disabled=${page.value === 1} onClick=${turn(-1)}><${Icon} name="left" /></button>
    <span class="number small">${page.value} of ${pages}</span>
    <button type="button" class="icon-button" aria-label="Next page" disabled=${page.value === pages} onClick=${turn(1)}><${Icon} name="right" /></button>
  </div>`;
}

function Rows({ table, page }) {
  const [head = [], ...rows] = table.rows;
  const columns = head.map((title, i) => ({ title, align: isNumeric(rows, i) ? "right" : "", cell: (row) => row[i] ?? "" }));
  const isPart = table.rows_total > table.rows.length || table.columns_total > head.length;
  return html`<div>
    ${table.sheets.length > 1 && html`<div class="panel-body"><${Choice} label="Sheet" value=${table.page} onChange=${(id) => { page.value = id; }}
      options=${table.sheets.map((text, i) => ({ id: i + 1, text }))} /></div>`}
    <${Table} caption="Rows of the table" columns=${columns} rows=${rows} />
    <p class="faint small table-foot">${count(Math.max(0, table.rows_total - 1), "row")}, ${count(table.columns_total, "column")}${isPart && ", the first of them shown"}</p>
  </div>`;
}

const isNumeric = (rows, i) => rows.length > 0 && rows.every((row) => !row[i] || /^-?[\d.,]+(e[+-]?\d+)?%?$/i.test(row[i]));
