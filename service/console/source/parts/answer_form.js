// What a person answers a waiting call with: an approval, or a form made of the schema of the answer.
import { count, visible } from "../lib/format.js";
import { ABSENT, describeSchema, emptyDraft, readDraft } from "../lib/schema_form.js";
import { Steadiness, placeOf } from "../lib/steadiness.js";
import { html, useEffect, useId, useLayoutEffect, useMemo, useRef, useSignal } from "../lib/ui.js";
import { Field } from "./basics.js";
import { Icon } from "./icons.js";
import { OutsideText } from "./outside_text.js";
import { SchemaForm } from "./schema_form.js";

const REASON_CHARS = 4_096;
const SEEN_EVERY_MS = 100;

// How the answer of each kind of card is written; `send(body)` resolves to the problem of the service, or null.
export function AnswerForm({ tool, reading, send }) {
  if (tool.custom_ui === "approval") return html`<${Approval} reading=${reading} send=${send} />`;
  if (tool.custom_ui === "elicitation") return html`<${Elicitation} tool=${tool} send=${send} />`;
  return html`<${ResultForm} schema=${tool.result_schema} place="result" wrap=${(value) => value} send=${send} />`;
}

// A click on a card that has just appeared or moved was meant for what stood there before: {ref, isSteady, accepts(event)}.
function useSteady() {
  const ref = useRef(null);
  const isSteady = useSignal(false);
  const seen = useMemo(() => new Steadiness(), []);
  const see = () => {
    if (ref.current) isSteady.value = seen.see(placeOf(ref.current), performance.now()); // the timer ends after the element is gone
  };
  useLayoutEffect(see); // an error that appears moves the buttons at once
  useEffect(() => {
    const timer = setInterval(see, SEEN_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const accepts = (event) => {
    if (event.detail === 0) return true; // by the keyboard: the focus moves with the card
    see();
    return isSteady.peek();
  };
  return { ref, isSteady, accepts };
}

// Buttons that cannot be used now stay where the keyboard is: `disabled` would take the focus away.
const pressable = (isPressable) => ({ "aria-disabled": String(!isPressable) });

function Approval({ reading, send }) {
  const steady = useSteady();
  const reason = useSignal("");
  const isBusy = useSignal(false);
  const id = useId();
  const hidden = reading.hidden.value;
  const decide = async (event, approved) => {
    if (isBusy.value || !steady.accepts(event) || (approved && reading.hidden.peek() > 0)) return;
    isBusy.value = true;
    const why = reason.value.trim();
    await send({ result: { approved, ...(why && { reason: why }) } });
    isBusy.value = false;
  };
  const showAll = () => {
    steady.ref.current.closest("article").focus({ preventScroll: true }); // the button goes
    reading.openAll();
  };
  const isReady = steady.isSteady.value && !isBusy.value;
  return html`<div class="answer" ref=${steady.ref}>
    <p>The tool runs only if you approve it.</p>
    ${hidden > 0 && html`<div id=${id} class="note warn"><${Icon} name="alert" /><div class="note-text"><p>${hidden === Infinity
      ? "A part of the input cannot be shown here, so it cannot be approved here."
      : `Not all of the input is shown: ${count(hidden, "more character")}. Show all before you approve.`}</p></div>
      ${hidden !== Infinity && html`<button type="button" class="button" onClick=${showAll}>Show all</button>`}</div>`}
    <${Field} label="Reason (optional, the agent reads it)" class="full"><textarea class="text" rows="1" maxlength=${REASON_CHARS} value=${reason.value}
      onInput=${(event) => { reason.value = event.target.value; }} /><//>
    <div class="row"><button type="button" class="button primary" ...${pressable(isReady && hidden === 0)} aria-describedby=${hidden > 0 ? id : null} onClick=${(event) => decide(event, true)}><${Icon} name="check" />Approve</button>
      <button type="button" class="button danger" ...${pressable(isReady)} onClick=${(event) => decide(event, false)}><${Icon} name="close" />Deny</button></div>
  </div>`;
}

// A server asks for input: {action, content} by the schema of `content`.
function Elicitation({ tool, send }) {
  const properties = tool.result_schema?.properties ?? {};
  const content = properties.content ?? (properties.action ? null : tool.result_schema) ?? tool.input?.requested_schema ?? tool.input?.requestedSchema ?? {};
  const message = [tool.result_schema?.description, tool.input?.message, content.description].find((each) => typeof each === "string" && each);
  const actions = [
    { text: "Decline", title: "Answer no, without the input", body: { result: { action: "decline" } } },
    { text: "Cancel", title: "Give no answer", body: { result: { action: "cancel" } } },
  ];
  return html`${message && html`<${OutsideText} text=${message} isWhole=${true} />`}
    <${ResultForm} schema=${content} place="result.content" wrap=${(value) => ({ action: "accept", content: value })} submit="Accept" actions=${actions} send=${send} />`;
}

const GIVE_UP = [{ text: "Cancel", title: "Give no answer; the agent goes on without it", body: { cancelled: true } }];

function ResultForm({ schema, place, wrap, send, submit = "Submit", actions = GIVE_UP }) {
  const node = useMemo(() => describeSchema(schema), [JSON.stringify(schema)]);
  const draft = useSignal(undefined);
  const errors = useSignal(new Map());
  const isBusy = useSignal(false);
  const steady = useSteady();
  const form = steady.ref;
  if (draft.value === undefined) draft.value = emptyDraft(node);
  const isRequired = node.kind !== "json" || Object.keys(node.schema).length > 0;
  const fail = (found) => {
    errors.value = found;
    setTimeout(() => form.current?.querySelector("[aria-invalid='true']")?.focus());
  };
  useEffect(() => { isBusy.value = false; }, []);
  const answer = async (body) => {
    isBusy.value = true;
    const problem = await send(body);
    isBusy.value = false;
    if (problem) fail(new Map(problem.errors.map(({ field, message }) => [field, message])));
  };
  const onSubmit = (event) => {
    event.preventDefault();
    if (isBusy.value) return;
    const found = new Map();
    const value = readDraft(node, draft.value, place, isRequired, found);
    if (found.size > 0) fail(found);
    else answer({ result: wrap(value === ABSENT ? null : value) });
  };
  // What belongs to no field that is shown, such as a rule between two fields.
  const isReady = steady.isSteady.value && !isBusy.value;
  const shown = new Set(placesOf(node, draft.value, place));
  const others = [...errors.value].filter(([where]) => !shown.has(where));
  return html`<form class="answer" ref=${form} onSubmit=${onSubmit} novalidate>
    <${SchemaForm} node=${node} draft=${draft} errors=${errors.value} place=${place} />
    ${errors.value.size > 0 && html`<div class="note bad" role="alert"><${Icon} name="alert" /><div class="note-text">
      <p>The answer was not taken: ${errors.value.size === 1 ? "one value does" : `${errors.value.size} values do`} not fit.</p>
      ${others.length > 0 && html`<ul>${others.map(([where, message]) => html`<li key=${where}><code>${visible(where)}</code>: ${visible(message)}</li>`)}</ul>`}</div></div>`}
    <div class="row"><button type="submit" class="button primary" ...${pressable(isReady)} onClick=${(event) => { if (!steady.accepts(event)) event.preventDefault(); }}><${Icon} name="check" />${submit}</button>
      ${actions.map((each) => html`<button key=${each.text} type="button" class="button" title=${each.title} ...${pressable(isReady)} onClick=${(event) => { if (!isBusy.value && steady.accepts(event)) answer(each.body); }}>${each.text}</button>`)}</div>
  </form>`;
}

// The places of all fields that a form shows now.
function placesOf(node, draft, place) {
  if (node.kind === "object") return [place, ...node.fields.flatMap(({ name, node: field }) => placesOf(field, draft[name], `${place}.${name.slice(0, 100)}`))];
  if (node.kind === "array") return [place, ...(draft ?? []).flatMap((each, i) => placesOf(node.item, each, `${place}[${i}]`))];
  return [place];
}
