// What the view "Run" edits, and the request that it makes. A reload of the page keeps it.
import { FormError, entryOf } from "./contract_form.js";
import { randomId } from "./format.js";
import { DOCUMENTS, PROGRAMS, PROMISES } from "./examples.js";
import { effect, signal } from "./ui.js";

const STORED = "proofbox.run";
const STORED_CHARS = 1_000_000;
const MIB = 1024 * 1024;

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(STORED)) ?? {};
  } catch {
    return {};
  }
}

const before = stored();
const kept = (name, value) => signal(before[name] ?? value);

export const form = {
  mode: kept("mode", "program"), // or "document"
  language: kept("language", "python"),
  code: { python: kept("python", PROGRAMS.python), bash: kept("bash", PROGRAMS.bash), node: kept("node", PROGRAMS.node) },
  promises: kept("promises", PROMISES),
  stdin: kept("stdin", ""),
  args: kept("args", ""),
  workspace: kept("workspace", ""),
  limits: kept("limits", { wall_s: "", memory_mb: "", cpus: "", output_mb: "" }),
  output: kept("output", "pdf"),
  source: kept("source", "markdown"), // or "html"
  text: { markdown: kept("markdown", DOCUMENTS.markdown), html: kept("html", DOCUMENTS.html) },
  name: kept("name", "report"),
  options: kept("options", {}),
  conversation: kept("conversation", randomId("console-")),
  turn: kept("turn", "turn_1"),
  inputs: kept("inputs", []), // {name, path, size_bytes} of uploaded files
};

const flat = { ...form, ...form.code, ...form.text };
delete flat.code;
delete flat.text;

effect(() => {
  const values = JSON.stringify(Object.fromEntries(Object.entries(flat).map(([name, value]) => [name, value.value])));
  if (values.length < STORED_CHARS) sessionStorage.setItem(STORED, values);
});

export const toolId = () => form.mode.value === "program"
  ? `exec_tools.execute_code_${form.language.value}`
  : `rendering_tools.write_${form.output.value}`;

export const editedText = () => form.mode.value === "program" ? form.code[form.language.value] : form.text[form.source.value];

// The body of POST /v1/tool-calls. Throws FormError.
export function requestOf() {
  const isProgram = form.mode.value === "program";
  const text = editedText().value;
  if (!text.trim()) throw new FormError(isProgram ? "The program is empty; write some code" : "The document is empty; write some text");
  const call = {
    tool_id: toolId(),
    tool_call_id: randomId("call_"),
    conversation_id: form.conversation.value.trim(),
    turn_id: form.turn.value.trim(),
    params: isProgram ? programParams() : documentParams(text),
  };
  if (isProgram) call.code = text;
  const limits = limitsOf(form.limits.value);
  if (isProgram && Object.keys(limits).length) call.limits = limits;
  return call;
}

function programParams() {
  const contract = form.promises.value.map(entryOf);
  const params = contract.length ? { contract } : { explore: true };
  if (form.stdin.value) params.stdin = form.stdin.value;
  if (form.args.value.trim()) params.args = form.args.value.split("\n").filter((line) => line !== "");
  if (form.workspace.value) params.workspace = form.workspace.value;
  return params;
}

function documentParams(text) {
  const options = Object.fromEntries(Object.entries(form.options.value).filter(([, value]) => value !== "" && value !== null));
  const name = form.name.value.trim() || "document";
  const path = name.endsWith(`.${form.output.value}`) ? name : `${name}.${form.output.value}`;
  return { path, content: text, format: form.source.value, ...options };
}

function limitsOf({ wall_s, memory_mb, cpus, output_mb }) {
  const limits = {};
  const read = (text, title) => {
    const number = Number(text);
    if (!(number > 0)) throw new FormError(`${title} is "${text}"; write a number above 0, or leave it empty`);
    return number;
  };
  if (wall_s !== "") limits.wall_s = read(wall_s, "Time limit");
  if (memory_mb !== "") limits.memory_bytes = Math.round(read(memory_mb, "Memory") * MIB);
  if (cpus !== "") limits.cpus = read(cpus, "CPUs");
  if (output_mb !== "") limits.output_bytes = Math.round(read(output_mb, "Output") * MIB);
  return limits;
}
