// The view of operations: slots, queue and pool now, and the calls and errors of the last time.
import { get } from "../lib/api.js";
import { ago, bytes, count, duration, time, words } from "../lib/format.js";
import { useEvery, useLoad } from "../lib/load.js";
import { href } from "../lib/router.js";
import { html, useSignal } from "../lib/ui.js";
import { Badge, Choice, Empty, Loading, Name, Page, Panel, ProblemNote, Table } from "../parts/basics.js";
import { Icon } from "../parts/icons.js";

const REFRESH_S = 5;
const PAGE = 500;
const CALLS_MAX = 2_000;
const SPANS = [{ id: 60, text: "Hour" }, { id: 1_440, text: "Day" }, { id: 10_080, text: "Week" }];

async function recentCalls(minutes, signal) {
  const calls = [];
  let before;
  do {
    const page = await get("v1/tool-calls", { minutes, before, limit: PAGE }, { signal });
    calls.push(...page.calls);
    before = page.next;
  } while (before !== null && calls.length < CALLS_MAX);
  return { calls, isPart: before !== null };
}

export function Operations() {
  const minutes = useSignal(60);
  const status = useLoad((signal) => get("v1/status", {}, { signal }), []);
  const recent = useLoad((signal) => recentCalls(minutes.value, signal), [minutes.value]);
  const refresh = () => { status.reload(); recent.reload(); };
  useEvery(REFRESH_S, () => { if (status.problem.peek()?.status !== 403) status.reload(); });
  useEvery(4 * REFRESH_S, recent.reload);
  const actions = html`<${Choice} label="Time" value=${minutes.value} onChange=${(id) => { minutes.value = id; }} options=${SPANS} />
    <button type="button" class="button" onClick=${refresh}><${Icon} name="refresh" />Refresh</button>`;
  return html`<${Page} title="Operations" actions=${actions}>
    <${Status} of=${status} />
    <${Calls} of=${recent} />
  <//>`;
}

function Status({ of }) {
  const problem = of.problem.value;
  if (problem?.status === 403) return html`<div class="note"><${Icon} name="key" /><div class="note-text"><p>Slots, queue and pool cover all tenants: they need a key with the scope <code>metrics:read</code>.</p></div></div>`;
  const status = of.data.value;
  if (!status) return problem ? html`<${ProblemNote} problem=${problem} retry=${of.reload} />` : html`<${Loading} />`;
  const columns = [
    { title: "Libraries", cell: (row) => row.flavour },
    { title: "Waiting", align: "right", cell: (row) => `${row.waiting} of ${row.wanted}` },
    { title: "Starting", align: "right", cell: (row) => row.starting },
    ...["warm", "bare", "cold", "own"].map((got) => ({ title: `Got ${got}`, align: "right", cell: (row) => row.taken[got] ?? 0 })),
  ];
  return html`
    <${ProblemNote} problem=${problem} retry=${of.reload} />
    <div class="tiles">
      <${Tile} name="Running" value=${status.running} of=${status.running_max} note="slots" />
      <${Tile} name="Queued" value=${status.queued} of=${status.queue_max} note="places" isWarn=${status.queued > 0} />
      <${Tile} name="Warm containers" value=${status.pool.reduce((sum, each) => sum + each.waiting, 0)} of=${status.pool.reduce((sum, each) => sum + each.wanted, 0)} note="wanted" />
      <${Tile} name="Free for data" value=${bytes(status.data_free_bytes)} note=${status.failed_starts > 0 ? count(status.failed_starts, "failed start") : "no failed starts"} />
    </div>
    <${Panel} title="Warm pool" actions=${html`<${Badge} kind=${status.engine_up ? "good" : "bad"}>${status.engine} ${status.engine_up ? "answers" : "does not answer"}<//>
        ${status.state === "draining" && html`<${Badge} kind="warn">stopping<//>`}`}>
      <${Table} caption="Containers of the warm pool, and what calls got since the start" columns=${columns} rows=${status.pool} keyOf=${(row) => row.flavour} />
      <div class="facts"><span>Release <b>${status.version}</b></span><span>Started <b title=${time(status.started)}>${ago(status.started)}</b></span><span>Process <b>${status.boot_id}</b></span></div>
    <//>`;
}

function Tile({ name, value, of, note, isWarn = false }) {
  const share = typeof value === "number" && of > 0 ? Math.min(1, value / of) : null;
  return html`<div class="tile"><span class="faint small">${name}</span>
    <span class="tile-value">${value}</span><span class="faint small">${of !== undefined && `of ${of.toLocaleString("en")} `}${note}</span>
    ${share !== null && html`<span class=${`meter${isWarn ? " warn" : ""}`} aria-hidden="true"><span style=${{ width: `${share * 100}%` }} /></span>`}</div>`;
}

const isOpen = (call) => call.status === "open" || call.status === "waiting";
const isError = (call) => !isOpen(call) && call.code !== "ok";

function Calls({ of }) {
  const shown = useSignal("all");
  const data = of.data.value;
  if (!data) return of.problem.value ? html`<${ProblemNote} problem=${of.problem.value} retry=${of.reload} />` : html`<${Loading} />`;
  const { calls, isPart } = data;
  const failed = calls.filter(isError);
  const open = calls.filter(isOpen);
  const rows = shown.value === "errors" ? failed : shown.value === "open" ? open : calls;
  const columns = [
    { title: "Call", cell: (row) => html`<a class="strong wrap" href=${href("calls", row.conversation_id, row.tool_call_id)}><${Name}>${row.tool_call_id}<//></a>` },
    { title: "Result", cell: (row) => html`<${Badge} kind=${isOpen(row) ? "info" : isError(row) ? "bad" : "good"}>${isOpen(row) ? row.status : words(row.code)}<//>` },
    { title: "Tool", cell: (row) => html`<span class="mono small">${row.tool_id ?? "–"}</span>` },
    { title: "Conversation", cell: (row) => html`<a class="wrap" href=${href("conversations", row.conversation_id, "timeline")}><${Name}>${row.conversation_id}<//></a>` },
    { title: "Accepted", cell: (row) => html`<span title=${time(row.created)}>${ago(row.created)}</span>` },
    { title: "Took", align: "right", cell: (row) => (row.ended ? duration(new Date(row.ended) - new Date(row.created)) : "–") },
    { title: "Files", align: "right", cell: (row) => row.files },
  ];
  const view = html`<${Choice} label="Calls" value=${shown.value} onChange=${(id) => { shown.value = id; }}
    options=${[{ id: "all", text: `All ${calls.length}` }, { id: "errors", text: `Errors ${failed.length}` }, { id: "open", text: `Open ${open.length}` }]} />`;
  return html`<${Panel} title="Your calls" actions=${view}>
    ${of.problem.value && html`<div class="panel-body"><${ProblemNote} problem=${of.problem.value} retry=${of.reload} /></div>`}
    ${rows.length === 0
      ? html`<${Empty} title=${shown.value === "errors" ? "No errors in this time" : shown.value === "open" ? "No call runs or waits" : "No calls in this time"} icon=${shown.value === "errors" ? "check" : "gauge"} />`
      : html`<${Codes} calls=${failed} /><${Table} caption="Recent calls, the newest first" columns=${columns} rows=${rows} keyOf=${(row) => `${row.conversation_id} ${row.tool_call_id}`} />`}
    ${isPart && html`<p class="panel-body faint small">Only the newest ${CALLS_MAX.toLocaleString("en")} calls are shown.</p>`}
  <//>`;
}

function Codes({ calls }) {
  if (calls.length === 0) return null;
  const counts = new Map();
  for (const call of calls) counts.set(call.code, (counts.get(call.code) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1]);
  return html`<div class="facts above">${sorted.map(([code, number]) => html`<span><code>${code}</code> <b>${number}</b></span>`)}</div>`;
}
