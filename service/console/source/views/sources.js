// The sources of a conversation: what [[S:n]] means.
import { get } from "../lib/api.js";
import { visible } from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { href } from "../lib/router.js";
import { html } from "../lib/ui.js";
import { Empty, Loaded, Name, Panel, Table } from "../parts/basics.js";

const isWeb = (url) => /^https?:\/\//i.test(url ?? "");

export function Sources({ conversation }) {
  const loaded = useLoad((signal) => get(`v1/conversations/${encodeURIComponent(conversation)}/sources`, {}, { signal }), [conversation]);
  const columns = [
    { title: "Citation", cell: (row) => html`<code>[[S:${row.sid}]]</code>` },
    { title: "Title", cell: (row) => html`<span class="wrap">${row.title ? html`<${Name}>${row.title}<//>` : html`<span class="faint">no title</span>`}</span>` },
    { title: "Type", cell: (row) => html`<span class="faint">${row.source_type ?? "source"}</span>` },
    { title: "Where", cell: (row) => html`<${Where} conversation=${conversation} row=${row} />` },
  ];
  return html`<${Loaded} of=${loaded}>${({ sources }) => (sources.length === 0
    ? html`<${Panel}><${Empty} title="No sources" icon="book">Attachments, hosted files and pages of web tools get a number that texts cite as [[S:n]].<//><//>`
    : html`<${Panel}><${Table} caption="Sources by number" columns=${columns} rows=${sources} keyOf=${(row) => row.sid} /><//>`)}<//>`;
}

function Where({ conversation, row }) {
  if (row.artifact_path?.startsWith("fi:")) {
    return html`<a class="wrap" href=${href("conversations", conversation, "files", { path: row.artifact_path })}><${Name}>${row.artifact_path}<//></a>`;
  }
  if (isWeb(row.url)) return html`<a class="wrap" href=${row.url} rel="noreferrer noopener" target="_blank">${visible(row.url)}</a>`;
  return html`<span class="faint wrap"><${Name}>${row.url ?? row.physical_path ?? ""}<//></span>`;
}
