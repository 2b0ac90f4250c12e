// A bar or line chart as SVG. Its table has the same numbers as text.
import { axisOf, shownNumber } from "../lib/chart_data.js";
import { visible } from "../lib/format.js";
import { html } from "../lib/ui.js";

const WIDE = 560;
const NARROW = 320; // of a phone: the texts keep their size
const HEIGHT = 240;
const TOP = 12;
const BOTTOM = 26;
const RIGHT = 10;
const LABEL_CHARS = 14;
const CHAR_PX = 6.4;

export function Chart({ chart }) {
  const axis = axisOf(chart);
  const total = matchMedia("(max-width: 720px)").matches ? NARROW : WIDE;
  const left = 14 + CHAR_PX * Math.max(...axis.ticks.map((each) => shownNumber(each).length));
  const frame = { left, width: total - left - RIGHT, height: HEIGHT - TOP - BOTTOM, y: (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (value - axis.low) / (axis.high - axis.low)) };
  const summary = `${chart.type === "bar" ? "Bar" : "Line"} chart${chart.title ? `: ${visible(chart.title)}` : ""}; ${chart.series.map((each) => visible(each.name)).join(", ")}. The table below has the numbers.`;
  return html`<figure class="chart">
    ${chart.title && html`<figcaption><bdi>${visible(chart.title)}</bdi>${chart.unit && html` <span class="faint">(${visible(chart.unit)})</span>`}</figcaption>`}
    <svg viewBox=${`0 0 ${total} ${HEIGHT}`} role="img" aria-label=${summary}>
      ${axis.ticks.map((tick) => html`<g key=${tick}>
        <line class=${tick === 0 ? "axis" : "grid"} x1=${frame.left} x2=${total - RIGHT} y1=${frame.y(tick)} y2=${frame.y(tick)} />
        <text class="tick" x=${frame.left - 6} y=${frame.y(tick) + 4} text-anchor="end">${shownNumber(tick)}</text></g>`)}
      ${labelsOf(chart, frame)}
      ${chart.type === "bar" ? barsOf(chart, frame) : chart.series.map((series, i) => html`<${Line} key=${i} series=${series} number=${i} frame=${frame} />`)}
    </svg>
    ${chart.series.length > 1 && html`<ul class="legend">${chart.series.map((each, i) => html`<li key=${i}><svg class="key" viewBox="0 0 18 10" aria-hidden="true">
      ${chart.type === "bar" ? html`<rect class=${`bar s${i}`} width="18" height="10" rx="2" />` : html`<line class=${`line s${i}`} x1="0" x2="18" y1="5" y2="5" />`}</svg><bdi>${visible(each.name)}</bdi></li>`)}</ul>`}
    ${chart.isCut && html`<p class="faint small">The chart shows the first ${chart.labels.length} points of at most 8 series.</p>`}
    <details><summary>Numbers</summary><${Numbers} chart=${chart} /></details>
  </figure>`;
}

function labelsOf({ labels }, { left, width }) {
  const step = width / labels.length;
  const longest = Math.min(LABEL_CHARS, Math.max(...labels.map((each) => each.length)));
  const every = Math.max(1, Math.ceil((longest * CHAR_PX + 8) / step));
  return labels.map((each, i) => (i % every === 0 ? html`<text key=${i} class="tick" x=${left + step * (i + 0.5)} y=${HEIGHT - 8} text-anchor="middle">${visible(each.length > LABEL_CHARS ? `${each.slice(0, LABEL_CHARS - 1)}…` : each)}</text>` : null));
}

function barsOf({ labels, series }, { left, width, y }) {
  const step = width / labels.length;
  const bar = Math.min(46, (step * 0.76) / series.length);
  return series.map(({ values }, s) => values.map((value, i) => {
    if (value === null) return null;
    const [top, bottom] = value >= 0 ? [y(value), y(0)] : [y(0), y(value)];
    return html`<rect key=${`${s} ${i}`} class=${`bar s${s}`} x=${left + step * (i + 0.5) + bar * (s - series.length / 2)} y=${top} width=${Math.max(0.5, bar - 1)} height=${Math.max(0.5, bottom - top)}><title>${`${visible(labels[i])}: ${shownNumber(value)}`}</title></rect>`;
  }));
}

function Line({ series, number, frame }) {
  const step = frame.width / series.values.length;
  const at = (i) => frame.left + step * (i + 0.5);
  let pen = "M";
  const path = series.values.map((value, i) => {
    if (value === null) {
      pen = "M";
      return "";
    }
    const part = `${pen}${at(i).toFixed(1)} ${frame.y(value).toFixed(1)}`;
    pen = "L";
    return part;
  }).join("");
  const hasPoints = series.values.length <= 40;
  return html`<g><path class=${`line s${number}`} d=${path} />
    ${hasPoints && series.values.map((value, i) => (value === null ? null : html`<circle key=${i} class=${`point s${number}`} cx=${at(i)} cy=${frame.y(value)} r="3"><title>${shownNumber(value)}</title></circle>`))}</g>`;
}

function Numbers({ chart }) {
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label="Numbers of the chart"><table><thead><tr><th scope="col">Label</th>
      ${chart.series.map((each, i) => html`<th key=${i} scope="col" class="right">${visible(each.name)}</th>`)}</tr></thead>
    <tbody>${chart.labels.map((each, row) => html`<tr key=${row}><th scope="row">${visible(each)}</th>
      ${chart.series.map(({ values }, i) => html`<td key=${i} class="right">${shownNumber(values[row])}</td>`)}</tr>`)}</tbody></table></div>`;
}
