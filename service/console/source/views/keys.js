// The view of keys: who this tab speaks for with which limits, and for who may the keys of the tenant.
import { get } from "../lib/api.js";
import { ago, bytes, time, words } from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { html } from "../lib/ui.js";
import { Badge, Empty, Loaded, Name, Page, Panel, ProblemNote, Table } from "../parts/basics.js";
import { Icon } from "../parts/icons.js";

const SCOPES = {
  "calls:run": "run and cancel calls", "calls:read": "read calls and events", "artifacts:read": "read files",
  "artifacts:write": "upload and delete files", "timeline:read": "read timelines", "timeline:write": "add to timelines",
  "metrics:read": "see the state of the service", "keys:read": "see the keys of the tenant",
  "agents:read": "read agents", "agents:write": "write agents and their tools", "runs:read": "read runs", "runs:write": "make and drive runs",
  "spaces:read": "read spaces", "spaces:write": "post, answer and change spaces", "spaces:act_as": "act as any member of a space",
};
const isBytes = (name) => name.includes("bytes");
const amount = (name, number) => (isBytes(name) ? bytes(number) : number.toLocaleString("en"));

export function Keys() {
  const caller = useLoad((signal) => get("v1/caller", {}, { signal }), []);
  const keys = useLoad((signal) => get("v1/keys", {}, { signal }), []);
  const refresh = () => { caller.reload(); keys.reload(); };
  const actions = html`<button type="button" class="button" onClick=${refresh}><${Icon} name="refresh" />Refresh</button>`;
  return html`<${Page} title="Keys" actions=${actions}>
    <${Loaded} of=${caller}>${(found) => html`<${Caller} caller=${found} />`}<//>
    ${keys.problem.value?.status === 403
      ? html`<div class="note"><${Icon} name="key" /><div class="note-text"><p>The list of keys needs a key with the scope <code>keys:read</code>.</p></div></div>`
      : keys.problem.value ? html`<${ProblemNote} problem=${keys.problem.value} retry=${keys.reload} />`
      : keys.data.value && html`<${List} keys=${keys.data.value.keys} own=${caller.data.value?.key_id} />`}
  <//>`;
}

function Caller({ caller }) {
  const facts = [["Tenant", caller.tenant], ["Project", caller.project], ["User", caller.user], ["Kind of user", caller.user_type], ["Key", caller.key_id ?? "none is needed"]];
  return html`<${Panel} title="This tab">
      <dl class="pairs">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd><${Name}>${value}<//></dd></div>`)}</dl>
      <div class="panel-body"><h3>Scopes</h3><ul class="scopes">${Object.entries(SCOPES).map(([scope, what]) => {
        const has = caller.scopes.includes(scope);
        return html`<li><${Icon} name=${has ? "check" : "close"} /><code>${scope}</code> <span class="faint">${has ? what : `may not ${what}`}</span></li>`;
      })}</ul></div>
    <//>
    <${Panel} title="Limits"><div class="limits">${caller.limits.map((limit) => html`<${Limit} key=${limit.name} limit=${limit} />`)}</div><//>`;
}

function Limit({ limit }) {
  const share = limit.limit > 0 && limit.used !== null ? Math.min(1, limit.used / limit.limit) : null;
  const used = limit.used === null ? "" : `${amount(limit.name, limit.used)} used`;
  return html`<div class="limit"><span>${words(limit.name)}${limit.own && html` <${Badge} kind="info">of this key<//>`}</span>
    <span class="faint small">${[used, limit.limit === 0 ? "no limit" : `of ${amount(limit.name, limit.limit)}`].filter(Boolean).join(", ").replace(" used, of", " of")}</span>
    <span class=${`meter${share > 0.8 ? " warn" : ""}`} aria-hidden="true"><span style=${{ width: `${(share ?? 0) * 100}%` }} /></span></div>`;
}

const STATES = { works: "good", expired: "warn", revoked: "bad" };

function List({ keys, own }) {
  const columns = [
    { title: "Name", cell: (row) => html`<span class="strong wrap"><${Name}>${row.name}<//></span>${row.key_id === own && html` <${Badge} kind="info">this tab<//>`}` },
    { title: "Id", cell: (row) => html`<code>${row.key_id}</code>` },
    { title: "State", cell: (row) => html`<${Badge} kind=${STATES[row.state]}>${row.state}<//>` },
    { title: "Project", cell: (row) => row.project ?? html`<span class="faint">any</span>` },
    { title: "User", cell: (row) => row.user ?? html`<span class="faint">the operator's</span>` },
    { title: "Last used", cell: (row) => (row.used ? html`<span title=${time(row.used)}>${ago(row.used)}</span>` : html`<span class="faint">never</span>`) },
    { title: "Expires", cell: (row) => (row.expires ? time(row.expires) : html`<span class="faint">never</span>`) },
    { title: "Scopes", cell: (row) => html`<span class="small wrap">${row.scopes.join(", ")}</span>` },
    { title: "Own limits", cell: (row) => html`<span class="small wrap">${Object.entries(row.limits).map(([name, number]) => `${words(name)} ${number || "none"}`).join(", ") || html`<span class="faint">none</span>`}</span>` },
  ];
  return html`<${Panel} title=${`API keys of the tenant (${keys.length})`}>
    ${keys.length === 0 ? html`<${Empty} title="No keys" icon="key">An operator makes one with <code>proofbox keys create --name loop</code>.<//>`
      : html`<${Table} caption="API keys, the oldest first" columns=${columns} rows=${keys} keyOf=${(row) => row.key_id} />`}
    <div class="panel-body"><p class="faint small">Keys are made, rotated and revoked with <code>proofbox keys</code> on the machine of the service; a secret is shown once and never here.</p></div>
  <//>`;
}
