// JSON of others, exactly. JSON.parse rounds numbers that JavaScript cannot have; here the text of each such number stays known, and is
// shown and sent again as it was. JSON.parse reads any depth, but writing calls itself for each level.
const DEPTH_MAX = 200;
const TOO_DEEP = `(This value is nested too deeply to be shown: more than ${DEPTH_MAX} levels.)`;
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/gs;
const MARK = `${[...crypto.getRandomValues(new Uint32Array(4))].join("-")}:`; // nobody who sends a text knows it
const texts = new WeakMap(); // of an object or a list: Map of keys to the texts of numbers

// A number that is sent by its text.
export class ExactNumber {
  constructor(text) {
    this.text = text;
  }

  toString() {
    return this.text;
  }
}

export const parseJson = (text) => parseIn(text)[0];

// The value alone in a list: so a number by itself has its text, too (textAt, exactAt).
export function parseIn(text) {
  const value = JSON.parse(text);
  let isMarked = false;
  const marked = text.replace(TOKENS, (token) => {
    if (token[0] === '"' || String(Number(token)) === token) return token;
    isMarked = true;
    return `"${MARK}${token}"`;
  });
  if (!isMarked) return [value];
  const holder = [JSON.parse(marked)];
  const waiting = [holder];
  while (waiting.length > 0) {
    const each = waiting.pop();
    for (const key of Object.keys(each)) {
      const inner = each[key];
      if (typeof inner === "object" && inner !== null) waiting.push(inner);
      else if (typeof inner === "string" && inner.startsWith(MARK)) note(each, key, inner.slice(MARK.length));
    }
  }
  return holder;
}

function note(holder, key, text) {
  holder[key] = Number(text);
  if (!texts.has(holder)) texts.set(holder, new Map());
  texts.get(holder).set(key, text);
}

// The text of the number there, if JavaScript writes it in another way.
function noted(holder, key) {
  const text = texts.get(holder)?.get(String(key));
  return text !== undefined && Object.is(Number(text), holder[key]) ? text : undefined;
}

// What is there, to be sent again: as it was.
export function exactAt(holder, key) {
  const text = noted(holder, key);
  return text === undefined ? holder[key] : new ExactNumber(text);
}

// The objects in one new object, as {...first, ...second}, with the texts of their numbers.
export function merged(...objects) {
  const all = Object.assign({}, ...objects);
  const found = objects.flatMap((each) => [...(texts.get(each) ?? [])]);
  if (found.length > 0) texts.set(all, new Map(found));
  return all;
}

export const jsonText = (value, indent) => (isDeep(value) ? TOO_DEEP : writeJson(value, indent));

// JSON text of holder[key].
export const textAt = (holder, key, indent) => jsonText(exactAt(holder, key), indent);

// As JSON.stringify, for what JSON has.
export function writeJson(value, indent = 0, margin = "") {
  if (value instanceof ExactNumber) return value.text;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const isList = Array.isArray(value);
  const inner = indent ? `\n${margin}${" ".repeat(indent)}` : "";
  const parts = (isList ? [...value.keys()] : Object.keys(value).filter((key) => value[key] !== undefined)).map((key) => {
    const text = noted(value, key) ?? writeJson(value[key], indent, inner.slice(1));
    return `${inner}${isList ? "" : `${JSON.stringify(key)}:${indent ? " " : ""}`}${text}`;
  });
  const [start, end] = isList ? "[]" : "{}";
  return parts.length === 0 ? start + end : `${start}${parts.join(",")}${indent ? `\n${margin}` : ""}${end}`;
}

export function isDeep(value) {
  let level = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEPTH_MAX) return true;
    const inner = [];
    for (const each of level) {
      if (typeof each === "object" && each !== null) for (const one of Object.values(each)) if (typeof one === "object" && one !== null) inner.push(one);
    }
    level = inner;
  }
  return false;
}
