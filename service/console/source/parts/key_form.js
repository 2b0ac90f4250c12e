// The form that asks for a key, or reports a lost service.
import { checkAccess } from "../lib/api.js";
import { access, accessProblem, key, setKey } from "../lib/session.js";
import { html, useEffect, useRef, useSignal } from "../lib/ui.js";
import { ProblemNote } from "./basics.js";
import { Icon, Mark } from "./icons.js";

export function KeyForm() {
  const shown = useSignal(false);
  const input = useRef(null);
  useEffect(() => { input.current?.focus(); }, []);
  if (access.value === "offline") {
    return html`<div class="gate"><${Mark} /><h1>The service does not answer</h1>
      <${ProblemNote} problem=${accessProblem.value} retry=${checkAccess} /></div>`;
  }
  const wasWrong = access.value === "wrong_key";
  const submit = (event) => {
    event.preventDefault();
    setKey(input.current.value);
    checkAccess();
  };
  return html`<form class="gate" onSubmit=${submit}>
    <${Mark} />
    <h1>${wasWrong ? "This key is not valid" : "Paste your key"}</h1>
    <p class="faint">This service needs an API key. It stays in this tab, and is gone when you close it.</p>
    ${wasWrong && html`<${ProblemNote} problem=${accessProblem.value} />`}
    <label class="field"><span class="field-label">API key</span>
      <span class="with-button">
        <input ref=${input} type=${shown.value ? "text" : "password"} autocomplete="off" spellcheck="false" required
          placeholder="pbx_…" defaultValue=${key.value} aria-invalid=${wasWrong ? "true" : null} />
        <button type="button" class="icon-button" aria-pressed=${String(shown.value)} aria-label="Show the key"
          onClick=${() => { shown.value = !shown.value; }}><${Icon} name="eye" /></button>
      </span>
    </label>
    <button type="submit" class="button primary">Continue</button>
    <p class="faint small">An operator makes keys with <code>proofbox keys create</code>.</p>
  </form>`;
}
