import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { Room } from "../../../service/console/source/lib/room.js";

const STEP_MS = 5;
const LIMIT_STEPS = 2_000;
const sender = { entity_id: "agent:a", handle: "a", display_name: "A" };
let service;
let room;

const text = (seq, more = {}) => ({ message_id: `m${seq}`, seq, revision: 1, kind: "text", run_id: null, sender, text: `text ${seq}`, tool: null, ...more });
const call = (seq, state, more = {}) => text(seq, { kind: "tool_call", text: "", run_id: "run_1", tool: { name: "ask", state }, ...more });

// A space over HTTP: its messages, and a stream of events that the test writes.
class Service {
  messages = [];
  #encoder = new TextEncoder();
  #id = 0;

  answer(url) {
    const { pathname, searchParams } = new URL(url);
    if (pathname.endsWith("/events")) {
      const body = new ReadableStream({ start: (stream) => { this.stream = stream; this.send("reset", { last: 0 }); } });
      return new Response(body);
    }
    if (!pathname.endsWith("/messages")) return Response.json({ space_id: "s", name: "S", members: [], last_seq: this.messages.at(-1)?.seq ?? 0 });
    const [before, behind, limit] = ["before", "after", "limit"].map((name) => (searchParams.has(name) ? Number(searchParams.get(name)) : null));
    if (behind !== null) {
      const found = this.messages.filter(({ seq }) => seq > behind);
      return Response.json({ items: found.slice(0, limit), next: found.length > limit ? found[limit - 1].seq : null });
    }
    const found = this.messages.filter(({ seq }) => before === null || seq < before);
    return Response.json({ items: found.slice(-limit), next: found.length > limit ? found.at(-limit).seq : null });
  }

  send(name, data) {
    this.stream.enqueue(this.#encoder.encode(`id: ${++this.#id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`));
  }

  post(message) {
    this.messages.push(message);
    this.send("message.created", { message, stream_id: null });
  }
}

const shown = () => room.messages.chunks.peek().flatMap((chunk) => chunk.entries.peek().map(({ message }) => message.peek().seq));
const range = (first, last) => Array.from({ length: last - first + 1 }, (_, i) => first + i);

async function until(isThere) {
  for (let step = 0; step < LIMIT_STEPS; step++) {
    if (isThere()) return;
    await new Promise((resolve) => { setTimeout(resolve, STEP_MS); });
  }
  assert.fail("the page did not get there");
}

async function open(messages) {
  service.messages = messages;
  room.follow();
  await until(() => room.isLoaded.peek());
}

// All events before have been applied when this message is there.
async function settle() {
  const seq = service.messages.at(-1).seq + 1;
  service.post(text(seq));
  await until(() => room.messages.get(`m${seq}`));
}

beforeEach(() => {
  room?.leave();
  service = new Service();
  room = new Room("s");
  globalThis.fetch = async (url) => service.answer(url);
});
after(() => room.leave());

test("an event of a message that is not loaded leaves no gap before the others", async () => {
  await open(range(1, 300).map((seq) => text(seq)));
  assert.deepEqual(shown(), range(201, 300));
  service.send("tool-call.complete", { stream_id: "c", message: call(10, "done", { revision: 3 }) });
  await settle();
  assert.deepEqual(shown(), range(201, 301));
  await room.loadEarlier();
  assert.deepEqual(shown(), range(101, 301));
  assert.equal(room.hasEarlier.peek(), true);
});

test("messages stay while they are read, and go when the reader is at the end again", async () => {
  await open(range(1, 1_950).map((seq) => text(seq)));
  while (room.hasEarlier.peek()) await room.loadEarlier();
  room.isReaderAtEnd = false;
  for (const seq of range(1_951, 2_100)) service.post(text(seq));
  await settle();
  assert.equal(shown()[0], 1);
  room.isReaderAtEnd = true;
  await settle();
  assert.ok(shown().length <= 2_000);
  assert.equal(room.hasEarlier.peek(), true);
});

test("a card that waits for an answer is not dropped", async () => {
  await open([call(1, "waiting"), ...range(2, 1_950).map((seq) => text(seq))]);
  while (room.hasEarlier.peek()) await room.loadEarlier();
  for (const seq of range(1_951, 2_100)) service.post(text(seq));
  await settle();
  assert.equal(shown()[0], 1);
  service.send("tool-call.complete", { stream_id: "c", message: call(1, "done", { revision: 2 }) });
  await settle();
  assert.ok(shown()[0] > 1);
});

test("a reader of older messages keeps them when the connection is lost", async () => {
  await open(range(1, 2_300).map((seq) => text(seq)));
  room.isReaderAtEnd = false;
  while (room.hasEarlier.peek()) await room.loadEarlier();
  service.send("reset", { last: 0 });
  await settle();
  assert.equal(shown()[0], 1);
});

test("arguments and texts of two runs with the same id of a call stay apart", async () => {
  await open([text(1)]);
  for (const [seq, run_id] of [[2, "run_1"], [3, "run_2"]]) {
    service.messages.push(text(seq));
    service.send("tool-call.start", { stream_id: "c", message: call(seq, "streaming", { run_id }) });
  }
  service.send("tool-input-delta", { stream_id: "c", message_id: "m2", offset: 0, delta: '{"a": 1' });
  service.send("tool-input-delta", { stream_id: "c", message_id: "m3", offset: 0, delta: '{"b": 2' });
  service.send("message.delta", { stream_id: "d", run_id: "run_1", message_id: null, offset: 0, delta: "one" });
  service.send("message.delta", { stream_id: "d", run_id: "run_2", message_id: null, offset: 0, delta: "two" });
  await settle();
  assert.deepEqual([room.messages.get("m2"), room.messages.get("m3")].map(({ streamed }) => streamed.peek().text), ['{"a": 1', '{"b": 2']);
  assert.deepEqual([...room.drafts.peek().values()].map((each) => each.text), ["one", "two"]);
  service.send("message.created", { stream_id: "d", message: text(5, { run_id: "run_2" }) });
  service.messages.push(text(5));
  await settle();
  assert.deepEqual([...room.drafts.peek().values()].map((each) => each.text), ["one"]);
  room.drafts.peek().forEach(({ timer }) => clearTimeout(timer));
});
