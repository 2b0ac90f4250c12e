// One call as it runs: its state in signals, its output in a buffer. It survives lost connections.
import { get, lost, path, post, request } from "./api.js";
import { watchCall } from "./events.js";
import { bytes } from "./format.js";
import { OutputBuffer } from "./output_buffer.js";
import { batch, computed, signal } from "./ui.js";

const LEFT_OUT = /\[… \d+ bytes of std(?:out|err) left out …\]\n?/; // the marker in the output of an answer
const SEND_PAUSES_MS = [500, 1500, 3000];

export class CallWatch {
  // "sending" (or "loading"), "queued", "running", and at the end "done", "failed" or "cancelled".
  state = signal("sending");
  position = signal(0);
  acquired = signal(null);
  connection = signal("live");
  response = signal(null);
  problem = signal(null);
  startedAt = Date.now();
  elapsed_ms = signal(0);
  output = new OutputBuffer();
  isOver = computed(() => ["done", "failed", "cancelled"].includes(this.state.value));
  #isPartial = false;
  #controller = new AbortController();

  constructor(conversation, call) {
    this.conversation = conversation;
    this.call = call;
  }

  // Sends the call and follows it. The id makes a second attempt the same call, so none runs twice.
  async start(body) {
    const timer = setInterval(() => { this.elapsed_ms.value = Date.now() - this.startedAt; }, 100);
    try {
      await this.#send(body);
      await this.#follow();
    } catch (problem) {
      this.#fail(problem);
    } finally {
      clearInterval(timer);
      this.elapsed_ms.value = Date.now() - this.startedAt;
    }
  }

  // Follows a call that exists, or shows its stored answer.
  async join() {
    this.state.value = "loading";
    const timer = setInterval(() => { if (!this.isOver.value) this.elapsed_ms.value = Date.now() - this.startedAt; }, 100);
    try {
      const status = await this.#status();
      this.startedAt = new Date(status.created).getTime();
      if (status.status === "queued" || status.status === "running") this.state.value = status.status;
      await this.#follow();
    } catch (problem) {
      this.#fail(problem);
    } finally {
      clearInterval(timer);
    }
  }

  // Ends the call; the page learns of it by the event stream.
  async cancel() {
    await request(path`v1/tool-calls/${this.call}`, { method: "DELETE", query: { conversation_id: this.conversation } });
  }

  // Stops following; the call continues.
  leave() {
    this.#controller.abort();
  }

  #status() {
    const { signal: aborted } = this.#controller;
    return get(path`v1/tool-calls/${this.call}`, { conversation_id: this.conversation }, { signal: aborted });
  }

  async #send(body) {
    for (let attempt = 0; ; attempt++) {
      try {
        const status = await post("v1/tool-calls", body, { headers: { Prefer: "respond-async" }, signal: this.#controller.signal });
        this.connection.value = "live";
        if (status.status === "queued" || status.status === "running") this.state.value = status.status;
        return;
      } catch (problem) {
        if (problem.code !== "no_connection" || attempt >= SEND_PAUSES_MS.length) throw problem;
        this.connection.value = "lost";
        await new Promise((resolve) => setTimeout(resolve, SEND_PAUSES_MS[attempt]));
      }
    }
  }

  async #follow() {
    const options = { signal: this.#controller.signal, onConnection: (state) => { this.connection.value = state; } };
    for await (const event of watchCall(this.call, this.conversation, options)) await this.#apply(event);
  }

  async #apply({ name, data }) {
    if (name === "stdout" || name === "stderr") {
      if (this.state.value === "queued") this.state.value = "running";
      this.output.add(name, data.text);
      this.#isPartial ||= data.truncated;
    } else if (name === "queued") {
      batch(() => { this.state.value = "queued"; this.position.value = data.position; });
    } else if (name === "started") {
      batch(() => { this.state.value = "running"; this.acquired.value = data.acquired; });
    } else if (name === "result") {
      this.#end("done", data, null);
    } else if (name === "error") {
      // The answer of a cancelled call has what it printed and its report.
      const status = data.code === "cancelled" ? await this.#status().catch(() => null) : null;
      this.#end(data.code === "cancelled" ? "cancelled" : "failed", status?.response ?? null, data);
    }
  }

  #end(state, response, problem) {
    // The log of events may be shorter than the answer.
    if (response) this.#completeOutput(response);
    batch(() => {
      this.response.value = response;
      this.problem.value = problem;
      this.state.value = state;
      if (response?.timings_ms.total) this.elapsed_ms.value = response.timings_ms.total;
    });
  }

  // A service passes on a part of a long output; its answer has the end.
  #completeOutput({ output: { combined }, usage }) {
    if (this.output.chars === 0) {
      this.output.add("stdout", combined);
    } else if (this.#isPartial) {
      const [, ...ends] = combined.split(LEFT_OUT);
      const end = ends.at(-1) ?? "";
      const missing = usage.stdout_bytes + usage.stderr_bytes - this.output.chars - end.length;
      const text = missing > 0 ? `${bytes(missing)} were not passed on` : "a part was not passed on";
      this.output.add("stderr", `\n[… ${text} (PROOFBOX_PASS_ON_BYTES); the end: …]\n`);
      this.output.add("stdout", end);
    }
  }

  #fail(problem) {
    if (this.#controller.signal.aborted) return;
    this.#end("failed", null, problem.code ? problem : Object.assign(lost(problem), { message: String(problem) }));
  }
}
