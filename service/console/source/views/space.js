// One space: messages live, cards with answers, members, and a field for a message.
import { actorOf, chooseActor, findActor } from "../lib/actor.js";
import { path, post } from "../lib/api.js";
import { count, time, visible, words } from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { Room, senderName } from "../lib/room.js";
import { href, spaceHref } from "../lib/router.js";
import { spaceToken } from "../lib/session.js";
import { countPageScroll } from "../lib/steadiness.js";
import { report } from "../lib/toasts.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useSignal, useSignalEffect } from "../lib/ui.js";
import { Badge, Dialog, Empty, Field, Loading, Name, ProblemNote } from "../parts/basics.js";
import { CallCard, stateText } from "../parts/call_card.js";
import { Composer } from "../parts/composer.js";
import { Guarded } from "../parts/guarded.js";
import { Icon } from "../parts/icons.js";
import { OutsideText } from "../parts/outside_text.js";

const AT_END_PX = 60;
const ANSWERED = ".call-card.waiting:is(:hover, :focus-within)";
const LINK_S = 86_400;

export function Space({ space: id }) {
  const room = useMemo(() => new Room(id), [id]);
  const actor = useLoad((signal) => findActor(signal), [id]);
  const chosen = useSignal(0); // counts choices
  const replyTo = useSignal(null);
  useEffect(() => {
    room.follow();
    return () => room.leave();
  }, [room]);
  const space = room.space.value;
  const title = space ? visible(space.name) : "Space";
  useEffect(() => { document.title = `${title} · Proofbox`; }, [title]);
  if (room.problem.value) return html`<section class="page"><h1>Space</h1><${ProblemNote} problem=${room.problem.value} retry=${() => location.reload()} /></section>`;
  if (!space) return html`<section class="page"><${Loading} text="Opening the space…" /></section>`;
  const members = room.members.value;
  const found = actor.data.value && (chosen.value, actorOf(actor.data.value, id, members));
  const mayPost = Boolean(found?.id) && actor.data.value.mayWrite && !space.archived;
  const context = { room, actor: found?.named ?? null, own: found?.id ?? null, mayPost, replyTo };
  return html`<section class="page space-page">
    <header class="page-head"><div class="page-title">
        ${!spaceToken.value && html`<nav class="crumbs" aria-label="Path"><a href=${href("spaces")}>Spaces</a><span aria-hidden="true">/</span></nav>`}
        <h1><bdi>${title}</bdi></h1></div>
      <${Connection} room=${room} />
      ${!spaceToken.value && actor.data.value?.mayWrite && html`<${ShareButton} id=${id} members=${members} own=${found?.id} />`}</header>
    <div class="space-columns">
      <div class="space-main">
        <${Messages} ...${context} />
        <div class="space-foot">
          <${ProblemNote} problem=${actor.problem.value} retry=${actor.reload} />
          ${space.archived ? html`<p class="faint">This space is archived: it can be read only.</p>` : ""}
          ${found?.persons.length > 1 && !space.archived && html`<${ActAs} persons=${found.persons} value=${found.id} onChange=${(each) => { chooseActor(id, each); chosen.value += 1; }} />`}
          ${mayPost ? html`<${Composer} room=${room} actor=${context.actor} replyTo=${replyTo} />`
            : found && !space.archived && html`<p class="faint small">${actor.data.value.mayWrite ? "Choose a person of this space to post and answer; the key itself is not a member." : html`You can read this space. To post and answer, use a key with the scope <code>spaces:write</code>.`}</p>`}
        </div>
      </div>
      <${Members} room=${room} own=${found?.id} />
    </div>
    <div class="hidden" role="status" aria-live="polite">${room.announced.value}</div>
  </section>`;
}

function Connection({ room }) {
  const text = { connecting: "Connecting…", live: "Live", lost: "Connection lost, trying again" }[room.connection.value];
  return html`<span role="status"><${Badge} kind=${room.connection.value === "live" ? "good" : "warn"}>${text}<//></span>`;
}

const ActAs = ({ persons, value, onChange }) => html`<label class="act-as small"><span class="faint">You act as</span>
  <select value=${value ?? ""} onChange=${(event) => onChange(event.target.value)}>${!value && html`<option value="">Choose…</option>`}
    ${persons.map((each) => html`<option key=${each.entity_id} value=${each.entity_id}>${visible(each.display_name)}</option>`)}</select></label>`;

// The frame of the messages. It stays at its end while the reader is there, and where the reader is otherwise.
function Messages({ room, ...context }) {
  const frame = useRef(null);
  const isAtEnd = useSignal(true);
  const height = useRef(0);
  const toEnd = () => {
    countPageScroll();
    frame.current.scrollTop = frame.current.scrollHeight;
  };
  // Not under the hand of who is answering: a click would land on another card.
  const follow = () => {
    if (!frame.current || !isAtEnd.peek()) return;
    if (frame.current.querySelector(ANSWERED) === null) toEnd();
    else onScroll();
  };
  useEffect(() => {
    const grown = new ResizeObserver(follow);
    grown.observe(frame.current.firstElementChild);
    grown.observe(frame.current);
    return () => grown.disconnect();
  }, []);
  useSignalEffect(() => {
    const newest = room.messages.count.value;
    if (newest >= 0 && isAtEnd.peek()) requestAnimationFrame(follow);
  });
  const earlier = async () => {
    const { scrollHeight, scrollTop } = frame.current;
    height.current = scrollHeight - scrollTop;
    try {
      await room.loadEarlier();
    } catch (problem) {
      report(problem);
    }
    requestAnimationFrame(() => {
      if (!frame.current) return;
      countPageScroll();
      frame.current.scrollTop = frame.current.scrollHeight - height.current;
    });
  };
  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = frame.current;
    isAtEnd.value = scrollHeight - scrollTop - clientHeight < AT_END_PX;
    room.isReaderAtEnd = isAtEnd.value;
  };
  return html`<div class="messages-frame"><div class="messages" ref=${frame} tabindex="0" role="region" aria-label="Messages" onScroll=${onScroll}><div class="messages-inner">
      ${room.hasEarlier.value && html`<button type="button" class="button quiet" disabled=${room.isLoadingEarlier.value} onClick=${earlier}>Show earlier messages</button>`}
      ${room.messages.count.value === 0 && room.isLoaded.value && html`<${Empty} title="No messages yet" icon="chat">Texts of the members and the tools of agents appear here.<//>`}
      ${room.messages.chunks.value.map((chunk) => html`<${Chunk} key=${chunk.number} chunk=${chunk} room=${room} ...${context} />`)}
      <${Drafts} room=${room} />
    </div></div>
    ${!isAtEnd.value && html`<button type="button" class="button to-end" onClick=${toEnd}><${Icon} name="down" />Newest</button>`}
  </div>`;
}

const Chunk = ({ chunk, ...context }) => chunk.entries.value.map((entry) => html`<${Message} key=${entry.id} entry=${entry} ...${context} />`);

function Message({ entry, room, actor, own, mayPost, replyTo }) {
  const message = entry.message.value;
  const { sender, kind, tool } = message;
  const who = senderName(message);
  const label = kind === "tool_call" ? `${visible(tool.name)} by ${who}: ${stateText(tool.state)}` : `${who}, ${time(message.ts)}`;
  return html`<article id=${message.message_id} tabindex="-1" class=${`message ${sender.entity_id === own ? "own" : ""} ${kind === "tool_call" ? "has-card" : ""}`} aria-label=${label}>
    <header class="message-head"><span class="strong"><bdi>${who}</bdi></span>${sender.type === "agent" && html`<${Badge} kind="quiet">agent<//>`}
      <time class="faint small" datetime=${message.ts} title=${message.ts}>${time(message.ts)}</time>
      ${message.origin && html`<span class="faint small">by a ${words(visible(message.origin.trigger))}${message.origin.space_id ? " of another space" : ""}</span>`}
      ${message.replyable && mayPost && html`<button type="button" class="icon-button reply" aria-label=${`Reply to ${who}`} onClick=${() => { replyTo.value = message; }}><${Icon} name="reply" /></button>`}</header>
    ${message.reply_to && html`<${ReplyLine} original=${room.messages.get(message.reply_to)} />`}
    <${Guarded} version=${message.revision}>${kind === "tool_call"
      ? html`<${CallCard} entry=${entry} members=${room.members.value} mayAnswer=${mayPost} send=${(body) => room.answer(entry, body, actor)} />`
      : html`<${OutsideText} text=${message.text} handles=${handlesOf(message, room)} />`}<//>
  </article>`;
}

function ReplyLine({ original }) {
  if (!original) return html`<p class="reply-line faint small"><${Icon} name="reply" />an earlier message</p>`;
  const { text, ...message } = original.message.value;
  const show = () => {
    countPageScroll();
    document.getElementById(original.id)?.scrollIntoView({ block: "center" });
  };
  return html`<p class="reply-line small"><${Icon} name="reply" /><button type="button" class="link" onClick=${show}><bdi>${senderName(message)}</bdi>: <bdi>${visible((text ?? "").slice(0, 80))}</bdi></button></p>`;
}

// The handles of the members that the service found in a text.
function handlesOf({ mentions }, room) {
  if (mentions.length === 0) return undefined;
  return new Set(room.members.peek().filter((each) => each.handle && mentions.includes(each.entity_id)).map((each) => each.handle.toLowerCase()));
}

const Drafts = ({ room }) => [...room.drafts.value].map(([stream, { text }]) => html`<article key=${stream} class="message" aria-label="A text that is being written">
  <header class="message-head"><${Badge} kind="info">is being written<//></header><${OutsideText} text=${text} /></article>`);

function Members({ room, own }) {
  const members = room.members.value;
  const running = [...room.runs.value.values()];
  // Beside the messages in a wide window, a line that opens above the field otherwise.
  const isWide = useMemo(() => matchMedia("(min-width: 1000px)").matches, []);
  return html`<details class="members panel" open=${isWide}><summary>${count(members.length, "member")}</summary><ul>
    ${members.map((each) => html`<li key=${each.entity_id}><span class="grow"><${Name}>${each.display_name}<//> <span class="faint small"><bdi>${each.handle ? `@${visible(each.handle)}` : ""}</bdi></span></span>
      ${each.entity_id === own && html`<${Badge} kind="info">you<//>`}${each.type === "agent" && html`<${Badge} kind="quiet">agent<//>`}
      ${running.filter((run) => run.agent.entity_id === each.entity_id).map((run) => html`<span key=${run.run_id} class="run-state small"><${Badge} state=${run.status} kind=${run.status.startsWith("waiting") ? "warn" : "info"} /></span>`)}</li>`)}
  </ul></details>`;
}

// Makes a link that opens this space alone, as one person, without a key.
function ShareButton({ id, members, own }) {
  const isOpen = useSignal(false);
  const person = useSignal("");
  const link = useSignal("");
  const field = useRef(null);
  const persons = members.filter((each) => each.type === "human");
  useLayoutEffect(() => { if (link.value) field.current?.select(); }, [link.value]);
  const open = () => {
    link.value = "";
    person.value = own ?? persons[0]?.entity_id ?? "";
    isOpen.value = true;
  };
  const make = async (event) => {
    event.preventDefault();
    try {
      const made = await post(path`v1/spaces/${id}/tokens`, { entity_id: person.value, expires_s: LINK_S });
      link.value = `${spaceHref(id)}#token=${made.token}`;
    } catch (problem) {
      isOpen.value = false;
      report(problem);
    }
  };
  return html`<button type="button" class="button" disabled=${persons.length === 0} onClick=${open}><${Icon} name="link" />Share</button>
    ${isOpen.value && html`<${Dialog} title="Share the space" onClose=${() => { isOpen.value = false; }}>
      <p>A link opens this space for a day, without a key. Who has it posts and answers as the person that you choose.</p>
      <form class="stack" onSubmit=${make}>
        <${Field} label="Person"><select value=${person.value} onChange=${(event) => { person.value = event.target.value; link.value = ""; }}>
          ${persons.map((each) => html`<option key=${each.entity_id} value=${each.entity_id}>${visible(each.display_name)}</option>`)}</select><//>
        ${link.value ? html`<${Field} label="Link"><input ref=${field} readonly value=${link.value} onFocus=${(event) => event.target.select()} /><//>`
          : html`<button class="button primary">Make the link</button>`}
      </form><//>`}`;
}
