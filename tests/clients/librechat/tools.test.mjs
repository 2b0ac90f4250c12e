// The published tools of LibreChat against the running service: what a user of LibreChat meets.
import assert from 'node:assert/strict';
import { createPrivateKey, randomUUID, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { test } from 'node:test';

// LibreChat loads them as CommonJS, too.
const require = createRequire(import.meta.url);
const { tool } = require('@langchain/core/tools');
const {
  createBashExecutionTool,
  createBashProgrammaticToolCallingTool,
  createCodeExecutionTool,
  createProgrammaticToolCallingTool,
} = require('@librechat/agents');

const baseUrl = process.env.CODE_BASEURL;
const apiKey = process.env.CODE_API_KEY;
const signingKey = createPrivateKey(readFileSync(process.env.CODE_SIGNING_KEY));

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token as LibreChat signs it for each request of a user. */
function token(sub, changes = {}) {
  const now = Math.floor(Date.now() / 1000);
  const head = encoded({ alg: 'EdDSA', typ: 'JWT', kid: 'lc-codeapi-2026-05' });
  const claims = encoded({
    iss: 'librechat',
    aud: 'codeapi',
    sub,
    iat: now,
    nbf: now,
    exp: now + 300,
    jti: randomUUID(),
    tenant_id: 'legacy',
    role: 'USER',
    principal_source: 'librechat_jwt',
    auth_context_hash: '0'.repeat(64),
    ...changes,
  });
  const signature = sign(null, Buffer.from(`${head}.${claims}`), signingKey).toString('base64url');
  return `${head}.${claims}.${signature}`;
}

const user = (sub) => ({ authHeaders: () => ({ Authorization: `Bearer ${token(sub)}` }) });
const anna = { baseUrl, ...user('anna') };

/** Calls a tool as the graph does, with what it injects beside the arguments. */
async function call(made, args, injected = {}) {
  const message = await made.invoke({ name: made.name, args, id: randomUUID(), type: 'tool_call', ...injected });
  return { content: message.content, artifact: message.artifact };
}

async function upload(name, content, headers) {
  const form = new FormData();
  form.append('kind', 'user');
  form.append('id', 'anna');
  form.append('file', new Blob([content]), name);
  const response = await fetch(`${baseUrl}/upload`, { method: 'POST', headers, body: form });
  assert.equal(response.status, 200);
  const answer = await response.json();
  return {
    id: answer.files[0].fileId,
    name,
    storage_session_id: answer.storage_session_id,
    kind: 'user',
    resource_id: 'anna',
  };
}

const weather = tool(async ({ city }) => ({ city, degrees: city.length }), {
  name: 'get-weather',
  description: 'The weather of a city',
  schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
});
const broken = tool(
  async () => {
    throw new Error('no such record');
  },
  { name: 'broken', description: 'It fails', schema: { type: 'object', properties: {} } },
);
const tools = [weather, broken];
const programmatic = () => ({
  toolMap: new Map(tools.map((each) => [each.name, each])),
  toolDefs: tools.map(({ name, description, schema }) => ({ name, description, parameters: schema })),
});

test('the code tool runs Python, JavaScript and bash', async () => {
  const made = createCodeExecutionTool(anna);
  for (const [lang, code] of [['py', 'print(6 * 7)'], ['js', 'console.log(6 * 7)'], ['bash', 'echo 42']]) {
    const { content, artifact } = await call(made, { lang, code, intent: 'count' });
    assert.equal(content, 'stdout:\n42');
    assert.match(artifact.session_id, /^[A-Za-z0-9_-]{21}$/);
  }
});

test('a failed program is output, and a language that does not run is a rejected request', async () => {
  const made = createCodeExecutionTool(anna);
  const { content } = await call(made, { lang: 'py', code: '1 / 0' });
  assert.match(content, /stderr:\n[^]*ZeroDivisionError/);
  await assert.rejects(call(made, { lang: 'rs', code: 'fn main() {}' }), /rejected/);
});

test('files of one run are inputs of the next, and the user downloads them', async () => {
  const made = createCodeExecutionTool(anna);
  const code = [
    'import matplotlib.pyplot as plt',
    "open('/mnt/data/a.csv', 'w').write('x\\n1\\n')",
    'plt.plot([1, 2]); plt.show()',
  ].join('\n');
  const first = await call(made, { lang: 'py', code });
  assert.match(first.content, /Session files: 2 persisted file\(s\)[^]*including 1 image/);
  const files = first.artifact.files.map((file) => ({ ...file, resource_id: 'anna' }));
  const shell = createBashExecutionTool(anna);
  const second = await call(shell, { command: 'cat /mnt/data/a.csv; echo 2 >>a.csv' }, { _injected_files: files });
  assert.match(second.content, /stdout:\nx\n1/);
  const changed = second.artifact.files.find((file) => file.name === 'a.csv');
  assert.equal(changed.modified_from.id, files.find((file) => file.name === 'a.csv').id);
  assert.equal(second.artifact.files.find((file) => file.name === 'plot_1.png').inherited, true);
  const url = `${baseUrl}/download/${changed.storage_session_id}/${changed.id}?kind=user&id=anna`;
  const response = await fetch(url, { headers: anna.authHeaders() });
  assert.equal(await response.text(), 'x\n1\n2\n');
});

test('an uploaded file is an input of its user alone', async () => {
  const file = await upload('größe/ü.txt', 'hallo', anna.authHeaders());
  const run = { lang: 'py', code: "print(open('/mnt/data/größe/ü.txt').read())" };
  const { content } = await call(createCodeExecutionTool(anna), run, { _injected_files: [file] });
  assert.match(content, /^stdout:\nhallo/);
  const ben = createCodeExecutionTool({ baseUrl, ...user('ben') });
  await assert.rejects(call(ben, run, { _injected_files: [file] }), /not authorized/);
});

test('a deleted input is named', async () => {
  const file = await upload('a.txt', 'x', anna.authHeaders());
  const { artifact } = await call(createBashExecutionTool(anna), { command: 'rm a.txt' }, { _injected_files: [file] });
  assert.deepEqual(artifact.deleted_files, ['a.txt']);
});

test('a Python program calls tools, side by side and one after the other', async () => {
  const code = [
    "a, b = await asyncio.gather(get_weather(city='Rome'), get_weather(city='Berlin'))",
    "c = await get_weather(city='x' * (a['degrees'] + b['degrees']))",
    'print(c["degrees"])',
    "open('/mnt/data/c.json', 'w').write(json.dumps(c))",
  ].join('\n');
  const made = createProgrammaticToolCallingTool(anna);
  const { content, artifact } = await call(made, { code }, programmatic());
  assert.match(content, /^stdout:\n10/);
  assert.deepEqual(artifact.files.map((file) => file.name), ['c.json']);
});

test('a failed tool reaches the program, and a failed program the model', async () => {
  const made = createProgrammaticToolCallingTool(anna);
  const handled = 'try:\n    await broken()\nexcept Exception as exc:\n    print("handled", exc)';
  assert.match((await call(made, { code: handled }, programmatic())).content, /handled no such record/);
  await assert.rejects(
    call(made, { code: 'await broken()\n' }, programmatic()),
    /Execution exited with code 1[^]*Stderr:[^]*no such record/,
  );
  await assert.rejects(
    call(made, { code: "await get_weather(city='x')\nimport time\ntime.sleep(60)", timeout: 1000 }, programmatic()),
    /Execution exceeded the time limit/,
  );
});

test('a bash script calls tools, also in background jobs', async () => {
  const code = [
    'for city in Rome Oslo; do',
    '  { raw=$(get_weather "{\\"city\\": \\"$city\\"}"); printf "%s\\n" "$raw" >"/mnt/data/$city.json"; } &',
    'done',
    'wait',
    'jq -r .city Rome.json Oslo.json',
  ].join('\n');
  const made = createBashProgrammaticToolCallingTool(anna);
  const { content, artifact } = await call(made, { code }, programmatic());
  assert.match(content, /^stdout:\nRome\nOslo/);
  assert.equal(artifact.files.length, 2);
});

test('a program with tools is cancelled when its user stops it', async () => {
  const made = createProgrammaticToolCallingTool(anna);
  const stop = new AbortController();
  const running = made.invoke(
    {
      name: made.name,
      args: { code: "await get_weather(city='x')\nimport time\ntime.sleep(120)", timeout: 300_000 },
      id: randomUUID(),
      type: 'tool_call',
      ...programmatic(),
    },
    { signal: stop.signal },
  );
  setTimeout(() => stop.abort(), 1500);
  await assert.rejects(running);
});

test('each kind of credentials works, and a wrong one is not authorized', async () => {
  const run = { lang: 'py', code: 'print(1)' };
  const inUrl = baseUrl.replace('://', `://${apiKey}@`);
  const ways = [
    { baseUrl: inUrl },
    { baseUrl, authHeaders: { Authorization: `Bearer ${apiKey}` } },
    { baseUrl, authHeaders: { 'X-API-Key': apiKey } },
    anna,
  ];
  for (const way of ways) {
    assert.equal((await call(createCodeExecutionTool(way), run)).content, 'stdout:\n1');
  }
  const wrong = [
    { baseUrl },
    { baseUrl, authHeaders: { Authorization: 'Bearer pbx_wrong' } },
    { baseUrl, authHeaders: () => ({ Authorization: `Bearer ${token('anna', { aud: 'other' })}` }) },
  ];
  for (const way of wrong) {
    await assert.rejects(call(createCodeExecutionTool(way), run), /not authorized/);
  }
});

test('a profile that this service does not have is a permanent mismatch', async () => {
  const made = createCodeExecutionTool({ ...anna, executionProfile: 'stateful' });
  await assert.rejects(call(made, { lang: 'py', code: 'print(1)' }), /permanent capability mismatch/);
  const usual = createCodeExecutionTool({ ...anna, executionProfile: 'default' });
  assert.equal((await call(usual, { lang: 'py', code: 'print(1)' })).content, 'stdout:\n1');
});
