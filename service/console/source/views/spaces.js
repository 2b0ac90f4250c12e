// The list of spaces, and the page of one: #/spaces and /spaces/<id>.
import { get } from "../lib/api.js";
import { ago, time, visible } from "../lib/format.js";
import { spaceHref } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Badge, Empty, Name, Page, Panel, ProblemNote, Table } from "../parts/basics.js";
import { Icon } from "../parts/icons.js";
import { usePages } from "../parts/page_list.js";
import { Space } from "./space.js";

const PAGE = 50;
const HANDLES_MAX = 6;

export function Spaces({ parts: [space] }) {
  return space === undefined ? html`<${List} />` : html`<${Space} key=${space} space=${space} />`;
}

function List() {
  const pages = usePages((before, signal) => get("v1/spaces", { before, limit: PAGE }, { signal }), (answer) => answer.items, (answer) => answer.next, []);
  const columns = [
    { title: "Space", cell: (row) => html`<a class="strong wrap" href=${spaceHref(row.space_id)}><${Name}>${row.name}<//></a>${row.archived && html` <${Badge} kind="quiet">archived<//>`}` },
    { title: "Members", cell: (row) => html`<span class="wrap">${membersOf(row)}</span>` },
    { title: "Messages", align: "right", cell: (row) => row.last_seq.toLocaleString("en") },
    { title: "Created", cell: (row) => html`<span class="faint" title=${time(row.created)}>${ago(row.created)}</span>` },
  ];
  const actions = html`<button type="button" class="button" onClick=${pages.restart}><${Icon} name="refresh" />Refresh</button>`;
  return html`<${Page} title="Spaces" actions=${actions}>
    ${pages.problem.value?.status === 403
      ? html`<div class="note"><${Icon} name="key" /><div class="note-text"><p>Spaces need a key with the scope <code>spaces:read</code>.</p></div></div>`
      : html`<${ProblemNote} problem=${pages.problem.value} retry=${pages.more} />`}
    ${pages.items.value.length === 0 && pages.isOver.value
      ? html`<${Panel}><${Empty} title="No spaces" icon="people">A space shows persons what agents do. A program makes it over the API, and its members see it here.<//><//>`
      : pages.items.value.length > 0 && html`<${Panel}><${Table} caption="Spaces, the newest first" columns=${columns} rows=${pages.items.value} keyOf=${(row) => row.space_id} /><${pages.Foot} what="space" /><//>`}
  <//>`;
}

function membersOf({ members }) {
  const shown = members.slice(0, HANDLES_MAX).map((each) => visible(each.handle ? `@${each.handle}` : each.display_name)).join(" ");
  return html`<bdi>${shown}</bdi>${members.length > HANDLES_MAX ? html` <span class="faint">and ${members.length - HANDLES_MAX} more</span>` : ""}`;
}
