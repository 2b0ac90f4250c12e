// What can be shown of a file: pictures, texts, JSON and tables here; pages by the service. HTML and SVG never run.
import { artifactPath } from "../lib/downloads.js";
import { blob, request } from "../lib/api.js";
import { bytes } from "../lib/format.js";
import { parseIn, textAt } from "../lib/json_text.js";
import { useLoad } from "../lib/load.js";
import { html, useEffect, useSignal } from "../lib/ui.js";
import { Choice, Empty, Loaded } from "./basics.js";
import { ServerPreview, canShow } from "./server_preview.js";

const TEXT_BYTES = 200_000;
const PICTURE_BYTES = 25_000_000;
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/x-icon"]);
const LIVE = new Set(["text/html", "application/xhtml+xml", "image/svg+xml"]);
const TEXTS = new Set([
  "application/json", "application/x-ndjson", "application/jsonl", "application/xml", "application/yaml", "application/toml",
  "application/javascript", "application/sql", "application/x-sh", "application/geo+json", "application/x-ipynb+json",
]);

const isText = (mime) => mime.startsWith("text/") || TEXTS.has(mime) || /\+(json|xml|yaml)$/.test(mime) || LIVE.has(mime);

// file: {logical_path, mime, size_bytes, version?}
export function Preview({ conversation, file }) {
  const mime = (file.mime ?? "").split(";")[0];
  if (PICTURES.has(mime) && file.size_bytes <= PICTURE_BYTES) return html`<${Picture} conversation=${conversation} file=${file} />`;
  if (LIVE.has(mime) && canShow(mime)) return html`<${SourceOrPicture} conversation=${conversation} file=${file} />`;
  if (canShow(mime)) return html`<${ServerPreview} conversation=${conversation} file=${file} />`;
  if (isText(mime)) return html`<${Source} conversation=${conversation} file=${file} mime=${mime} />`;
  return html`<${Empty} title="No preview for this format" icon="file">${mime || "Unknown format"}, ${bytes(file.size_bytes)}. Download the file to open it.<//>`;
}

function SourceOrPicture({ conversation, file }) {
  const shown = useSignal("source");
  return html`<div class="panel-body"><${Choice} label="Show" value=${shown.value} onChange=${(id) => { shown.value = id; }}
      options=${[{ id: "source", text: "Source" }, { id: "picture", text: "Picture" }]} /></div>
    ${shown.value === "source" ? html`<${Source} conversation=${conversation} file=${file} />`
      : html`<${ServerPreview} conversation=${conversation} file=${file} />`}`;
}

function Picture({ conversation, file }) {
  const url = useSignal(null);
  const loaded = useLoad(async (signal) => {
    const content = await blob(artifactPath(conversation, file.logical_path), { version: file.version }, { signal });
    url.value = URL.createObjectURL(content);
    return true;
  }, [conversation, file.logical_path, file.version]);
  useEffect(() => () => { if (url.peek()) URL.revokeObjectURL(url.peek()); }, []);
  return html`<${Loaded} of=${loaded}>${() => html`<div class="preview checkered"><img src=${url.value} alt=${`The picture ${file.logical_path}`} /></div>`}<//>`;
}

function Source({ conversation, file, mime }) {
  const loaded = useLoad(async (signal) => {
    const headers = file.size_bytes > TEXT_BYTES ? { Range: `bytes=0-${TEXT_BYTES - 1}` } : {};
    const answer = await request(artifactPath(conversation, file.logical_path), { query: { version: file.version }, headers, signal });
    return { text: await answer.text(), isPart: answer.status === 206 };
  }, [conversation, file.logical_path, file.version]);
  return html`<${Loaded} of=${loaded}>${({ text, isPart }) => html`<div class="preview" tabindex="0" role="region" aria-label="Preview">
    <pre class="source">${shownText(text, mime, isPart)}</pre>
    ${isPart && html`<p class="panel-body faint small">The first ${bytes(TEXT_BYTES)} of ${bytes(file.size_bytes)}.</p>`}
  </div>`}<//>`;
}

function shownText(text, mime, isPart) {
  if (isPart || mime !== "application/json") return text;
  try {
    return textAt(parseIn(text), 0, 2);
  } catch {
    return text;
  }
}
