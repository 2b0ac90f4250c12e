// The card of a tool call in a space: what it shows by `custom_ui`, its state, and the answer that it waits for.
import { readChart } from "../lib/chart_data.js";
import { duration, time, visible, words } from "../lib/format.js";
import { Reading, ReadingContext } from "../lib/reading.js";
import { readableText } from "../lib/text_links.js";
import { html, useContext, useEffect, useId, useLayoutEffect, useMemo, useRef, useSignal } from "../lib/ui.js";
import { AnswerForm } from "./answer_form.js";
import { Badge, ProblemNote } from "./basics.js";
import { Chart } from "./chart.js";
import { Icon } from "./icons.js";
import { FileLine, Picture, filesOf, isArtifactPath, isPicture } from "./message_files.js";
import { JsonSource, JsonValue } from "./outside_text.js";

const STATES = {
  streaming: ["info", "is being written"], running: ["info", "running"], waiting: ["warn", "waits for an answer"], done: ["good", "done"],
  failed: ["bad", "failed"], denied: ["bad", "denied"], expired: ["warn", "expired"], cancelled: ["quiet", "cancelled"],
};
export const stateText = (state) => STATES[state]?.[1] ?? words(String(state));

// entry: of MessageList. mayAnswer: whether this tab may post; send(body): answers the card.
export function CallCard({ entry, members, mayAnswer, send }) {
  const message = entry.message.value;
  const { tool } = message;
  const streamed = entry.streamed.value;
  const isWaiting = tool.state === "waiting";
  const root = useFocusKept();
  const ownReading = useMemo(() => new Reading(), []);
  const reading = isWaiting && tool.custom_ui === "approval" ? ownReading : null;
  return html`<${ReadingContext.Provider} value=${reading}><div ref=${root} class=${`call-card ${tool.state}`} aria-busy=${tool.state === "streaming" ? "true" : null}>
    <header class="card-head"><strong class="name"><bdi>${visible(tool.name)}</bdi></strong>
      ${isWaiting && tool.custom_ui === "approval" && html`<span class="faint">asks for approval</span>`}
      <${Badge} kind=${STATES[tool.state]?.[0] ?? "quiet"}>${stateText(tool.state)}<//>
      ${isWaiting && tool.expires && html`<${Countdown} expires=${tool.expires} />`}</header>
    ${streamed ? html`<${Streamed} streamed=${streamed} />` : html`<${Body} message=${message} isWaiting=${isWaiting} />`}
    ${tool.error && html`<p class="card-error"><${Icon} name="alert" /><span>${visible(tool.error.message)} <code class="faint">${visible(tool.error.code)}</code></span></p>`}
    ${tool.answered_by && html`<p class="faint small">Answered by <bdi>${visible(nameOf(tool.answered_by, members))}</bdi></p>`}
    ${entry.note.value && html`<div class="card-note"><${ProblemNote} problem=${shownProblem(entry.note.value)} /></div>`}
    ${isWaiting && (mayAnswer ? html`<${AnswerForm} key=${`${tool.custom_ui} ${tool.expires}`} tool=${tool} reading=${reading} send=${send} />` : html`<p class="faint small">You can read this space, but not answer.</p>`)}
  </div><//>`;
}

// Answers go from a card when it changes. Who was in one has the focus on the message then, whose label has the new state.
function useFocusKept() {
  const root = useRef(null);
  const hadFocus = root.current?.querySelector(".answer")?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (hadFocus && document.activeElement === document.body) root.current.closest("article")?.focus({ preventScroll: true });
  });
  return root;
}

const nameOf = (id, members) => members.find((each) => each.entity_id === id)?.display_name ?? id;
// The form shows mistakes of single fields beside them.
const shownProblem = (problem) => (problem.code === "invalid_result" ? { ...problem, errors: [], detail: problem.message } : problem);

const Streamed = ({ streamed }) => html`<div class="card-part"><h3>Input, being written</h3>
  ${streamed.input !== undefined && streamed.input !== null ? html`<${JsonValue} holder=${streamed} name="input" />` : html`<pre class="block-text">${readableText(streamed.text)}</pre>`}</div>`;

function Body({ message, isWaiting }) {
  const { tool } = message;
  const chart = tool.custom_ui === "chart" ? readChart(tool.output ?? tool.input) : null;
  const files = filesOf(tool.output);
  const pictures = tool.custom_ui === "image" ? files.filter(isPicture) : [];
  const others = files.filter((each) => !pictures.includes(each));
  const isDrawn = chart !== null || pictures.length > 0;
  return html`
    ${chart && html`<${Chart} chart=${chart} />`}
    ${pictures.map((file) => html`<${Picture} key=${file.artifact_path} message=${message} file=${file} text=${`Picture of ${visible(tool.name)}${promptOf(tool)}`} />`)}
    <${Value} title="Input" tool=${tool} name="input" cut=${tool.truncated?.input} message=${message} isOpen=${isWaiting} />
    <${Value} title="Output" tool=${tool} name="output" cut=${tool.truncated?.output} message=${message} isOpen=${!isDrawn} />
    ${others.length > 0 && html`<ul class="message-files" aria-label="Files">${others.map((file) => html`<li key=${file.artifact_path}><${FileLine} message=${message} file=${file} /></li>`)}</ul>`}`;
}

function promptOf({ input, output }) {
  const prompt = output?.revised_prompt ?? input?.prompt;
  return typeof prompt === "string" ? `: ${visible(prompt.slice(0, 300))}` : "";
}

// Input or output, to be opened and closed; a value that is too large for the record is a file.
function Value({ title, tool, name, cut, message, isOpen }) {
  const isSource = useSignal(false);
  if (cut) return html`<${CutValue} title=${title} cut=${cut} message=${message} />`;
  const value = tool[name];
  if (value === null || value === undefined || isEmpty(value)) return null;
  return html`<details class="card-part" open=${isOpen}><summary>${title}</summary>
    ${isSource.value ? html`<${JsonSource} value=${value} />` : html`<${JsonValue} holder=${tool} name=${name} />`}
    ${typeof value === "object" && html`<button type="button" class="button quiet small" aria-pressed=${String(isSource.value)} onClick=${() => { isSource.value = !isSource.value; }}>JSON</button>`}
  </details>`;
}

// A value that is too large for a record. What nobody can read here cannot be approved here.
function CutValue({ title, cut, message }) {
  const reading = useContext(ReadingContext);
  const id = useId();
  useLayoutEffect(() => reading?.close(id, Infinity), [reading]);
  return html`<div class="card-part"><h3>${title}</h3><p class="faint small">It has ${cut.size_bytes.toLocaleString("en")} bytes, too many for a card.</p>
    ${cut.artifact_path && isArtifactPath(cut.artifact_path) && html`<${FileLine} message=${message} file=${{ artifact_path: cut.artifact_path, size_bytes: cut.size_bytes }} />`}</div>`;
}

const isEmpty = (value) => typeof value === "object" && Object.keys(value).length === 0;

// How long an answer is still taken.
function Countdown({ expires }) {
  const now = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => { now.value = Date.now(); }, 1000);
    return () => clearInterval(timer);
  }, []);
  const left_ms = new Date(expires).getTime() - now.value;
  const text = left_ms <= 0 ? "the time is over" : left_ms < 60_000 ? `${Math.ceil(left_ms / 1000)} s left` : `${duration(left_ms)} left`;
  return html`<span class="countdown faint small" role="timer" title=${`Until ${time(expires)}`}><${Icon} name="clock" />${text}</span>`;
}
