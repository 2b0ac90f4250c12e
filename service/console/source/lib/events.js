// Event streams, read with fetch: EventSource cannot send a key.
import { ProblemError, lost, path, request } from "./api.js";
import { parseJson } from "./json_text.js";

export const BAD_EVENT = "bad_event";
export const PAUSES_MS = [500, 1000, 2000, 4000, 8000];
export const RETRIED = new Set([0, 408, 425, 429, 500, 502, 503, 504]);

// Yields {id, name, data} of each event once, from `after` to the terminal one. A lost connection is opened again
// behind the last event; onConnection receives "live" and "lost". Answers that do not pass by themselves are thrown.
export async function* watchCall(call, conversation, { after = 0, signal, onConnection = () => {} } = {}) {
  let last = after;
  let losses = 0;
  while (true) {
    try {
      const query = { conversation_id: conversation, after: last || undefined };
      const answer = await request(path`v1/tool-calls/${call}/events`, { query, signal });
      onConnection("live");
      for await (const event of readEvents(answer.body)) {
        losses = 0;
        if (event.id) last = event.id; // an event without one is not a place to go on from
        yield event;
        if (event.name === "result" || event.name === "error") return;
      }
      throw lost(null); // the stream ended before the call did
    } catch (problem) {
      if (signal?.aborted) return;
      const status = problem.status ?? 0; // an error of the stream itself has none
      if (problem.code === BAD_EVENT || !RETRIED.has(status)) throw problem;
      onConnection("lost");
      await pause(PAUSES_MS[Math.min(losses++, PAUSES_MS.length - 1)], signal);
      if (signal?.aborted) return;
    }
  }
}

export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      let start = 0;
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n", start)) {
        const event = parseEvent(rest.slice(start, end));
        start = end + 2;
        if (event) yield event;
      }
      rest = rest.slice(start);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

export function parseEvent(text) {
  let id = 0;
  let name = "message";
  const data = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("data: ")) data.push(line.slice(6));
    else if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("id: ")) id = Number(line.slice(4));
  }
  return data.length ? { id, name, data: parseData(data.join("\n")) } : null; // comments keep the connection alive
}

function parseData(text) {
  try {
    return parseJson(text);
  } catch (cause) {
    const detail = "An event is not JSON; a proxy may have changed it. Reload the page to see the rest.";
    throw new ProblemError({ code: BAD_EVENT, status: 0, detail, retryable: false, cause });
  }
}

export function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    const wake = () => { clearTimeout(timer); resolve(); };
    signal?.addEventListener("abort", wake, { once: true });
    addEventListener("online", wake, { once: true });
  });
}
