// The views of conversations: their list, and of one its timeline, files and sources.
import { get, path, remove } from "../lib/api.js";
import { ago, bytes, time, visible } from "../lib/format.js";
import { go, href } from "../lib/router.js";
import { notify, report } from "../lib/toasts.js";
import { html, useEffect, useSignal } from "../lib/ui.js";
import { Dialog, Empty, Field, Name, Page, Panel, ProblemNote, Table, Tabs } from "../parts/basics.js";
import { Icon } from "../parts/icons.js";
import { usePages } from "../parts/page_list.js";
import { Files } from "./files.js";
import { Sources } from "./sources.js";
import { Timeline } from "./timeline.js";

const PAGE = 100;
const TABS = [
  { id: "timeline", text: "Timeline", view: Timeline },
  { id: "files", text: "Files", view: Files },
  { id: "sources", text: "Sources", view: Sources },
];

export function Conversations({ parts: [conversation, tab = "timeline"], query }) {
  return conversation === undefined
    ? html`<${List} />`
    : html`<${Conversation} key=${conversation} conversation=${conversation} tab=${tab} query=${query} />`;
}

function List() {
  const filter = useSignal("");
  const pages = usePages((after, signal) => get("v1/conversations", { after, limit: PAGE }, { signal }), (answer) => answer.conversations, (answer) => answer.next, []);
  const all = pages.items.value;
  const wanted = filter.value.trim().toLowerCase();
  const shown = wanted ? all.filter((each) => each.conversation_id.toLowerCase().includes(wanted)) : all;
  const columns = [
    { title: "Conversation", cell: (row) => html`<a class="strong wrap" href=${href("conversations", row.conversation_id, "timeline")}><${Name}>${row.conversation_id}<//></a>` },
    { title: "Last used", cell: (row) => html`<span title=${time(row.last_used_at)}>${ago(row.last_used_at)}</span>` },
    { title: "Created", cell: (row) => html`<span class="faint">${time(row.created_at)}</span>` },
    { title: "Turns", align: "right", cell: (row) => row.turns },
    { title: "Files", align: "right", cell: (row) => row.files },
    { title: "Size", align: "right", cell: (row) => bytes(row.size_bytes) },
  ];
  const actions = html`<label class="search"><span class="hidden">Filter by id</span><${Icon} name="search" />
    <input type="search" placeholder="Filter by id" value=${filter.value} onInput=${(event) => { filter.value = event.target.value; }} /></label>
    <button type="button" class="button" onClick=${pages.restart}><${Icon} name="refresh" />Refresh</button>`;
  return html`<${Page} title="Conversations" actions=${actions}>
    <${ProblemNote} problem=${pages.problem.value} retry=${pages.more} />
    ${all.length === 0 && pages.isOver.value
      ? html`<${Panel}><${Empty} title="No conversations yet" icon="chat">A conversation begins with its first call. <a href=${href("run")}>Run a program</a>, or send a call to the API.<//><//>`
      : html`<${Panel}>
          <${Table} caption="Conversations, the newest first" columns=${columns} rows=${shown} keyOf=${(row) => row.conversation_id} />
          ${shown.length === 0 && all.length > 0 && html`<p class="panel-body faint">No loaded conversation has “${visible(wanted)}” in its id.</p>`}
          <${pages.Foot} what="conversation" shown=${shown.length} />
        <//>`}
  <//>`;
}

function Conversation({ conversation, tab, query }) {
  const isDeleting = useSignal(false);
  const active = TABS.find((each) => each.id === tab) ?? TABS[0];
  const tabs = TABS.map((each) => ({ id: each.id, text: each.text, href: href("conversations", conversation, each.id) }));
  const actions = html`<button type="button" class="button danger" onClick=${() => { isDeleting.value = true; }}><${Icon} name="trash" />Delete</button>`;
  return html`<${Page} title=${visible(conversation)} crumbs=${[{ text: "Conversations", href: href("conversations") }]} actions=${actions} wide=${active.id === "timeline"}>
    <${Tabs} label="Parts of the conversation" tabs=${tabs} active=${active.id} />
    <${active.view} conversation=${conversation} query=${query} />
    ${isDeleting.value && html`<${Deletion} conversation=${conversation} onClose=${() => { isDeleting.value = false; }} />`}
  <//>`;
}

function Deletion({ conversation, onClose }) {
  const typed = useSignal("");
  const isBusy = useSignal(false);
  useEffect(() => () => { isBusy.value = false; }, []);
  const submit = async (event) => {
    event.preventDefault();
    isBusy.value = true;
    try {
      await remove(path`v1/conversations/${conversation}`);
      notify("The conversation is deleted.");
      go("conversations");
    } catch (problem) {
      report(problem);
      onClose();
    }
  };
  return html`<${Dialog} title="Delete the conversation" onClose=${onClose}>
    <p>Its timeline, files, attachments, sources and stored answers are removed for good. Audit lines stay.</p>
    <form class="stack" onSubmit=${submit}>
      <${Field} label=${`Type ${visible(conversation)} to confirm`}><input value=${typed.value} spellcheck="false" autocomplete="off" onInput=${(event) => { typed.value = event.target.value; }} /><//>
      <div class="row"><button class="button danger" disabled=${typed.value !== conversation || isBusy.value}>Delete for good</button>
        <button type="button" class="button" onClick=${onClose}>Keep it</button></div>
    </form>
  <//>`;
}
