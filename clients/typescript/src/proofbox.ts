/** A thin class over the generated functions: ids, retries, events, files. */
import { backoff, isProblem, problemError, ProofboxError, unreachable } from "./errors.js";
import { createClient, type Client } from "./generated/client/index.js";
import { follow, sleep, type Fields } from "./event_stream.js";
import { Gateway } from "./gateway.js";
import * as api from "./generated/sdk.gen.js";
import type {
  Attachment,
  CallStatus,
  ToolCallRequest,
  ToolCallResponse,
} from "./generated/types.gen.js";
import { OutputFile } from "./output_file.js";
import type { CallEvent, CallOptions, ProofboxOptions, RenderOptions, RunOptions, RunResult } from "./options.js";

const RETRY_AFTER_S_MAX = 90;
const isLast = (event: CallEvent) => event.name === "result" || event.name === "error";
const newId = (prefix: string) => `${prefix}_${crypto.randomUUID().replaceAll("-", "")}`;
const ENDED = ["done", "failed", "cancelled"];

export class Proofbox {
  readonly url: string;
  /** For the functions of `@proofbox/client/generated`. */
  readonly http: Client;
  /** Runs of agents and spaces. */
  readonly gateway: Gateway;
  readonly #retries: number;

  constructor({ url = "http://127.0.0.1:8080", apiKey, retries = 4, fetch }: ProofboxOptions = {}) {
    this.url = url.replace(/\/+$/, "");
    this.#retries = retries;
    const headers = apiKey ? { Authorization: `Bearer ${apiKey}` } : {};
    // No redirect: the key goes to this service only.
    this.http = createClient({ baseUrl: this.url, headers, redirect: "error", ...(fetch ? { fetch } : {}) });
    this.gateway = new Gateway(this, (send) => this.#retry(send));
  }

  /** Runs a program. A program that fails is a result: `ok` is false. */
  async run(code: string, options: RunOptions = {}): Promise<RunResult> {
    const { files, promises = [], language = "python", params, ...call } = options;
    const contract = promises.map((promise) =>
      typeof promise === "string"
        ? { [/[*?]/.test(promise) ? "glob" : "filename"]: promise, description: promise }
        : { description: promise.filename ?? promise.glob, ...promise },
    );
    const promised = contract.length ? { contract } : { explore: true };
    const tool = `exec_tools.execute_code_${language}`;
    return this.#result(tool, { ...promised, ...params }, { ...call, code }, files);
  }

  /** Renders a text; the extension of the output is the format: pdf, docx, pptx, png or xlsx. */
  async render(source: string, outputName: string, options: RenderOptions = {}): Promise<RunResult> {
    const { files = {}, params, ...call } = options;
    const tool = `rendering_tools.write_${outputName.split(".").pop()}`;
    const turn = call.turn_id ?? "turn_1";
    const assets = [...(call.assets ?? [])];
    for (const [name, content] of Object.entries(files)) {
      assets.push({ physical_path: `${turn}/files/${name}`, base64: await base64(content) });
    }
    return this.#result(tool, { path: outputName, content: source, ...params }, { ...call, assets });
  }

  /** Calls a tool and waits for its answer. A retry sends the same id, so the call runs once. */
  async call(toolId: string, params: Record<string, unknown>, options: CallOptions = {}): Promise<ToolCallResponse> {
    const { onEvent, ...rest } = options;
    const ids = await idsOf(rest);
    const body: ToolCallRequest = {
      turn_id: "turn_1",
      ...rest,
      tool_id: toolId,
      params,
      ...ids,
    };
    const headers = onEvent ? { Prefer: ["respond-async"] } : {};
    const send = () => api.makeToolCall({ client: this.http, body, headers });
    const answer = await this.#retry<ToolCallResponse | CallStatus>(send);
    if (!onEvent) return answer as ToolCallResponse;
    for await (const event of this.events(body.tool_call_id, body.conversation_id)) {
      onEvent(event);
      if (event.name === "result") return event.data;
      if (event.name === "error") throw problemError(event.data);
    }
    throw new ProofboxError(`${this.url}: the events ended before the call did`);
  }

  status(callId: string, conversation?: string): Promise<CallStatus> {
    return this.#retry(() => api.getToolCall({ client: this.http, ...callOf(callId, conversation) }));
  }

  cancel(callId: string, conversation?: string): Promise<CallStatus> {
    return this.#retry(() => api.cancelToolCall({ client: this.http, ...callOf(callId, conversation) }));
  }

  /** The events of a call until it has ended or `signal` ends them; a lost stream is resumed after its last event. */
  events(callId: string, conversation?: string, after = 0, signal?: AbortSignal): AsyncGenerator<CallEvent> {
    return follow<CallEvent>({
      after,
      signal,
      open: (after, listeners) =>
        api.watchToolCall({ client: this.http, ...callOf(callId, conversation, after), ...listeners }),
      // The last one may have a smaller id: of a call that ended before, only this one may be left.
      isNew: (event, after) => event.id > after || isLast(event),
      isLast,
      hasEnded: async (attempt, failure) => {
        const { status } = await this.status(callId, conversation);
        if (ENDED.includes(status) && attempt >= this.#retries) throw unreachable(this.url, failure);
        return false;
      },
    });
  }

  /** Stores a file as an attachment of a turn; every program of the conversation finds it by its name. */
  upload(
    conversation: string,
    name: string,
    content: Blob | string | Uint8Array<ArrayBuffer>,
    turn = "turn_1",
  ): Promise<Attachment> {
    const body = content instanceof Blob ? content : new Blob([content]);
    const path = { conversation_id: conversation, turn_id: turn, name };
    const headers = { "Content-Type": "application/octet-stream" };
    return this.#retry(() => api.putAttachment({ client: this.http, path, body, headers, bodySerializer: null }));
  }

  /** The bytes of a file, by its logical path. */
  download(conversation: string, path: string, version?: number): Promise<ReadableStream<Uint8Array>> {
    const place = { conversation_id: conversation, logical_path: path };
    const query = version === undefined ? {} : { version };
    return this.#retry(
      () => api.getArtifact({ client: this.http, path: place, query, parseAs: "stream" }) as Promise<Fields<any>>,
    );
  }

  /** All files and attachments of a conversation, the oldest first. */
  async *files(conversation: string): AsyncGenerator<OutputFile> {
    for (let after = 0, more = true; more; ) {
      const path = { conversation_id: conversation };
      const page = await this.#retry(() => api.listArtifacts({ client: this.http, path, query: { after } }));
      for (const listed of page.artifacts) yield new OutputFile(this, conversation, listed);
      ({ last: after, more } = page);
    }
  }

  async #result(
    tool: string,
    params: Record<string, unknown>,
    options: CallOptions,
    files: RunOptions["files"] = {},
  ): Promise<RunResult> {
    const ids = await idsOf(options);
    const { conversation_id: conversation, tool_call_id: callId } = ids;
    for (const [name, content] of Object.entries(files)) {
      await this.upload(conversation, name, content, options.turn_id ?? "turn_1");
    }
    const response = await this.call(tool, params, { ...options, ...ids });
    const stored = (response.artifacts ?? []).filter((each) => each.verdict === "produced" && each.sha256);
    return {
      ok: response.ok,
      report: response.report,
      text: response.text ?? response.report,
      stdout: response.output?.stdout ?? "",
      stderr: response.output?.stderr ?? "",
      files: stored.map((each) => new OutputFile(this, conversation, each)),
      response,
      callId,
      conversation,
    };
  }

  async #retry<T>(send: () => Promise<Fields<T>>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      const { data, error, response } = await send();
      if (response?.ok && error === undefined) return data as T;
      const failure = response && isProblem(error) ? problemError(error, response) : unreachable(this.url, error, response);
      const pause = Math.max(failure.retryAfterS ?? 0, backoff(attempt));
      if (!failure.retryable || attempt >= this.#retries || pause > RETRY_AFTER_S_MAX) throw failure;
      await sleep(pause);
    }
  }
}

/** Ids of a call. The conversation follows from a given id of the call: so the call is the same in every process. */
async function idsOf({ tool_call_id = newId("call"), conversation_id }: CallOptions) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(tool_call_id)));
  const hex = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return { tool_call_id, conversation_id: conversation_id ?? `conv_${hex.slice(0, 32)}` };
}

function callOf(callId: string, conversation?: string, after?: number) {
  const query = { ...(conversation ? { conversation_id: conversation } : {}), ...(after ? { after } : {}) };
  return { path: { tool_call_id: callId }, query };
}

/** Documents find files beside them by name, and attachments not: files of a document go as assets. */
async function base64(content: Blob | string | Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = new Uint8Array(await new Blob([content]).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}
