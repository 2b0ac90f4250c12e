// The files of a call with their verdicts, previews and downloads.
import { artifactPath, download } from "../lib/downloads.js";
import { bytes, fileName } from "../lib/format.js";
import { href } from "../lib/router.js";
import { html, useSignal } from "../lib/ui.js";
import { Badge, Empty, Name } from "./basics.js";
import { Icon } from "./icons.js";
import { Preview } from "./preview.js";

const SHOWN_MAX = 100;

export function FileList({ conversation, files }) {
  const isWhole = useSignal(false);
  if (files.length === 0) return html`<${Empty} title="No files" icon="file">The call promised no file and wrote none.<//>`;
  const shown = isWhole.value ? files : files.slice(0, SHOWN_MAX);
  return html`<div>${shown.map((file, i) =>
      html`<${File} key=${`${file.physical_path} ${file.verdict}`} conversation=${conversation} file=${file} isFirst=${i === 0 && files.length === 1} />`)}
    ${shown.length < files.length && html`<div class="panel-body"><button type="button" class="button"
      onClick=${() => { isWhole.value = true; }}>Show all ${files.length} files</button></div>`}</div>`;
}

function File({ conversation, file, isFirst }) {
  const isStored = file.sha256 !== null && file.sha256 !== undefined;
  const isOpen = useSignal(isFirst && isStored);
  const name = fileName(file.physical_path);
  return html`<div class="file">
    <div class="file-row">
      <${Badge} state=${file.verdict} />
      <div class="grow"><${Name}>${file.physical_path}<//><div class="faint small">
        ${file.size_bytes !== null && html`${bytes(file.size_bytes)} · `}${file.mime}${file.visibility === "internal" && " · internal"}${file.sid !== null && file.sid !== undefined && ` · source ${file.sid}`}</div></div>
      ${isStored && html`<div class="row">
        <button type="button" class="button quiet" aria-expanded=${String(isOpen.value)} onClick=${() => { isOpen.value = !isOpen.value; }}>
          <${Icon} name="eye" />${isOpen.value ? "Hide" : "Preview"}</button>
        <a class="button quiet" href=${href("conversations", conversation, "files", { path: file.logical_path })}>Versions</a>
        <button type="button" class="icon-button" aria-label=${`Download ${name}`} title="Download"
          onClick=${() => download(artifactPath(conversation, file.logical_path), {}, name)}><${Icon} name="download" /></button>
      </div>`}
    </div>
    ${file.message && html`<p class="file-message">${file.message}</p>`}
    ${isOpen.value && html`<${Preview} conversation=${conversation} file=${file} />`}
  </div>`;
}
