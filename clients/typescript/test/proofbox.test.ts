/** The client against the running service at PROOFBOX_URL, and against a server that answers from a script. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { openAsBlob } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Proofbox, ProofboxError, type CallEvent } from "../src/index.js";
import { event, scripted } from "./scripted.js";

const url = process.env.PROOFBOX_URL;
assert.ok(url, "set PROOFBOX_URL to the address of a running service");
const proofbox = new Proofbox({ url });

const problem = (code: string, status: number, retryable: boolean) =>
  JSON.stringify({ title: "", status, detail: "a detail", code, request_id: "r", retryable, where: "test" });

test("a program reads its files, and its promises come back", async () => {
  const code = "text = open('in.txt').read()\nopen('files/out.txt', 'w').write(text * 2)\nprint(len(text))";
  const result = await proofbox.run(code, { files: { "in.txt": "ünï" }, promises: ["out.txt"] });
  assert.deepEqual([result.ok, result.stdout, result.files.map((file) => file.name)], [true, "3\n", ["out.txt"]]);
  assert.equal(await result.files[0]?.text(), "ünïünï");
  const listed = [];
  for await (const file of proofbox.files(result.conversation)) listed.push(file.name);
  assert.deepEqual(listed.sort(), ["in.txt", "out.txt"]);
});

test("a program that fails is a result", async () => {
  const result = await proofbox.run("exit 3", { language: "bash" });
  assert.deepEqual([result.ok, result.response.error?.code], [false, "nonzero_exit"]);
});

test("a document is rendered", async () => {
  const files = { "logo.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>' };
  const result = await proofbox.render("# Title\n\n![](logo.svg)", "a.pdf", { files, params: { theme: "dark", toc: true } });
  assert.doesNotMatch(result.report, /missing/);
  const bytes = await result.files[0]?.bytes();
  assert.equal(new TextDecoder().decode(bytes?.slice(0, 5)), "%PDF-");
});

test("output arrives while the program runs, and the call can be cancelled", async () => {
  const seen: CallEvent[] = [];
  const ids = { tool_call_id: "live", conversation_id: "typescript_live" };
  const onEvent = (event: CallEvent) => {
    seen.push(event);
    if (event.name === "stdout") void proofbox.cancel(ids.tool_call_id, ids.conversation_id);
  };
  const code = "import time\nprint('first', flush=True)\ntime.sleep(1000)";
  await assert.rejects(proofbox.run(code, { ...ids, onEvent }), { name: "ProofboxError", code: "cancelled" });
  assert.equal(seen.find((event) => event.name === "stdout")?.data.text, "first\n");
  assert.equal((await proofbox.status(ids.tool_call_id, ids.conversation_id)).status, "cancelled");
});

test("a call whose answer is lost runs once", async () => {
  const sent: string[] = [];
  const losing: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    sent.push(await request.clone().text());
    const response = await fetch(request);
    if (sent.length > 1) return response;
    await response.arrayBuffer(); // the service has answered, and the client does not see it
    throw new TypeError("the connection was lost");
  };
  const client = new Proofbox({ url, fetch: losing });
  const code = "open('files/once.txt', 'a').write('x')";
  const result = await client.run(code, { promises: ["once.txt"] });
  assert.equal(sent.length, 2);
  assert.equal(sent[0], sent[1]);
  const file = result.files[0];
  assert.ok(file);
  assert.equal(await new Response(await proofbox.download(result.conversation, file.facts.logical_path)).text(), "x");
  await assert.rejects(proofbox.download(result.conversation, file.facts.logical_path, 2), { code: "unknown_artifact" });
});

test("an id of a call alone is the same call in every process", async () => {
  const bodies: string[] = [];
  const listener: RequestListener = async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    bodies.push(body);
    response.setHeader("Content-Type", "application/json").end(JSON.stringify({ ok: true, report: "", blocks: [] }));
  };
  await scripted(listener, async (server) => {
    for (const tool_call_id of ["t1", "t1", "t2"]) await new Proofbox({ url: server }).run("1", { tool_call_id });
  });
  assert.equal(bodies[0], bodies[1]);
  const [first, , other] = bodies.map((body) => JSON.parse(body).conversation_id);
  assert.equal(first, "conv_628b49d96dcde97a430dd4f597705899");
  assert.notEqual(first, other);
});

test("a file is read in its version, and other bytes are an error", async () => {
  const sha256 = createHash("sha256").update("abc").digest("hex");
  const path = { logical_path: "fi:turn_1.files/a", physical_path: "turn_1/files/a" };
  const run = { ok: true, report: "", blocks: [], artifacts: [{ ...path, verdict: "produced", sha256 }] };
  const page = { artifacts: [{ ...path, version: 3, sha256 }], last: 1, more: false };
  const contents = ["abc", "abd", "abc", "ab"];
  const asked: (string | null)[] = [];
  const listener: RequestListener = (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://h");
    if (pathname.includes("/artifacts/")) {
      asked.push(searchParams.get("version"));
      response.setHeader("Content-Type", "application/octet-stream").end(contents.shift());
    } else {
      const answer = pathname.endsWith("/artifacts") ? page : run;
      response.setHeader("Content-Type", "application/json").end(JSON.stringify(answer));
    }
  };
  await scripted(listener, async (server) => {
    const client = new Proofbox({ url: server });
    const listed = await client.files("c1").next();
    const [produced] = (await client.run("1")).files;
    for (const file of [listed.value, produced]) {
      assert.equal(await file?.text(), "abc");
      await assert.rejects(file?.bytes() ?? Promise.resolve(), { code: "damaged_download", retryable: false });
    }
  });
  assert.deepEqual(asked, ["3", "3", null, null]);
});

test("a large file is sent and read as a stream", async () => {
  const folder = await mkdtemp(join(tmpdir(), "proofbox-"));
  const size = 20 * 1024 * 1024;
  await writeFile(join(folder, "large.bin"), Buffer.alloc(size, "abc"));
  const stored = await proofbox.upload("typescript_large", "large ü.bin", await openAsBlob(join(folder, "large.bin")));
  await rm(folder, { recursive: true });
  let count = 0;
  for await (const piece of await proofbox.download("typescript_large", stored.logical_path)) count += piece.length;
  assert.deepEqual([stored.size_bytes, count], [size, size]);
});

test("the end of a call arrives also with a smaller id", async () => {
  const streams = [event(1, "started", {}) + event(2, "stdout", { text: "a" }), event(1, "result", { ok: true })];
  const listener: RequestListener = (request, response) => {
    const isEvents = request.url?.includes("/events");
    response.setHeader("Content-Type", isEvents ? "text/event-stream" : "application/json");
    response.end(isEvents ? streams.shift() : JSON.stringify({ status: "done" }));
  };
  await scripted(listener, async (server) => {
    const events: [number, string][] = [];
    for await (const { id, name } of new Proofbox({ url: server, retries: 1 }).events("t1")) events.push([id, name]);
    assert.deepEqual(events, [[1, "started"], [2, "stdout"], [1, "result"]]);
  });
});

test("a lost stream of events is resumed after its last event", async () => {
  const asked: (string | undefined)[] = [];
  const listener: RequestListener = (request, response) => {
    if (!request.url?.includes("/events")) {
      response.setHeader("Content-Type", "application/json").end(JSON.stringify({ status: "running" }));
      return;
    }
    asked.push(new URL(request.url, "http://h").searchParams.get("after") ?? undefined);
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    if (asked.length === 1) {
      response.write(event(1, "stdout", { text: "a" }) + "id: 2\nevent: std", () => response.destroy());
    } else {
      response.end(event(1, "stdout", { text: "a" }) + event(2, "stdout", { text: "b" }) + event(3, "result", { ok: true }));
    }
  };
  await scripted(listener, async (server) => {
    const events: [number, string][] = [];
    for await (const { id, name } of new Proofbox({ url: server }).events("t1")) events.push([id, name]);
    assert.deepEqual(events, [[1, "stdout"], [2, "stdout"], [3, "result"]]);
    assert.deepEqual(asked, [undefined, "1"]);
  });
});

test("a retryable problem is a retry, another one is an error with its document", async () => {
  const answers = [problem("queue_full", 429, true), problem("id_reused", 409, false)];
  const listener: RequestListener = (_, response) => {
    response.writeHead(answers.length > 1 ? 429 : 409, { "Content-Type": "application/problem+json" });
    response.end(answers.shift());
  };
  await scripted(listener, async (server) => {
    await assert.rejects(new Proofbox({ url: server }).run("1"), (error: ProofboxError) => {
      assert.deepEqual([error.code, error.retryable, error.problem?.status], ["id_reused", false, 409]);
      return error.message === "id_reused: a detail";
    });
    assert.equal(answers.length, 0);
  });
});

test("a service that does not run, or is not one, is named with its address", async () => {
  const nowhere = new Proofbox({ url: "http://127.0.0.1:9", retries: 0 });
  await assert.rejects(nowhere.run("1"), /http:\/\/127\.0\.0\.1:9: no answer .*running Proofbox service/);
  await scripted((_, response) => response.writeHead(404).end("<html>"), async (server) => {
    await assert.rejects(new Proofbox({ url: server, retries: 0 }).run("1"), /HTTP 404 without a problem document/);
  });
});

test("the events of a call that does not exist are an error", async () => {
  await assert.rejects(proofbox.events("nobody", "typescript").next(), { code: "unknown_call" });
});
