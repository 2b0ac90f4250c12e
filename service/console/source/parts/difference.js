// A unified diff as lines with numbers of both sides; signs and words, not only colours, mark what changed.
import { count } from "../lib/format.js";
import { html } from "../lib/ui.js";
import { Empty } from "./basics.js";

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/;

function linesOf(text) {
  const lines = [];
  let [old, now] = [0, 0];
  let isHead = true;
  for (const line of text.split("\n")) {
    const hunk = HUNK.exec(line);
    if (hunk) {
      isHead = false;
      [old, now] = [Number(hunk[1]), Number(hunk[2])];
      lines.push({ kind: "hunk", text: line });
    } else if (isHead || line === "") continue;
    else if (line[0] === "+") lines.push({ kind: "added", now: now++, text: line.slice(1) });
    else if (line[0] === "-") lines.push({ kind: "removed", old: old++, text: line.slice(1) });
    else if (line[0] === "\\") lines.push({ kind: "hunk", text: line.slice(2) });
    else lines.push({ old: old++, now: now++, text: line.slice(1) });
  }
  return lines;
}

const SIGNS = { added: "+", removed: "−" };
const WORDS = { added: "Added", removed: "Removed" };

export function Difference({ found }) {
  if (found.identical) return html`<${Empty} title="The same bytes" icon="check">Both versions have the same content.<//>`;
  if (!found.text) return html`<${Empty} title="The same text" icon="check">The bytes differ, and the lines of the text do not.<//>`;
  return html`<p class="panel-body small faint">${count(found.added, "line")} added, ${count(found.removed, "line")} removed${found.truncated && "; the end of the changes is left out"}</p>
    <div class="preview diff" tabindex="0" role="region" aria-label="Changes"><table><caption class="hidden">Changes by line</caption><tbody>
      ${linesOf(found.text).map((line, i) => html`<tr key=${i} class=${line.kind ?? ""}>
        <td class="right">${line.old}</td><td class="right">${line.now}</td>
        <td class="sign">${line.kind in SIGNS && html`<span aria-hidden="true">${SIGNS[line.kind]}</span><span class="hidden">${WORDS[line.kind]}</span>`}</td>
        <td>${line.text}</td></tr>`)}
    </tbody></table></div>`;
}
