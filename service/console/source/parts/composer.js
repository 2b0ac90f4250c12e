// The field for a message, with the members that "@" may mean.
import { visible } from "../lib/format.js";
import { SendingKey, leftOf } from "../lib/sending.js";
import { notify, report } from "../lib/toasts.js";
import { html, useEffect, useMemo, useRef, useSignal } from "../lib/ui.js";
import { senderName } from "../lib/room.js";
import { Icon } from "./icons.js";

const TEXT_CHARS = 20_000;
const SUGGESTED_MAX = 6;
const LIST = "mention-list";

// replyTo: a signal with the message that is replied to, or null.
export function Composer({ room, actor, replyTo }) {
  const text = useSignal("");
  const isBusy = useSignal(false);
  const caret = useSignal(0);
  const picked = useSignal(0);
  const isShut = useSignal(false);
  const key = useMemo(() => new SendingKey(), []);
  const input = useRef(null);
  const word = /(?:^|[^\p{L}\p{N}])@([A-Za-z0-9_-]{0,63})$/u.exec(text.value.slice(0, caret.value))?.[1];
  const found = word === undefined || isShut.value ? [] : suggest(room.members.value, word, actor);
  const at = Math.min(picked.value, found.length - 1);
  useEffect(() => { if (replyTo.value) input.current.focus(); }, [replyTo.value]);

  const pick = (member) => {
    const before = text.value.slice(0, caret.value - word.length);
    text.value = `${before}${member.handle} ${text.value.slice(caret.value)}`;
    const end = before.length + member.handle.length + 1;
    caret.value = end;
    setTimeout(() => { input.current.focus(); input.current.setSelectionRange(end, end); });
  };
  const send = async () => {
    if (!text.value.trim() || isBusy.value) return;
    isBusy.value = true;
    const [sent, original] = [text.value, replyTo.value];
    const to = original?.message_id;
    try {
      const { unknown_mentions: unknown } = await room.send(sent, { replyTo: to, actor, key: key.take(room.newKey, sent, to, actor) });
      if (unknown.length > 0) notify(`No member has the handle ${unknown.map((each) => `@${visible(each.slice(0, 64))}`).join(", ")}.`);
      text.value = leftOf(text.value, sent);
      if (replyTo.value === original) replyTo.value = null;
      key.end();
    } catch (problem) {
      key.fail(problem.status);
      report(problem);
    } finally {
      isBusy.value = false;
      input.current?.focus();
    }
  };
  const onKeyDown = (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    if (found.length > 0) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) picked.value = (at + step + found.length) % found.length;
      else if (event.key === "Enter" || event.key === "Tab") pick(found[at]);
      else if (event.key === "Escape") isShut.value = true;
      else return;
      event.preventDefault();
      event.stopPropagation();
    } else if (event.key === "Enter" && !event.shiftKey && !matchMedia("(pointer: coarse)").matches) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape") {
      replyTo.value = null;
    }
  };
  const follow = (event) => { caret.value = event.target.selectionStart; };
  return html`<form class="composer" onSubmit=${(event) => { event.preventDefault(); send(); }}>
    ${replyTo.value && html`<p class="reply-line small"><${Icon} name="reply" /><span class="grow">Reply to <bdi>${senderName(replyTo.value)}</bdi>: <bdi class="faint">${visible(replyTo.value.text.slice(0, 80))}</bdi></span>
      <button type="button" class="icon-button" aria-label="Do not reply" onClick=${() => { replyTo.value = null; }}><${Icon} name="close" /></button></p>`}
    ${found.length > 0 && html`<ul id=${LIST} class="suggestions" role="listbox" aria-label="Members">${found.map((each, i) => html`<li key=${each.entity_id} id=${`${LIST}-${i}`} role="option"
      aria-selected=${String(i === at)} onMouseDown=${(event) => { event.preventDefault(); pick(each); }}><bdi>@${visible(each.handle)}</bdi> <bdi class="faint">${visible(each.display_name)}</bdi></li>`)}</ul>`}
    <div class="composer-row"><textarea ref=${input} class="text" rows="1" aria-label="Message" placeholder="Write a message" maxlength=${TEXT_CHARS} value=${text.value}
        aria-haspopup="listbox" aria-autocomplete="list" aria-controls=${found.length > 0 ? LIST : null} aria-activedescendant=${found.length > 0 ? `${LIST}-${at}` : null}
        onInput=${(event) => { text.value = event.target.value; isShut.value = false; picked.value = 0; follow(event); }} onKeyDown=${onKeyDown} onKeyUp=${follow} onClick=${follow} />
      <button type="submit" class="button primary" disabled=${isBusy.value || !text.value.trim()}><${Icon} name="send" />Send</button></div>
  </form>`;
}

function suggest(members, word, actor) {
  const wanted = word.toLowerCase();
  return members.filter(({ handle, entity_id }) => handle && entity_id !== actor && handle.toLowerCase().startsWith(wanted) && handle.toLowerCase() !== wanted).slice(0, SUGGESTED_MAX);
}
