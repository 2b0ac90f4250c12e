// The live output of a call. The frame has one height and holds a tail, so nothing moves while output streams.
import { saveBlob } from "../lib/downloads.js";
import { bytes } from "../lib/format.js";
import { html, useEffect, useRef } from "../lib/ui.js";
import { Icon } from "./icons.js";

const DRAWN_EVERY_MS = 80;
const AT_END_PX = 24;

export function Output({ buffer, isLive, name }) {
  const frame = useRef(null);
  const foot = useRef(null);
  useEffect(() => {
    let timer = 0;
    const draw = () => {
      timer = 0;
      drawTail(frame.current, foot.current, buffer, isLive);
    };
    const stop = buffer.changes.subscribe(() => { timer ||= setTimeout(() => requestAnimationFrame(draw), DRAWN_EVERY_MS); });
    draw();
    return () => { stop(); clearTimeout(timer); timer = -1; };
  }, [buffer, isLive]);
  const open = () => {
    const url = URL.createObjectURL(buffer.whole());
    window.open(url, "_blank", "noopener");
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  return html`<div class="output-frame">
    <pre class="output" ref=${frame} tabindex="0" role="log" aria-live="off" aria-label=${isLive ? "Output, live" : "Output"} />
    <div class="output-foot"><span class="grow" ref=${foot} />
      <button type="button" class="button quiet" onClick=${open}><${Icon} name="out" />Open all</button>
      <button type="button" class="button quiet" onClick=${() => saveBlob(buffer.whole(), `${name}.txt`)}><${Icon} name="download" />Save all</button>
    </div>
  </div>`;
}

function drawTail(frame, foot, buffer, isLive) {
  if (!frame) return;
  const wasAtEnd = frame.scrollHeight - frame.scrollTop - frame.clientHeight < AT_END_PX;
  const { runs, isPart } = buffer.tail();
  frame.replaceChildren(...runs.map(({ stream, text }) => {
    if (stream === "stdout") return document.createTextNode(text);
    const span = document.createElement("span");
    span.className = "err";
    span.textContent = text;
    return span;
  }));
  if (wasAtEnd) frame.scrollTop = frame.scrollHeight;
  const cut = buffer.isCut ? " · this tab holds the first 64 MB" : "";
  foot.textContent = buffer.chars === 0 ? (isLive ? "No output yet" : "No output") : isPart ? `The end of ${bytes(buffer.chars)}${cut}` : bytes(buffer.chars);
}
