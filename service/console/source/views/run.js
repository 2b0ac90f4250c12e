// The view that runs programs and renders documents: what to run at the left, its result at the right.
import { CallWatch } from "../lib/call_watch.js";
import { FormError } from "../lib/contract_form.js";
import { href } from "../lib/router.js";
import { editedText, form, requestOf, toolId } from "../lib/run_form.js";
import { tools } from "../lib/session.js";
import { useShortcut } from "../lib/shortcuts.js";
import { html, signal, useSignal } from "../lib/ui.js";
import { randomId } from "../lib/format.js";
import { Choice, Empty, Field, Page, Panel, ProblemNote } from "../parts/basics.js";
import { CallResult } from "../parts/call_result.js";
import { ContractEditor } from "../parts/contract_editor.js";
import { Editor } from "../parts/editor.js";
import { Icon } from "../parts/icons.js";
import { Inputs } from "../parts/inputs.js";
import { SchemaFields } from "../parts/schema_fields.js";

const LANGUAGES = { python: "Python", bash: "Bash", node: "Node.js" };
const OUTPUTS = { pdf: "PDF", png: "PNG", docx: "DOCX", pptx: "PPTX", xlsx: "XLSX" };
const MOD = navigator.platform.startsWith("Mac") ? "⌘" : "Ctrl";

// The last run of this tab: it goes on while another view is shown.
const current = signal(null);
const currentIsProgram = signal(true);

export function Run() {
  const problem = useSignal(null);
  const isBusy = current.value !== null && !current.value.isOver.value;
  const run = () => {
    if (current.value && !current.value.isOver.value) return;
    problem.value = null;
    try {
      const body = requestOf();
      const watch = new CallWatch(body.conversation_id, body.tool_call_id);
      current.value = watch;
      currentIsProgram.value = form.mode.value === "program";
      watch.start(body);
      showResult();
    } catch (error) {
      if (!(error instanceof FormError)) throw error;
      problem.value = error;
    }
  };
  useShortcut("mod+enter", run);
  const isProgram = form.mode.value === "program";
  const actions = html`<${Choice} label="What to run" value=${form.mode.value} onChange=${(id) => { form.mode.value = id; }}
      options=${[{ id: "program", text: "Program" }, { id: "document", text: "Document" }]} />
    <button type="button" class="button primary" disabled=${isBusy} onClick=${run}>
      <${Icon} name="run" />${isProgram ? "Run" : "Render"} <kbd>${MOD} ↵</kbd></button>`;
  return html`<${Page} title="Run" actions=${actions} wide>
    <${ProblemNote} problem=${problem.value} />
    <div class="run">
      <div class="stack">${isProgram ? html`<${Program} onRun=${run} />` : html`<${Document} onRun=${run} />`}
        <${Inputs} form=${form} /><${Place} /></div>
      <div class="stack run-result">${current.value
        ? html`<${CallResult} key=${current.value.call} watch=${current.value} hasOutput=${currentIsProgram.value} /><${Links} watch=${current.value} />`
        : html`<${Panel}><${Empty} title="No run yet" icon="run">Run the program. Its output, the verdict of each promised file and the phases of the call appear here.<//><//>`}</div>
    </div>
  <//>`;
}

// Where the result is below the form, a run scrolls to it.
function showResult() {
  requestAnimationFrame(() => {
    const result = document.querySelector(".run-result");
    if (result && result.getBoundingClientRect().top > innerHeight * 0.7) result.scrollIntoView({ block: "start" });
  });
}

function Links({ watch }) {
  return html`<p class="row small"><a href=${href("calls", watch.conversation, watch.call)}>Address of this call</a>
    <a href=${href("conversations", watch.conversation, "timeline")}>Timeline of the conversation</a></p>`;
}

function hasTool(id) {
  return tools.value.length === 0 || tools.value.some((tool) => tool.tool_id === id);
}

function Program({ onRun }) {
  const language = form.language.value;
  const offered = Object.keys(LANGUAGES).filter((each) => hasTool(`exec_tools.execute_code_${each}`));
  const choice = html`<${Choice} label="Language" value=${language} onChange=${(id) => { form.language.value = id; }}
    options=${offered.map((id) => ({ id, text: LANGUAGES[id] }))} />`;
  const setLimit = (name) => (event) => { form.limits.value = { ...form.limits.value, [name]: event.target.value }; };
  const limits = form.limits.value;
  return html`
    <${Panel} title="Program" actions=${choice}><${Editor} key=${language} value=${editedText()} language=${language} label=${`${LANGUAGES[language]} program`} onRun=${onRun} /><//>
    <${ContractEditor} promises=${form.promises} />
    <details class="panel"><summary>Arguments and limits <span class="faint">stdin, time, memory, CPUs</span></summary><div class="panel-body fields">
      <${Field} label="Time limit, s"><input inputmode="decimal" value=${limits.wall_s} placeholder="600" onInput=${setLimit("wall_s")} /><//>
      <${Field} label="Memory, MiB"><input inputmode="decimal" value=${limits.memory_mb} placeholder="of the operator" onInput=${setLimit("memory_mb")} /><//>
      <${Field} label="CPUs"><input inputmode="decimal" value=${limits.cpus} placeholder="of the operator" onInput=${setLimit("cpus")} /><//>
      <${Field} label="Output, MiB"><input inputmode="decimal" value=${limits.output_mb} placeholder="of the operator" onInput=${setLimit("output_mb")} /><//>
      <${Field} label="Workspace" class="full" hint="Whether all of files/ goes from call to call of the conversation."><select value=${form.workspace.value} onChange=${(event) => { form.workspace.value = event.target.value; }}>
        <option value="">stored files of the turn</option><option value="full">full: comes, and is stored again</option><option value="read">read: comes only</option></select><//>
      <${Field} label="Arguments" class="full" hint="One on each line."><textarea rows="2" spellcheck="false" value=${form.args.value} onInput=${(event) => { form.args.value = event.target.value; }} /><//>
      <${Field} label="Standard input" class="full"><textarea rows="3" spellcheck="false" value=${form.stdin.value} onInput=${(event) => { form.stdin.value = event.target.value; }} /><//>
    </div></details>`;
}

function Document({ onRun }) {
  const source = form.source.value;
  const offered = Object.keys(OUTPUTS).filter((each) => hasTool(`rendering_tools.write_${each}`));
  const tool = tools.value.find((each) => each.tool_id === toolId());
  const choice = html`<${Choice} label="Language of the document" value=${source} onChange=${(id) => { form.source.value = id; }}
    options=${[{ id: "markdown", text: "Markdown" }, { id: "html", text: "HTML" }]} />`;
  return html`
    <${Panel} title="Document" actions=${choice}><${Editor} key=${source} value=${editedText()} language=${source} label=${source === "html" ? "HTML document" : "Markdown document"} onRun=${onRun} /><//>
    <${Panel} title="File"><div class="panel-body">
      <${Choice} label="Format of the file" value=${form.output.value} onChange=${(id) => { form.output.value = id; form.options.value = {}; }}
        options=${offered.map((id) => ({ id, text: OUTPUTS[id] }))} />
      <div class="fields"><${Field} label="Name" class="full"><input value=${form.name.value} spellcheck="false" onInput=${(event) => { form.name.value = event.target.value; }} /><//></div>
    </div><//>
    ${tool && html`<details class="panel"><summary>Options <span class="faint">theme, title, pages and more</span></summary>
      <div class="panel-body"><${SchemaFields} key=${tool.tool_id} schema=${tool.params_schema} values=${form.options} left=${["path", "content", "format"]} /></div></details>`}`;
}

function Place() {
  const renew = () => {
    form.conversation.value = randomId("console-");
    form.turn.value = "turn_1";
    form.inputs.value = [];
  };
  return html`<details class="panel"><summary>Conversation <span class="faint">${form.conversation.value}, ${form.turn.value}</span></summary><div class="panel-body fields">
    <${Field} label="Conversation"><input value=${form.conversation.value} spellcheck="false" onInput=${(event) => { form.conversation.value = event.target.value; form.inputs.value = []; }} /><//>
    <${Field} label="Turn"><input value=${form.turn.value} spellcheck="false" onInput=${(event) => { form.turn.value = event.target.value; form.inputs.value = []; }} /><//>
    <div class="full row"><button type="button" class="button" onClick=${renew}><${Icon} name="plus" />New conversation</button></div>
  </div></details>`;
}
