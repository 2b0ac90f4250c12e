// The state and the result of a call: output, verdicts, files, phases, report.
import { archivePath, download } from "../lib/downloads.js";
import { bytes, count, duration } from "../lib/format.js";
import { report as reportProblem } from "../lib/toasts.js";
import { html } from "../lib/ui.js";
import { Badge, Panel, ProblemNote } from "./basics.js";
import { FileList } from "./file_list.js";
import { Icon } from "./icons.js";
import { Output } from "./output.js";
import { Waterfall } from "./waterfall.js";

const STATES = {
  loading: ["quiet", "Loading"],
  sending: ["info", "Sending"],
  queued: ["info", "Queued"],
  running: ["info", "Running"],
  failed: ["bad", "Not answered"],
  cancelled: ["warn", "Cancelled"],
};

// watch: a CallWatch; hasOutput: whether the tool prints.
export function CallResult({ watch, hasOutput = true }) {
  const response = watch.response.value;
  return html`<div class="stack">
    <${Panel}>
      <${Head} watch=${watch} />
      ${hasOutput && (response || !watch.problem.value) && html`<${Output} key=${watch.call} buffer=${watch.output} isLive=${!watch.isOver.value} name=${watch.call} />`}
    <//>
    <${Why} watch=${watch} />
    ${response && html`
      ${response.artifacts.length > 0 && html`<${Files} watch=${watch} artifacts=${response.artifacts} />`}
      <${Panel} title="Phases"><${Waterfall} timings=${response.timings_ms} /><${Facts} response=${response} /><//>
      <${Panel} title="Report for the model"><pre class="source report" tabindex="0" role="region" aria-label="Report">${response.text}</pre><//>`}
  </div>`;
}

function Head({ watch }) {
  const response = watch.response.value;
  const [kind, text] = watch.state.value === "done"
    ? (response.ok ? ["good", "Succeeded"] : ["bad", "Failed"])
    : STATES[watch.state.value];
  const promised = response?.artifacts.filter((file) => file.visibility === "external" || file.verdict !== "produced") ?? [];
  const kept = promised.filter((file) => file.verdict === "produced").length;
  return html`<div class="call-head">
    <span role="status"><${Badge} kind=${kind}>${text}<//></span>
    <span class="number">${watch.elapsed_ms.value > 0 && duration(watch.elapsed_ms.value)}</span>
    <span class="faint grow">${watch.state.value === "queued" && watch.position.value > 0 && `${count(watch.position.value, "call")} before it`}
      ${watch.acquired.value && `${watch.acquired.value} container`}
      ${promised.length > 0 && ` · ${kept} of ${count(promised.length, "promise")} kept`}</span>
    ${watch.connection.value === "lost" && !watch.isOver.value && html`<${Badge} kind="warn"><${Icon} name="alert" />Connection lost, trying again<//>`}
    ${!watch.isOver.value && html`<button type="button" class="button danger" onClick=${() => watch.cancel().catch(reportProblem)}>
      <${Icon} name="stop" />Cancel</button>`}
  </div>`;
}

function Why({ watch }) {
  const error = watch.response.value?.error;
  if (watch.problem.value && watch.state.value !== "cancelled") return html`<${ProblemNote} problem=${watch.problem.value} />`;
  if (!error) return null;
  return html`<${ProblemNote} problem=${{ detail: error.message, code: error.code }} />`;
}

function Files({ watch, artifacts }) {
  const isStored = artifacts.some((file) => file.sha256);
  const all = () => download(archivePath(watch.conversation), { tool_call_id: watch.call }, `${watch.call}.zip`);
  const actions = isStored && html`<button type="button" class="button quiet" onClick=${all}><${Icon} name="download" />All as zip</button>`;
  return html`<${Panel} title=${`Promises and files (${artifacts.length})`} actions=${actions}>
    <${FileList} conversation=${watch.conversation} files=${artifacts} /><//>`;
}

function Facts({ response }) {
  const { usage, sandbox } = response;
  const facts = [
    ["Exit", usage.exit_code ?? (usage.signal === null ? null : `signal ${usage.signal}`)],
    ["CPU", usage.cpu_ms ? duration(usage.cpu_ms) : null],
    ["Memory", usage.memory_peak_bytes === null ? null : bytes(usage.memory_peak_bytes)],
    ["Printed", bytes(usage.stdout_bytes + usage.stderr_bytes)],
    ["Sandbox", sandbox && `${sandbox.engine}, ${sandbox.runtime}, ${sandbox.acquired}`],
    ["Isolation", sandbox && (sandbox.tier === "gvisor" ? "own kernel (gVisor)" : "shared kernel, filtered")],
    ["Image", sandbox && sandbox.image_digest.replace(/^sha256:/, "").slice(0, 12)],
  ];
  return html`<div class="facts">${facts.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) =>
    html`<span>${name} <b>${value}</b></span>`)}</div>`;
}
