// One space as this tab sees it: its messages, members and runs, live. Every event is applied once, in its order.
import { get, path, post, ProblemError } from "./api.js";
import { randomId, visible, words } from "./format.js";
import { MessageList } from "./message_list.js";
import { readPartial } from "./partial_json.js";
import { watchSpace } from "./space_feed.js";
import { addPart, streamedText } from "./streamed_text.js";
import { batch, signal } from "./ui.js";

const PAGE = 100;
const MESSAGES_MAX = 2_000; // in the page; older ones are loaded again when they are asked for
const CAUGHT_UP_MAX = 10_000; // how far a reader of older messages is caught up after a loss
const APPLIED_EVERY_MS = 40;
const ANNOUNCED_CHARS = 200;
const DRAFT_MS = 65_000; // the service gives a text up that nobody has continued for 60 s
const ENDED_RUNS = new Set(["completed", "failed", "cancelled"]);

export class Room {
  space = signal(null);
  problem = signal(null);
  connection = signal("connecting"); // "live", "lost"
  messages = new MessageList();
  isLoaded = signal(false);
  hasEarlier = signal(false);
  isLoadingEarlier = signal(false);
  members = signal([]);
  runs = signal(new Map()); // of the runs that have not ended: {run_id, agent, status}
  drafts = signal(new Map()); // texts that agents are writing, by stream
  announced = signal(""); // for screen readers
  isReaderAtEnd = true; // the page sets it; messages that are read are not dropped
  #controller = new AbortController();
  #waiting = [];
  #timer = 0;

  constructor(id) {
    this.id = id;
  }

  async follow() {
    const { signal: aborted } = this.#controller;
    const onConnection = (state) => { this.connection.value = state; };
    try {
      await watchSpace(this.id, { signal: aborted, onConnection, onEvent: (event) => this.#take(event) });
    } catch (problem) {
      if (!aborted.aborted) this.problem.value = problem;
    }
  }

  // Events are applied together, so that a thousand at a time are drawn once.
  #take(event) {
    if (event.name === "reset") {
      this.#flush();
      return this.#load();
    }
    this.#waiting.push(event);
    this.#timer ||= setTimeout(() => this.#flush(), APPLIED_EVERY_MS);
    return null;
  }

  leave() {
    this.#controller.abort();
    clearTimeout(this.#timer);
  }

  async loadEarlier() {
    if (this.isLoadingEarlier.peek()) return;
    this.isLoadingEarlier.value = true;
    try {
      const before = this.messages.firstSeq;
      const page = await this.#page({ before });
      if (this.messages.firstSeq !== before) return; // dropped or read again meanwhile: these would not follow
      batch(() => {
        for (const message of page.items) this.messages.put(message);
        this.hasEarlier.value = page.next !== null;
      });
    } finally {
      this.isLoadingEarlier.value = false;
    }
  }

  // Sends a text; the same key makes a second attempt the same message.
  async send(text, { replyTo, actor, key }) {
    const body = { text, ...(replyTo && { reply_to: replyTo }), ...(actor && { entity_id: actor }) };
    const sent = await post(path`v1/spaces/${this.id}/messages`, body, { headers: { "Idempotency-Key": key } });
    batch(() => this.#update(sent.message));
    return sent;
  }

  newKey = () => randomId("console-");

  // Answers the card of a call: {result}, {error} or {cancelled}. What the service refuses stays beside the card.
  async answer(entry, body, actor) {
    entry.note.value = null;
    try {
      const json = actor ? { ...body, entity_id: actor } : body;
      const accepted = await post(path`v1/spaces/${this.id}/messages/${entry.id}/result`, json);
      if (accepted.message) batch(() => this.#update(accepted.message));
      return null;
    } catch (problem) {
      if (!(problem instanceof ProblemError)) throw problem;
      entry.note.value = problem;
      return problem;
    }
  }

  // Reads the space again: at the beginning, and when events are missing. What is older than a page stays if it can be caught up.
  async #load() {
    const space = await get(path`v1/spaces/${this.id}`, {}, this.#options);
    const first = this.messages.firstSeq;
    const isNear = first !== null && space.last_seq - first < (this.isReaderAtEnd ? MESSAGES_MAX : CAUGHT_UP_MAX);
    const found = [];
    let hasEarlier = this.hasEarlier.peek();
    if (isNear) {
      for (let after = first - 1; after !== null;) {
        const page = await this.#page({ after });
        found.push(...page.items);
        after = page.next;
      }
    } else {
      const page = await this.#page({});
      found.push(...page.items);
      hasEarlier = page.next !== null;
    }
    batch(() => {
      if (!isNear) this.messages.clear();
      this.drafts.value = new Map();
      this.runs.value = new Map(); // each is known again with its next event
      for (const message of found) this.messages.put(message).streamed.value = null;
      this.space.value = space;
      this.members.value = space.members;
      this.hasEarlier.value = hasEarlier;
      this.isLoaded.value = true;
    });
  }

  #page = (query) => get(path`v1/spaces/${this.id}/messages`, { limit: PAGE, ...query }, this.#options);

  get #options() {
    return { signal: this.#controller.signal };
  }

  #flush() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    const events = this.#waiting;
    this.#waiting = [];
    const texts = [];
    batch(() => {
      for (const event of events) this.#apply(event, texts);
      if (this.isReaderAtEnd && this.messages.dropOldest(MESSAGES_MAX)) this.hasEarlier.value = true;
      if (texts.length > 0) this.announced.value = texts.slice(-3).join(". ");
    });
  }

  #apply({ name, data }, texts) {
    switch (name) {
      case "connected": // texts that agents write begin again where they are
        this.drafts.value = new Map();
        break;
      case "message.created":
        this.#endDraft(streamOf(data.message.run_id, data.stream_id));
        this.#update(data.message);
        texts.push(`${senderName(data.message)}: ${visible(data.message.text.slice(0, ANNOUNCED_CHARS))}`);
        break;
      case "message.delta":
        this.#addDraft(data);
        break;
      case "tool-call.start":
        this.#start(data);
        break;
      case "tool-input-delta":
        this.#addInput(data);
        break;
      case "tool-call.waiting":
      case "tool-call.complete":
      case "tool-call.error":
        this.#end(data, texts);
        break;
      case "run.status":
        this.#setRun(data);
        break;
      case "member.joined":
        this.members.value = [...this.members.peek().filter((each) => each.entity_id !== data.entity.entity_id), data.entity];
        break;
      case "member.left":
        this.members.value = this.members.peek().filter((each) => each.entity_id !== data.entity.entity_id);
        break;
    }
  }

  // Takes a record of a message; null for an older one that is not loaded: between it and the others would be a gap.
  #update(message) {
    const first = this.messages.firstSeq;
    if (first !== null && message.seq < first && !this.messages.get(message.message_id)) return null;
    return this.messages.put(message);
  }

  #start({ message, resumed, text }) {
    const entry = this.#update(message);
    if (entry === null) return;
    if (entry.message.peek().tool.state !== "streaming") entry.streamed.value = null;
    else if (resumed) entry.streamed.value = { ...streamedText(text ?? ""), input: readPartial(text ?? "") };
    else if (entry.streamed.peek() === null) entry.streamed.value = streamedText();
  }

  #addInput({ message_id, offset, delta, input }) {
    const entry = this.messages.get(message_id);
    const streamed = entry?.streamed.peek();
    if (!streamed) return; // its record has the whole input
    const grown = addPart(streamed, offset, delta);
    // The service leaves no part out; if one is missing all the same, the record still has the whole input at the end.
    if (grown !== null) entry.streamed.value = { ...grown, input: input ?? readPartial(grown.text) ?? streamed.input };
  }

  #end({ message }, texts) {
    const entry = this.#update(message);
    if (entry) entry.streamed.value = null;
    const { name, state } = (entry?.message.peek() ?? message).tool;
    texts.push(state === "waiting" ? `${senderName(message)} asks: ${visible(name)}` : `${visible(name)}: ${words(state)}`);
  }

  #addDraft({ run_id, stream_id, offset, delta }) {
    const stream = streamOf(run_id, stream_id);
    const known = this.drafts.peek().get(stream);
    const grown = known ? addPart(known, offset, delta) : addPart(streamedText(), offset, delta);
    if (grown === null) return;
    clearTimeout(known?.timer);
    const timer = setTimeout(() => this.#endDraft(stream), DRAFT_MS);
    this.drafts.value = new Map(this.drafts.peek()).set(stream, { ...grown, timer });
  }

  #endDraft(stream) {
    if (!this.drafts.peek().has(stream)) return;
    clearTimeout(this.drafts.peek().get(stream).timer);
    const left = new Map(this.drafts.peek());
    left.delete(stream);
    this.drafts.value = left;
  }

  #setRun(run) {
    const runs = new Map(this.runs.peek());
    if (ENDED_RUNS.has(run.status)) runs.delete(run.run_id);
    else runs.set(run.run_id, run);
    this.runs.value = runs;
  }
}

// Two runs may use the same id of a call.
const streamOf = (run, call) => JSON.stringify([run, call]);

export const senderName = ({ sender }) => visible(sender.display_name || sender.handle || sender.entity_id);
