/** Runs of agents: claims, calls, ends; events of runs and spaces. The generated functions have the other operations. */
import { problemError, ProofboxError } from "./errors.js";
import { follow, type SendWithRetries } from "./event_stream.js";
import * as api from "./generated/sdk.gen.js";
import type { CallStatus, Run, RunClaim, RunFinish, ToolCallResponse } from "./generated/types.gen.js";
import type { CallEvent, GatewayEvent, RunCallOptions } from "./options.js";
import type { Proofbox } from "./proofbox.js";

const ENDED = ["completed", "failed", "cancelled"];

export class Gateway {
  readonly #proofbox: Proofbox;
  readonly #retry: SendWithRetries;

  constructor(proofbox: Proofbox, retry: SendWithRetries) {
    this.#proofbox = proofbox;
    this.#retry = retry;
  }

  /** Takes the oldest queued run, which this client then holds; undefined if there is none within `wait_s`. */
  async claimRun(claim: RunClaim = {}): Promise<Run | undefined> {
    const run = (await this.#retry(() => api.claimRun({ client: this.#proofbox.http, body: claim }))) as Run;
    return run?.run_id ? run : undefined;
  }

  /**
   * Calls a tool of a run and waits for it as long as it runs; the key needs `calls:read` for its events.
   *
   * A call that waits for a person or service for longer than `waitS` answers its status, with `wait`. The same call
   * with its `tool_call_id` again waits on.
   */
  async callTool(
    run: Run,
    tool: string,
    params: Record<string, unknown> = {},
    options: RunCallOptions = {},
  ): Promise<ToolCallResponse | CallStatus> {
    const { waitS = 0, tool_call_id = `call_${crypto.randomUUID()}`, ...rest } = options;
    const { run_id, conversation_id } = run;
    const body = { ...rest, tool_id: tool, tool_call_id, conversation_id, run_id, params };
    const headers = { ...leaseOf(run), Prefer: ["respond-async"] };
    const until = Date.now() + waitS * 1000;
    await this.#retry(() => api.makeToolCall({ client: this.#proofbox.http, body, headers }));
    const stop = new AbortController();
    const events = this.#proofbox.events(tool_call_id, conversation_id, 0, stop.signal);
    try {
      let isWaiting = false;
      for (let next = events.next(); ; ) {
        const found: IteratorResult<CallEvent> | undefined = isWaiting ? await within(until, next) : await next;
        if (found === undefined) {
          const status = await this.#proofbox.status(tool_call_id, conversation_id);
          if (status.status === "waiting") return status;
          isWaiting = false; // it was answered and runs on
          continue;
        }
        if (found.done) throw new ProofboxError(`${this.#proofbox.url}: the events ended before the call did`);
        const { name, data }: CallEvent = found.value;
        if (name === "result") return data;
        if (name === "error") throw problemError(data);
        isWaiting = name === "waiting";
        next = events.next();
      }
    } finally {
      stop.abort();
    }
  }

  /** Ends a run, as completed if nothing else is given; open waits are an error unless `cancel_waits` is set. */
  finishRun(run: Run, end: Partial<RunFinish> = {}): Promise<Run> {
    const body: RunFinish = { status: "completed", ...end };
    const request = { path: { run_id: run.run_id }, headers: leaseOf(run), body };
    return this.#retry(() => api.finishRun({ client: this.#proofbox.http, ...request }));
  }

  /** The events of a run until it has ended or `signal` ends them; a lost stream is resumed. */
  watchRun(runId: string, after = 0, signal?: AbortSignal): AsyncGenerator<GatewayEvent> {
    const client = this.#proofbox.http;
    const path = { run_id: runId };
    return follow<GatewayEvent>({
      after,
      signal,
      open: (after, listeners) => api.watchRun({ client, path, query: { after }, ...listeners }),
      isEnd: ({ name }) => ENDED.includes(name.slice("run.".length)),
      hasEnded: async () => ENDED.includes((await this.#retry(() => api.getRun({ client, path }))).status),
    });
  }

  /** The events of a space until `signal` ends them; a lost stream is resumed. After `reset`, read the messages again. */
  watchSpace(spaceId: string, after = 0, signal?: AbortSignal): AsyncGenerator<GatewayEvent> {
    const client = this.#proofbox.http;
    const path = { space_id: spaceId };
    return follow<GatewayEvent>({
      after,
      signal,
      open: (after, listeners) => api.watchSpace({ client, path, query: { after }, ...listeners }),
      hasEnded: async () => {
        await this.#retry(() => api.getSpace({ client, path }));
        return false;
      },
    });
  }
}

function leaseOf({ run_id, lease }: Run) {
  if (!lease) throw new TypeError(`run: run '${run_id}' has no lease; claim it first`);
  return { "Run-Lease": lease.number };
}

/** What a promise gives by a moment; undefined if it takes longer. */
async function within<T>(until: number, promise: Promise<T>): Promise<T | undefined> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const passed = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), Math.max(0, until - Date.now()));
  });
  try {
    return await Promise.race([promise, passed]);
  } finally {
    clearTimeout(timer);
  }
}
