/** Options and results of the class `Proofbox`. */
import type {
  ArtifactSpec,
  ExecParams,
  ToolCallRequest,
  ToolCallResponse,
  WriteDocxParams,
  WritePdfParams,
  WritePngParams,
  WritePptxParams,
  WriteXlsxParams,
} from "./generated/types.gen.js";
import type { OutputFile } from "./output_file.js";

export interface ProofboxOptions {
  /** The address of the service; http://127.0.0.1:8080 if it is not given. */
  url?: string;
  apiKey?: string;
  /** How often a request is sent again after a lost connection or a retryable problem; 4 if it is not given. */
  retries?: number;
  fetch?: typeof fetch;
}

export interface CallOptions extends Partial<Omit<ToolCallRequest, "tool_id" | "params">> {
  /** Called with each event while the call runs. */
  onEvent?: (event: CallEvent) => void;
}

type Files = Record<string, Blob | string | Uint8Array<ArrayBuffer>>;
type Entry = Omit<ArtifactSpec, "description"> & { description?: string };

export interface RunOptions extends Omit<CallOptions, "code"> {
  /** Files that the program finds by their names. */
  files?: Files;
  /** Files that the program must write; a name with * or ? is a pattern. Without any, only the exit status counts. */
  promises?: (string | Entry)[];
  language?: "python" | "bash" | "node";
  /** Other parameters of the tool, such as stdin, args, env, timeout_s. */
  params?: Omit<ExecParams, "contract" | "explore">;
}

type RenderParams = WritePdfParams | WriteDocxParams | WritePptxParams | WritePngParams | WriteXlsxParams;
type WithoutContent<T> = T extends unknown ? Omit<T, "path" | "content"> : never;

export interface RenderOptions extends Omit<CallOptions, "code"> {
  /** Pictures and other texts that the document names. */
  files?: Files;
  /** Parameters of the tool, such as theme or toc. */
  params?: WithoutContent<RenderParams>;
}

export interface CallEvent {
  id: number;
  name: "queued" | "started" | "stdout" | "stderr" | "connection" | "waiting" | "result" | "error";
  data: any;
}

export interface RunCallOptions
  extends Partial<Omit<ToolCallRequest, "tool_id" | "params" | "run_id" | "conversation_id">> {
  /** How long to wait in all for the answer of a person or service; 0 if it is not given. */
  waitS?: number;
}

export interface GatewayEvent {
  /** Its number; null for a part of a text that is being written. */
  id: number | null;
  /** Such as run.completed or message.created. */
  name: string;
  data: any;
}

export interface RunResult {
  ok: boolean;
  report: string;
  /** The answer for a model, complete by itself: append it as the tool message. */
  text: string;
  stdout: string;
  stderr: string;
  files: OutputFile[];
  response: ToolCallResponse;
  callId: string;
  conversation: string;
}
