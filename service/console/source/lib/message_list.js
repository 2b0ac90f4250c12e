// The messages of a space in their order, in chunks: a change draws one message, a new one its chunk, whatever else there is.
import { signal } from "./ui.js";

const CHUNK = 50;

// entry: {id, message, streamed, note}, the last three are signals: the record, the arguments that are being written
// ({text, length, input} or null), and what the service answered to this tab.
export class MessageList {
  chunks = signal([]); // of {number, entries: signal([entry])}
  count = signal(0);
  #byId = new Map();
  #byNumber = new Map();

  get(id) {
    return this.#byId.get(id);
  }

  get firstSeq() {
    return this.chunks.peek()[0]?.entries.peek()[0]?.message.peek().seq ?? null;
  }

  get newest() {
    return this.chunks.peek().at(-1)?.entries.peek().at(-1)?.message.peek() ?? null;
  }

  // Adds a message, or takes it for the one that is there, unless that is newer.
  put(message) {
    const known = this.#byId.get(message.message_id);
    if (known) {
      if (message.revision > known.message.peek().revision) known.message.value = message;
      return known;
    }
    const entry = { id: message.message_id, message: signal(message), streamed: signal(null), note: signal(null) };
    this.#byId.set(entry.id, entry);
    this.#insert(entry, message.seq);
    this.count.value += 1;
    return entry;
  }

  clear() {
    this.#byId.clear();
    this.#byNumber.clear();
    this.chunks.value = [];
    this.count.value = 0;
  }

  // Drops the oldest chunks while more than `max` messages are there, up to one with a card that waits; whether it did.
  dropOldest(max) {
    let isDropped = false;
    while (this.count.peek() > max && this.chunks.peek().length > 1) {
      const [oldest, ...rest] = this.chunks.peek();
      if (oldest.entries.peek().some(isWaiting)) break;
      for (const { id } of oldest.entries.peek()) this.#byId.delete(id);
      this.#byNumber.delete(oldest.number);
      this.count.value -= oldest.entries.peek().length;
      this.chunks.value = rest;
      isDropped = true;
    }
    return isDropped;
  }

  #insert(entry, seq) {
    const number = Math.floor(seq / CHUNK);
    const chunk = this.#byNumber.get(number);
    if (!chunk) {
      const added = { number, entries: signal([entry]) };
      this.#byNumber.set(number, added);
      this.chunks.value = [...this.chunks.peek(), added].sort((a, b) => a.number - b.number);
      return;
    }
    const entries = chunk.entries.peek();
    let at = entries.length;
    while (at > 0 && entries[at - 1].message.peek().seq > seq) at -= 1;
    chunk.entries.value = [...entries.slice(0, at), entry, ...entries.slice(at)];
  }
}

const isWaiting = (entry) => entry.message.peek().tool?.state === "waiting";
