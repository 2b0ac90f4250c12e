/** A stream of events as it is followed: opened again after a lost connection. */
import { backoff } from "./errors.js";

export const sleep = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

export type Fields<T> = { data?: T; error?: unknown; response?: Response };
export type SendWithRetries = <T>(send: () => Promise<Fields<T>>) => Promise<T>;

type Sent = { id?: string; event?: string; data: unknown };
type Listeners = {
  signal: AbortSignal;
  sseMaxRetryAttempts: number;
  onSseError: (error: unknown) => void;
  onSseEvent: (event: Sent) => void;
};

export interface Source<E> {
  /** The id of the last known event; 0 for none. */
  after: number;
  /** Ends the events. */
  signal: AbortSignal | undefined;
  open: (after: number, listeners: Listeners) => Promise<{ stream: AsyncIterable<unknown> }>;
  /** Whether an event is to be passed on. */
  isNew?: (event: E, after: number) => boolean;
  /** Whether nothing comes after an event. */
  isLast?: (event: E) => boolean;
  /** Whether the events come to an end, known from an event. */
  isEnd?: (event: E) => boolean;
  /** Asks whether there are no more events; a problem, such as that there is no such thing, is raised here. */
  hasEnded: (attempt: number, failure: unknown) => Promise<boolean>;
}

/** Yields events. While the service answers, lost connections are no failure: nothing may happen for hours. */
export async function* follow<E extends { id: number | null; name: string; data: any }>(
  source: Source<E>,
): AsyncGenerator<E> {
  let { after } = source;
  const { signal } = source;
  let isOver = false; // since before the stream ended
  for (let attempt = 0; ; attempt++) {
    if (signal?.aborted) return;
    const stop = new AbortController();
    const end = () => stop.abort();
    signal?.addEventListener("abort", end);
    let sent: Sent | undefined;
    let failure: unknown;
    const { stream } = await source.open(after, {
      signal: stop.signal,
      sseMaxRetryAttempts: 1, // the loop here asks again, and knows what does not exist
      onSseError: (error) => (failure = error),
      onSseEvent: (event) => (sent = event),
    });
    try {
      for await (const _ of stream) {
        if (!sent) continue;
        // Parts of texts have no id; the generated code gives them the one before.
        const id = sent.event?.endsWith("delta") ? null : Number(sent.id);
        const event = { id, name: sent.event, data: sent.data } as E;
        if (source.isNew && !source.isNew(event, after)) continue;
        [after, attempt] = [event.id ?? after, 0];
        isOver ||= source.isEnd?.(event) ?? false;
        yield event;
        if (source.isLast?.(event)) return;
      }
    } finally {
      signal?.removeEventListener("abort", end);
      stop.abort();
    }
    if (signal?.aborted || (isOver && failure === undefined)) return;
    isOver = await source.hasEnded(attempt, failure);
    if (!isOver || failure !== undefined) await sleep(backoff(attempt));
  }
}
