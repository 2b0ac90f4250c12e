// The events of a space. A client that is new asks behind the last id there can be: the service then sends `reset` with the newest one.
import { request, lost, path } from "./api.js";
import { BAD_EVENT, PAUSES_MS, RETRIED, pause, readEvents } from "./events.js";

const BEHIND_ALL = "9223372036854775807";

// Passes {id, name, data} of each event to onEvent, until the abort signal. After a lost connection, and when onEvent fails for want
// of one, it goes on behind the last event that was handled. onConnection receives "live" and "lost"; answers that do not pass by
// themselves are thrown.
export async function watchSpace(space, { signal, onConnection, onEvent }) {
  let last = BEHIND_ALL;
  let losses = 0;
  while (!signal.aborted) {
    try {
      const answer = await request(path`v1/spaces/${space}/events`, { query: { after: last }, signal });
      await onEvent({ id: 0, name: "connected", data: null });
      onConnection("live");
      for await (const event of readEvents(answer.body)) {
        await onEvent(event);
        losses = 0;
        if (event.id) last = event.id;
      }
      throw lost(null); // the service stops, or the token has expired: the next request says which
    } catch (problem) {
      if (signal.aborted) return;
      if (problem.code === BAD_EVENT || !RETRIED.has(problem.status ?? 0)) throw problem;
      onConnection("lost");
      await pause(PAUSES_MS[Math.min(losses++, PAUSES_MS.length - 1)], signal);
    }
  }
}
