// The phases of a call, one below the other, each from where the last one ended.
import { duration } from "../lib/format.js";
import { html } from "../lib/ui.js";

// In the order in which a call goes through them; names for readers.
const PHASES = [
  ["queue", "Queue", "waiting for a free slot"],
  ["rehost", "Inputs", "finding and checking files"],
  ["acquire", "Container", "getting a fresh container"],
  ["run", "Run", "the program"],
  ["validate", "Check", "opening the promised files"],
  ["host", "Store", "storing files"],
];

export function Waterfall({ timings }) {
  const known = PHASES.map(([name, title, what]) => ({ title, what, ms: timings[name] ?? 0 }));
  const sum = known.reduce((all, phase) => all + phase.ms, 0);
  const total = Math.max(timings.total ?? 0, sum);
  const rest = total - sum;
  const phases = rest >= 0.5 ? [...known, { title: "Other", what: "parsing, report, answer", ms: rest, isOther: true }] : known;
  let start = 0;
  return html`<ol class="waterfall" aria-label="Phases of the call">
    ${phases.map((phase) => {
      const left = total ? (start / total) * 100 : 0;
      const width = total ? (phase.ms / total) * 100 : 0;
      start += phase.ms;
      return html`<li class="phase" title=${phase.what}>
        <span>${phase.title}</span>
        <span class="phase-track" aria-hidden="true">${phase.ms > 0 && html`<span
          class=${phase.isOther ? "phase-bar other" : "phase-bar"} style=${{ left: `min(${left}%, 100% - 2px)`, width: `${width}%` }} />`}</span>
        <span class="number right">${duration(phase.ms)}</span>
      </li>`;
    })}
    <li class="phase"><b>Total</b><span /><b class="number right">${duration(total)}</b></li>
  </ol>`;
}
