/** Runs and spaces, at the running service at PROOFBOX_URL and at a server that answers from a script. */
import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import { test } from "node:test";

import * as api from "../src/generated/index.js";
import { Proofbox, type CallStatus, type Run, type Space, type ToolCallResponse } from "../src/index.js";
import { event, scripted } from "./scripted.js";

const url = process.env.PROOFBOX_URL;
assert.ok(url, "set PROOFBOX_URL to the address of a running service");
const proofbox = new Proofbox({ url });
const { gateway, http: client } = proofbox;

const tools = [
  { name: "ask", description: "Asks Ann", executionType: "space" },
  { name: "show", description: "Shows", executionType: "gateway", execution: { output: "{{input}}" } },
];

test("a run is claimed, its tools are called, and it is ended", async () => {
  const body = { version: "2", agent: { name: "clerk" }, tools } as any;
  await api.putAgent({ client, path: { agent_id: "clerk" }, body, throwOnError: true });
  const ann = { type: "human", handle: "ann", display_name: "Ann" } as const;
  await api.putEntity({ client, path: { entity_id: "ann" }, body: ann, throwOnError: true });
  const members = ["ann", "agent:clerk"];
  const { data } = await api.createSpace({ client, body: { name: "Desk", members }, throwOnError: true });
  const { space_id } = data as Space;
  await api.createRun({ client, body: { agent_id: "clerk", space_id, queued: true }, throwOnError: true });

  const run = await gateway.claimRun({ agent_ids: ["clerk"], wait_s: 5 });
  assert.ok(run);
  assert.equal(await gateway.claimRun({ agent_ids: ["clerk"] }), undefined);
  const shown = (await gateway.callTool(run, "show", { total: 3 })) as ToolCallResponse;
  assert.deepEqual([shown.ok, shown.ret], [true, { total: 3 }]);

  const waiting = (await gateway.callTool(run, "ask", {}, { tool_call_id: "lunch" })) as CallStatus;
  assert.deepEqual([waiting.status, waiting.wait?.kind], ["waiting", "space"]);
  const asking = gateway.callTool(run, "ask", {}, { tool_call_id: "lunch", waitS: 600 });
  const message_id = waiting.wait?.message_id ?? "";
  const answer = { result: "soup", entity_id: "ann" };
  await api.answerMessage({ client, path: { space_id, message_id }, body: answer, throwOnError: true });
  assert.equal(((await asking) as ToolCallResponse).ret, "soup");

  assert.equal((await gateway.finishRun(run, { summary: "asked" })).status, "completed");
  const names = [];
  for await (const { name } of gateway.watchRun(run.run_id)) names.push(name);
  assert.deepEqual([names[0], names.at(-1)], ["run.queued", "run.completed"]);
  for await (const { id } of gateway.watchRun(run.run_id, 10_000)) assert.fail(`event ${id}`);

  const stop = new AbortController();
  const seen: string[] = [];
  for await (const { name } of gateway.watchSpace(space_id, 0, stop.signal)) {
    seen.push(name);
    if (name === "tool-call.waiting") stop.abort();
  }
  assert.equal(seen[0], "member.joined");
  await assert.rejects(gateway.watchSpace("nowhere").next(), { code: "unknown_space" });
});

test("a run without a lease calls nothing", async () => {
  const run = { run_id: "r1", conversation_id: "c1", lease: null } as Run;
  await assert.rejects(gateway.callTool(run, "show"), /run 'r1' has no lease; claim it first/);
});

test("a quiet space is watched however often its stream is cut, and parts of texts have no id", async () => {
  const streams = [": keep-alive\n\n", "", event(8, "message.created", {}), "event: message.delta\ndata: {}\n\n"];
  const asked: (string | null)[] = [];
  const listener: RequestListener = (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://h");
    const isEvents = pathname.endsWith("/events");
    if (isEvents) asked.push(searchParams.get("after"));
    response.setHeader("Content-Type", isEvents ? "text/event-stream" : "application/json");
    response.end(isEvents ? streams.shift() : JSON.stringify({ space_id: "s1" }));
  };
  await scripted(listener, async (server) => {
    const events = new Proofbox({ url: server, retries: 0 }).gateway.watchSpace("s1", 7);
    const found = [(await events.next()).value, (await events.next()).value];
    assert.deepEqual(found.map(({ id, name }) => [id, name]), [[8, "message.created"], [null, "message.delta"]]);
    await events.return(undefined);
  });
  assert.deepEqual(asked, ["7", "7", "7", "8"]);
});

test("the last events of a run arrive that ended while its stream was cut", async () => {
  const streams = ["", event(9, "run.completed", {})];
  const listener: RequestListener = (request, response) => {
    const isEvents = request.url?.includes("/events");
    response.setHeader("Content-Type", isEvents ? "text/event-stream" : "application/json");
    response.end(isEvents ? streams.shift() : JSON.stringify({ status: "completed" }));
  };
  await scripted(listener, async (server) => {
    const names = [];
    for await (const { name } of new Proofbox({ url: server, retries: 0 }).gateway.watchRun("r1", 8)) names.push(name);
    assert.deepEqual(names, ["run.completed"]);
  });
});
