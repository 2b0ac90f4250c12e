// The data of a chart, read of what a tool gave: {type: "bar" | "line", title?, unit?, labels: [text], series: [{name?, values: [number]}]}.
// `values` in place of `series` is one series; `data: [{label, value}]` has both.
const SERIES_MAX = 8;
const POINTS_MAX = 400;
const TEXT_CHARS = 200;
const INSIDE = ["chart", "data", "result", "output"];

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const label = (value) => (typeof value === "string" || typeof value === "number" ? String(value).slice(0, TEXT_CHARS) : "");
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);

// {type, title, unit, labels, series: [{name, values}], isCut}; null if the value has no chart. A chart may stand in `chart`, `data` or `result`.
export function readChart(value, depth = 0) {
  if (!isObject(value)) return null;
  const found = readHere(value);
  if (found || depth > 2) return found;
  for (const name of INSIDE) {
    const inner = Object.hasOwn(value, name) ? readChart(value[name], depth + 1) : null;
    if (inner) return inner;
  }
  return null;
}

function readHere(value) {
  const pairs = Array.isArray(value.data) && value.data.length > 0 && value.data.every(isObject) ? value.data : null;
  const labels = pairs ? pairs.map((each) => each.label ?? each.x) : Array.isArray(value.labels) ? value.labels : null;
  const given = pairs ? [{ values: pairs.map((each) => each.value ?? each.y) }]
    : Array.isArray(value.series) ? value.series.map((each) => (Array.isArray(each) ? { values: each } : each))
    : Array.isArray(value.values) ? [{ values: value.values }] : [];
  const series = given.filter(isObject).map((each, i) => ({ name: label(each.name) || `Series ${i + 1}`, values: Array.isArray(each.values) ? each.values : each.data }))
    .filter((each) => Array.isArray(each.values) && each.values.some((one) => number(one) !== null));
  if (series.length === 0) return null;
  const count = Math.max(...series.map((each) => each.values.length));
  const shown = Math.min(count, POINTS_MAX);
  return {
    type: value.type === "line" ? "line" : "bar",
    title: label(value.title),
    unit: label(value.unit).slice(0, 20),
    labels: Array.from({ length: shown }, (_, i) => label(labels?.[i]) || String(i + 1)),
    series: series.slice(0, SERIES_MAX).map(({ name, values }) => ({ name, values: Array.from({ length: shown }, (_, i) => number(values[i])) })),
    isCut: count > shown || series.length > SERIES_MAX,
  };
}

// Ticks of an axis that has 0 or the range of the values in it: {low, high, ticks}.
export function axisOf(chart) {
  const all = chart.series.flatMap((each) => each.values).filter((each) => each !== null);
  let low = all.reduce((a, b) => Math.min(a, b), Infinity);
  let high = all.reduce((a, b) => Math.max(a, b), -Infinity);
  if (chart.type === "bar" || (low > 0 && low < (high - low))) low = Math.min(0, low);
  if (chart.type === "bar") high = Math.max(0, high);
  if (low === high) [low, high] = low === 0 ? [0, 1] : [Math.min(low, low - Math.abs(low) / 10), high + Math.abs(high) / 10];
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough * 0.999) ?? power * 10;
  const first = Math.floor(low / step);
  const last = Math.ceil(high / step);
  const ticks = Array.from({ length: Math.min(last - first + 1, 12) }, (_, i) => (first + i) * step);
  return { low: ticks[0], high: ticks.at(-1), ticks };
}

export function shownNumber(value) {
  if (value === null) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e9 || size < 1e-4)) return value.toExponential(2);
  return value.toLocaleString("en", { maximumSignificantDigits: 6 });
}
