// Artifacts that a message names. They come through the message, by a signed link to this service: the page's policy allows no other.
import { blob } from "../lib/api.js";
import { saveBlob } from "../lib/downloads.js";
import { bytes, fileName } from "../lib/format.js";
import { useLoad } from "../lib/load.js";
import { report } from "../lib/toasts.js";
import { html, useEffect, useRef, useSignal } from "../lib/ui.js";
import { Loaded, Name } from "./basics.js";
import { Icon } from "./icons.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"]);
const PICTURE_BYTES = 25_000_000;
const NEAR_PX = 400;
const UNSIZED_PX = 240; // of a picture whose size is not known
const FILES_MAX = 50;
const VALUES_MAX = 20_000;
const OWN = { own_link: true };

// A path with other segments would name another route of the service.
export const isArtifactPath = (path) => /^(?:fi:)?turn_[^/]+/.test(path) && path.split("/").every((each) => !["", ".", ".."].includes(each));

const address = (message, path) =>
  `v1/spaces/${encodeURIComponent(message.space_id)}/messages/${encodeURIComponent(message.message_id)}/artifacts/${path.split("/").map(encodeURIComponent).join("/")}`;

// The service hands out what a call produced; what it promised only is not there.
const isThere = ({ artifact_path, verdict }) => typeof artifact_path === "string" && isArtifactPath(artifact_path) && (verdict === undefined || verdict === "produced");

// The files that an output names: {artifact_path, mime, size_bytes, width?, height?, verdict?}, each once.
export function filesOf(output) {
  const found = new Map();
  const waiting = [output];
  for (let seen = 0; waiting.length > 0 && found.size < FILES_MAX && seen < VALUES_MAX; seen++) {
    const value = waiting.shift();
    if (typeof value !== "object" || value === null) continue;
    if (isThere(value) && !found.has(value.artifact_path)) found.set(value.artifact_path, value);
    waiting.push(...(Array.isArray(value) ? value : Object.values(value)).slice(0, VALUES_MAX));
  }
  return [...found.values()];
}

export const isPicture = (file) => PICTURES.has(String(file.mime).split(";")[0]) && file.size_bytes <= PICTURE_BYTES;

// Whether an element has been near the window: what is further away is not loaded.
function useNear() {
  const ref = useRef(null);
  const isNear = useSignal(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => { if (entries.some((each) => each.isIntersecting)) isNear.value = true; }, { rootMargin: `${NEAR_PX}px` });
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return { ref, isNear };
}

// The size of a frame, whose greatest height is --picture-height: with the ratio of the picture, which is never enlarged.
export function frameStyle({ width, height }) {
  const isSized = [width, height].every((each) => Number.isInteger(each) && each > 0);
  return isSized ? { aspectRatio: `${width} / ${height}`, width: `min(${width}px, var(--picture-height) * ${width / height})` } : { height: `${UNSIZED_PX}px` };
}

// The frame has its size before the picture is there, so that nothing below it moves.
export function Picture({ message, file, text }) {
  const { ref, isNear } = useNear();
  return html`<figure class="picture"><div ref=${ref} class="picture-frame" style=${frameStyle(file)}>${isNear.value && html`<${LoadedPicture} message=${message} file=${file} text=${text} />`}</div>
    <figcaption><${FileLine} message=${message} file=${file} /></figcaption></figure>`;
}

function LoadedPicture({ message, file, text }) {
  const url = useSignal(null);
  const loaded = useLoad(async (signal) => {
    const content = await blob(address(message, file.artifact_path), OWN, { signal });
    if (!PICTURES.has(content.type.split(";")[0])) throw new Error("The file is not a picture that can be shown; download it.");
    url.value = URL.createObjectURL(content);
    return true;
  }, [message.message_id, file.artifact_path]);
  useEffect(() => () => { if (url.peek()) URL.revokeObjectURL(url.peek()); }, []);
  return html`<${Loaded} of=${loaded}>${() => html`<img src=${url.value} alt=${text} />`}<//>`;
}

// A file by name, with its size and a download.
export function FileLine({ message, file }) {
  const name = fileName(file.artifact_path) || "file";
  const save = async () => {
    try {
      saveBlob(await blob(address(message, file.artifact_path), OWN), name);
    } catch (problem) {
      report(problem);
    }
  };
  return html`<span class="message-file"><${Icon} name="file" /><span class="grow"><${Name}>${name}<//></span>
    <span class="faint small">${Number.isFinite(file.size_bytes) ? bytes(file.size_bytes) : ""}</span>
    <button type="button" class="icon-button" aria-label=${`Download ${name}`} onClick=${save}><${Icon} name="download" /></button></span>`;
}
