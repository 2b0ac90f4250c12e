// The files of a conversation: their list, and of one its preview, versions and differences.
import { get } from "../lib/api.js";
import { archivePath, artifactPath, differencesPath, download, versionsPath } from "../lib/downloads.js";
import { ago, bytes, count, fileName, shortHash, time } from "../lib/format.js";
import { kindName } from "../lib/kinds.js";
import { useLoad } from "../lib/load.js";
import { href } from "../lib/router.js";
import { html, useSignal } from "../lib/ui.js";
import { Badge, Choice, Empty, Loaded, Loading, Name, Panel, ProblemNote, Table } from "../parts/basics.js";
import { Difference } from "../parts/difference.js";
import { Icon } from "../parts/icons.js";
import { usePages } from "../parts/page_list.js";
import { Preview } from "../parts/preview.js";

const PAGE = 200;

export function Files({ conversation, query }) {
  return query.path
    ? html`<${File} key=${query.path} conversation=${conversation} path=${query.path} />`
    : html`<${List} conversation=${conversation} />`;
}

function List({ conversation }) {
  const pages = usePages(
    (after, signal) => get(`v1/conversations/${encodeURIComponent(conversation)}/files`, { after, limit: PAGE }, { signal }),
    (page) => page.files, (page) => page.next, [conversation]);
  const files = pages.items.value;
  if (files.length === 0 && pages.isOver.value) {
    return html`<${Panel}><${Empty} title="No files" icon="files">Promised files of calls and uploaded attachments appear here.<//><//>`;
  }
  const columns = [
    { title: "File", cell: (row) => html`<a class="strong wrap" href=${href("conversations", conversation, "files", { path: row.path })}><${Name}>${row.name}<//></a>
        <div class="faint small">${row.turn_id}${row.path.includes(".user.attachments/") && ", attachment"}</div>` },
    { title: "Type", cell: (row) => html`<span class="faint" title=${row.media_type}>${kindName(row.media_type, row.name)}</span>` },
    { title: "Size", align: "right", cell: (row) => bytes(row.size_bytes) },
    { title: "Stored", cell: (row) => html`<span title=${time(row.created_at)}>${ago(row.created_at)}</span>` },
    { title: html`<span class="hidden">Actions</span>`, align: "right", cell: (row) => html`<button type="button" class="icon-button" aria-label=${`Download ${fileName(row.name)}`} title="Download"
        onClick=${() => download(artifactPath(conversation, row.path), {}, fileName(row.name))}><${Icon} name="download" /></button>` },
  ];
  const actions = html`<button type="button" class="button quiet" onClick=${() => download(archivePath(conversation), {}, `${conversation}.zip`)}><${Icon} name="download" />All as zip</button>`;
  return html`<${ProblemNote} problem=${pages.problem.value} retry=${pages.more} />
    <${Panel} title="Files and attachments" actions=${files.length > 0 && actions}>
      <${Table} caption="Latest versions of the files" columns=${columns} rows=${files} keyOf=${(row) => row.path} />
      <${pages.Foot} what="file" />
    <//>`;
}

function File({ conversation, path }) {
  const loaded = useLoad((signal) => get(versionsPath(conversation, path), { limit: 200 }, { signal }), [conversation, path]);
  return html`<div class="stack">
    <p><a class="row" href=${href("conversations", conversation, "files")}><${Icon} name="left" />All files</a></p>
    <${Loaded} of=${loaded}>${(page) => html`<${Versions} conversation=${conversation} path=${path} page=${page} />`}<//>
  </div>`;
}

function Versions({ conversation, path, page }) {
  const { versions } = page;
  const chosen = useSignal(versions[0].version);
  const shown = useSignal("preview");
  const version = versions.find((each) => each.version === chosen.value);
  const name = fileName(page.physical_path);
  const isFirst = version.version === 1;
  const columns = [
    { title: "Version", cell: (row) => html`<button type="button" class="link" aria-pressed=${String(row.version === chosen.value)} onClick=${() => { chosen.value = row.version; }}>${row.version}</button>
        ${row.removed && html` <${Badge} kind="warn">removed<//>`}` },
    { title: "Stored", cell: (row) => time(row.created) },
    { title: "Size", align: "right", cell: (row) => bytes(row.size_bytes) },
    { title: "Made by", cell: (row) => (row.tool_call_id ? html`<a class="wrap" href=${href("calls", conversation, row.tool_call_id)}><${Name}>${row.tool_call_id}<//></a>` : html`<span class="faint">upload</span>`) },
    { title: "SHA-256", cell: (row) => html`<code class="faint" title=${row.sha256}>${shortHash(row.sha256)}</code>` },
    { title: html`<span class="hidden">Actions</span>`, align: "right", cell: (row) => html`<button type="button" class="icon-button" aria-label=${`Download version ${row.version}`} title="Download"
        onClick=${() => download(artifactPath(conversation, path), { version: row.version }, name)}><${Icon} name="download" /></button>` },
  ];
  const view = html`<${Choice} label="Show" value=${shown.value} onChange=${(id) => { shown.value = id; }}
      options=${[{ id: "preview", text: "Preview" }, { id: "changes", text: "Changes" }]} />`;
  const file = { logical_path: path, mime: version.mime, size_bytes: version.size_bytes, version: version.version };
  return html`
    <h2 class="file-title"><${Name}>${page.physical_path}<//></h2>
    ${version.description && html`<p class="faint">${version.description}</p>`}
    <${Panel} title=${`Version ${version.version}: ${kindName(version.mime, name)}, ${bytes(version.size_bytes)}`} actions=${view}>
      ${shown.value === "preview" && html`<${Preview} key=${version.version} conversation=${conversation} file=${file} />`}
      ${shown.value === "changes" && (isFirst
        ? html`<${Empty} title="This is the first version" icon="file">There is no earlier one to compare it with.<//>`
        : html`<${Changes} key=${version.version} conversation=${conversation} path=${path} version=${version.version} />`)}
    <//>
    <${Panel} title=${`${count(versions.length, "version")}${page.more ? " and older ones" : ""}`}>
      <${Table} caption="Versions, the newest first" columns=${columns} rows=${versions} keyOf=${(row) => row.version} />
    <//>`;
}

function Changes({ conversation, path, version }) {
  const from = useSignal(version - 1);
  const loaded = useLoad(
    (signal) => get(differencesPath(conversation, path), { from_version: from.value, to_version: version }, { signal }),
    [conversation, path, version, from.value]);
  return html`<div class="panel-body row"><label class="row"><span class="field-label">Compared with version</span>
      <select class="narrow" value=${from.value} onChange=${(event) => { from.value = Number(event.target.value); }}>
        ${Array.from({ length: version - 1 }, (_, i) => html`<option value=${version - 1 - i}>${version - 1 - i}</option>`)}</select></label></div>
    ${loaded.data.value === null && !loaded.problem.value
      ? html`<div class="preview waiting"><${Loading} text="A sandbox compares the versions…" /></div>`
      : html`<${Loaded} of=${loaded}>${(found) => html`<${Difference} found=${found} />`}<//>`}`;
}
