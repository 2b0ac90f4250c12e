// The files that a run reads: uploaded as attachments of the turn.
import { path, remove, request } from "../lib/api.js";
import { artifactPath } from "../lib/downloads.js";
import { bytes } from "../lib/format.js";
import { notify, report } from "../lib/toasts.js";
import { html, useRef, useSignal } from "../lib/ui.js";
import { Name, Panel } from "./basics.js";
import { Icon } from "./icons.js";

// form: conversation, turn and inputs as signals.
export function Inputs({ form }) {
  const picker = useRef(null);
  const isOver = useSignal(false);
  const sending = useSignal(0);
  const upload = async (files) => {
    for (const file of files) {
      sending.value += 1;
      try {
        const target = path`v1/conversations/${form.conversation.value}/turns/${form.turn.value}/attachments/${file.name}`;
        const headers = file.type ? { "Content-Type": file.type } : {};
        const answer = await request(target, { method: "PUT", body: file, headers });
        const { physical_path, logical_path, size_bytes } = await answer.json();
        const rest = form.inputs.value.filter((each) => each.path !== physical_path);
        form.inputs.value = [...rest, { name: file.name, path: physical_path, logical_path, size_bytes }];
      } catch (problem) {
        report(problem);
      } finally {
        sending.value -= 1;
      }
    }
  };
  const drop = (event) => {
    event.preventDefault();
    isOver.value = false;
    upload(event.dataTransfer.files);
  };
  const forget = async (input) => {
    try {
      await remove(artifactPath(form.conversation.value, input.logical_path));
      form.inputs.value = form.inputs.value.filter((each) => each !== input);
    } catch (problem) {
      report(problem);
    }
  };
  const copy = (text) => navigator.clipboard?.writeText(text).then(() => notify("Path copied"), report);
  return html`<${Panel} title=${`Input files (${form.inputs.value.length})`}>
    ${form.inputs.value.map((input) => html`<div class="file" key=${input.path}><div class="file-row">
      <div class="grow"><${Name}>${input.name}<//><div class="faint small">${bytes(input.size_bytes)} · read it as <code>${input.path}</code></div></div>
      <button type="button" class="icon-button" aria-label=${`Copy the path of ${input.name}`} title="Copy the path" onClick=${() => copy(input.path)}><${Icon} name="copy" /></button>
      <button type="button" class="icon-button" aria-label=${`Delete ${input.name}`} title="Delete" onClick=${() => forget(input)}><${Icon} name="trash" /></button>
    </div></div>`)}
    <div class="panel-body"><div class=${isOver.value ? "drop over" : "drop"} onDrop=${drop}
        onDragOver=${(event) => { event.preventDefault(); isOver.value = true; }} onDragLeave=${() => { isOver.value = false; }}>
      <button type="button" class="button" onClick=${() => picker.current.click()}><${Icon} name="upload" />Choose files</button>
      <span class="small">${sending.value ? `Sending ${sending.value}…` : "or drop them here; the program finds them by name"}</span>
      <input ref=${picker} type="file" multiple hidden aria-label="Input files" onChange=${(event) => { upload([...event.target.files]); event.target.value = ""; }} />
    </div></div>
  <//>`;
}
