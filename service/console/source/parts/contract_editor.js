// The contract of a program: promised files with their checks, as rows or as JSON.
import { CHECKS, FormError, checksFor, emptyPromise, entryOf, promisesOf } from "../lib/contract_form.js";
import { html, useSignal } from "../lib/ui.js";
import { Choice, Panel, ProblemNote } from "./basics.js";
import { Icon } from "./icons.js";

// promises: a signal with the rows.
export function ContractEditor({ promises }) {
  const form = useSignal("rows");
  const text = useSignal("");
  const problem = useSignal(null);
  const change = (index, values) => {
    promises.value = promises.value.map((promise, i) => (i === index ? { ...promise, ...values } : promise));
  };
  const add = () => { promises.value = [...promises.value, emptyPromise()]; };
  const show = (id) => {
    problem.value = null;
    try {
      if (id === "json") text.value = JSON.stringify(promises.value.filter((each) => each.name.trim()).map(entryOf), null, 2);
      else promises.value = promisesOf(text.value || "[]");
      form.value = id;
    } catch (error) {
      if (!(error instanceof FormError)) throw error;
      problem.value = error;
    }
  };
  const edit = (event) => {
    text.value = event.target.value;
    try {
      promises.value = promisesOf(text.value || "[]");
      problem.value = null;
    } catch (error) {
      if (!(error instanceof FormError)) throw error;
      problem.value = error;
    }
  };
  const actions = html`<${Choice} label="Form of the contract" value=${form.value} onChange=${show}
      options=${[{ id: "rows", text: "Form" }, { id: "json", text: "JSON" }]} />`;
  return html`<${Panel} title=${`Promised files (${promises.value.length})`} actions=${actions}>
    ${problem.value && html`<div class="panel-body"><${ProblemNote} problem=${problem.value} /></div>`}
    ${form.value === "json"
      ? html`<div class="panel-body"><textarea class="contract-json" rows="10" spellcheck="false" aria-label="Contract as JSON" value=${text.value} onInput=${edit} /></div>`
      : html`${promises.value.map((promise, i) => html`<${Row} key=${i} number=${i + 1} promise=${promise} onChange=${(values) => change(i, values)}
            onRemove=${() => { promises.value = promises.value.filter((_, each) => each !== i); }} />`)}
        <div class="panel-body"><div class="row">
          <button type="button" class="button" onClick=${add}><${Icon} name="plus" />Promise a file</button>
          ${promises.value.length === 0 && html`<span class="faint small">Without promises the run only explores; its files stay internal.</span>`}
        </div></div>`}
  <//>`;
}

function Row({ number, promise, onChange, onRemove }) {
  const left = checksFor(promise.name).filter((check) => !(check in promise.checks));
  const setCheck = (check, value) => onChange({ checks: { ...promise.checks, [check]: value } });
  const dropCheck = (check) => onChange({ checks: Object.fromEntries(Object.entries(promise.checks).filter(([name]) => name !== check)) });
  return html`<div class="promise" role="group" aria-label=${`Promise ${number}`}>
    <div class="promise-main">
      <label class="field"><span class="field-label">File or pattern</span>
        <input value=${promise.name} spellcheck="false" autocapitalize="off" placeholder="report.pdf, charts/*.png" onInput=${(event) => onChange({ name: event.target.value })} /></label>
      <label class="field what"><span class="field-label">Description</span>
        <input value=${promise.description} placeholder="What it is, for the user" onInput=${(event) => onChange({ description: event.target.value })} /></label>
      <button type="button" class="icon-button" aria-label=${`Remove promise ${number}`} title="Remove" onClick=${onRemove}><${Icon} name="trash" /></button>
    </div>
    <div class="checks">
      ${Object.entries(promise.checks).map(([check, value]) => html`<${Check} key=${check} check=${check} value=${value}
          onChange=${(text) => setCheck(check, text)} onRemove=${() => dropCheck(check)} />`)}
      <label class="field"><span class="hidden">Add a check</span>
        <select value="" onChange=${(event) => { if (event.target.value) setCheck(event.target.value, ""); event.target.value = ""; }}>
          <option value="">Add a check…</option>
          ${left.map((check) => html`<option value=${check}>${CHECKS[check].title}</option>`)}
        </select></label>
      <label class="check small"><input type="checkbox" checked=${promise.visibility === "internal"}
        onChange=${(event) => onChange({ visibility: event.target.checked ? "internal" : "external" })} />internal</label>
    </div>
  </div>`;
}

function Check({ check, value, onChange, onRemove }) {
  const { title, kind, hint } = CHECKS[check];
  const remove = html`<button type="button" class="icon-button" aria-label=${`Remove the check ${title}`} onClick=${onRemove}><${Icon} name="close" /></button>`;
  if (kind === "flag") return html`<span class="check-field"><span class="badge info">${title}</span>${remove}</span>`;
  const control = kind === "json"
    ? html`<textarea rows="2" spellcheck="false" placeholder=${hint} value=${value} onInput=${(event) => onChange(event.target.value)} />`
    : html`<input inputmode=${kind === "number" ? "numeric" : null} placeholder=${hint} value=${value} onInput=${(event) => onChange(event.target.value)} />`;
  return html`<span class="check-field"><label class="field"><span class="field-label">${title}</span>${control}</label>${remove}</span>`;
}
