/** Errors of the service and of the connection, and the pauses between retries. */
import type { Problem } from "./generated/types.gen.js";

/** An error of the service, with its problem document, or of the connection: then `problem` is undefined. */
export class ProofboxError extends Error {
  constructor(
    message: string,
    readonly problem?: Problem,
    readonly retryAfterS?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "ProofboxError";
  }
  get code(): string {
    return this.problem?.code ?? "unreachable";
  }
  get retryable(): boolean {
    return this.problem?.retryable ?? true;
  }
}

/** The bytes that arrived are not those of the file: damaged, or a later version. */
export class DamagedDownloadError extends ProofboxError {
  override get code(): string {
    return "damaged_download";
  }
  override get retryable(): boolean {
    return false;
  }
}

/** How long to wait before an attempt, in seconds. */
export const backoff = (attempt: number) => Math.min(0.2 * 2 ** attempt, 5) * (0.5 + Math.random() / 2);
export const isProblem = (error: unknown): error is Problem =>
  typeof error === "object" && error !== null && "code" in error && "retryable" in error;

export function problemError(problem: Problem, response?: Response): ProofboxError {
  const seconds = Number.parseInt(response?.headers.get("Retry-After") ?? "", 10);
  const fields = (problem.errors ?? []).map((each) => `${each.field}: ${each.message}`).join("; ");
  const message = `${problem.code}: ${problem.detail}${fields ? ` (${fields})` : ""}`;
  return new ProofboxError(message, problem, Number.isNaN(seconds) ? undefined : seconds);
}

export function unreachable(url: string, cause: unknown, response?: Response): ProofboxError {
  const what = response ? `HTTP ${response.status} without a problem document` : `no answer (${String(cause)})`;
  const advice = "see whether this is the address of a running Proofbox service";
  return new ProofboxError(`${url}: ${what}; ${advice}`, undefined, undefined, { cause });
}
