// What a form asks for, read of a JSON Schema, and the value that is in a form. The service checks each answer against the whole schema;
// patterns are left to it, as the browser's engine backtracks.
import { count } from "./format.js";
import { ExactNumber, exactAt, jsonText, merged, parseIn, textAt, writeJson } from "./json_text.js";

const DEPTH_MAX = 6;
const FIELDS_MAX = 100;
const CONTROLS_MAX = 300; // that a form has at first
const OPTIONS_MAX = 2_000; // of all of them
const STARTED_MAX = 20; // entries that a list has at first; a list in a list has one
const SIMPLE = new Set(["string", "number", "integer", "boolean"]);
const TITLE_CHARS = 200;
export const REQUIRED = "This is required";
export const ABSENT = Symbol("absent");
// The draft of a text field whose value is the text "": a field that is just not filled in is another thing.
export const EMPTY_TEXT = Symbol("empty text");
// Whether the text "" fits, as far as it is known here.
export const canBeEmpty = ({ kind, schema }) => kind === "string" && !(schema.minLength > 0) && schema.pattern === undefined && schema.format === undefined;

// A node: {kind, title, hint, schema, ...}. kind is "string", "number", "integer", "boolean", "enum" {options: [{value, text}]},
// "object" {fields: [{name, node, isRequired}]}, "array" {item}, or "json" for all that has no control of its own.
export function describeSchema(schema) {
  const counter = { left: FIELDS_MAX };
  const node = describe(schema ?? {}, schema ?? {}, 0, counter);
  if (counter.left < 0) return common(schema, "json");
  const room = { controls: CONTROLS_MAX, options: OPTIONS_MAX };
  draftOf(node, exactAt(node.schema, "default"), room);
  return isFull(room) ? common(schema, "json") : node;
}

function common(schema, kind) {
  const { title, description } = isObject(schema) ? schema : {};
  return { kind, schema: isObject(schema) ? schema : {}, title: text(title), hint: text(description) };
}

const text = (value) => (typeof value === "string" && value ? value.slice(0, 4_000) : null);
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function describe(given, root, depth, counter) {
  counter.left -= 1;
  if (!isObject(given) || depth > DEPTH_MAX || counter.left < 0) return common(given, "json");
  const { schema, isNullable } = simplify(given, root);
  if (schema === null) return common(given, "json");
  const options = "const" in schema ? [optionOf(schema, "const")] : Array.isArray(schema.enum) ? schema.enum.map((_, i) => optionOf(schema.enum, i)) : null;
  if (options !== null && options.length <= 500) return { ...common(schema, "enum"), options, isNullable };
  const type = schema.type ?? (isObject(schema.properties) ? "object" : null);
  if (SIMPLE.has(type)) return { ...common(schema, type), isNullable };
  if (type === "object" && isObject(schema.properties) && Object.keys(schema.properties).length > 0) {
    const required = new Set(Array.isArray(schema.required) ? schema.required : []);
    const fields = Object.entries(schema.properties).map(([name, inner]) => ({ name, node: describe(inner, root, depth + 1, counter), isRequired: required.has(name) }));
    return { ...common(schema, "object"), fields, isNullable };
  }
  if (type === "array" && isObject(schema.items) && !schema.prefixItems) {
    const item = describe(schema.items, root, depth + 1, counter);
    if (item.kind !== "json") return { ...common(schema, "array"), item, isNullable };
  }
  return common(schema, "json");
}

const optionOf = (holder, key) => ({ value: exactAt(holder, key), text: typeof holder[key] === "string" ? holder[key] : textAt(holder, key) });

// Follows a local reference, and takes "this or null" as this. {schema: null} for what is more than one of them.
function simplify(given, root) {
  let schema = given;
  let isNullable = false;
  for (let step = 0; step < 8; step++) {
    const choices = schema.anyOf ?? schema.oneOf;
    if (typeof schema.$ref === "string") {
      const found = follow(schema.$ref, root);
      if (found === null) return { schema: null };
      schema = merged(found, textsOf(schema));
    } else if (Array.isArray(choices)) {
      const others = choices.filter((each) => each?.type !== "null");
      if (others.length !== 1 || !isObject(others[0])) return { schema: null };
      isNullable ||= others.length < choices.length;
      schema = merged(others[0], textsOf(schema));
    } else if (Array.isArray(schema.type)) {
      const others = schema.type.filter((each) => each !== "null");
      if (others.length !== 1) return { schema: null };
      isNullable ||= others.length < schema.type.length;
      schema = merged(schema, { type: others[0] });
    } else if (["allOf", "if", "not", "dependentSchemas"].some((name) => name in schema)) {
      return { schema: null };
    } else {
      return { schema, isNullable };
    }
  }
  return { schema: null };
}

const textsOf = (schema) => {
  const { title, description, default: usual } = schema;
  return { ...(title && { title }), ...(description && { description }), ...(usual !== undefined && { default: exactAt(schema, "default") }) };
};

function follow(reference, root) {
  if (!reference.startsWith("#/")) return reference === "#" ? root : null;
  let found = root;
  for (const part of reference.slice(2).split("/")) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isObject(found) || !Object.hasOwn(found, name)) return null;
    found = found[name];
  }
  return isObject(found) ? found : null;
}

// The name of a field for readers, without tricks of direction; the caller makes it visible.
export const titleOf = (node, name) => (node.title ?? name).slice(0, TITLE_CHARS);

// What a form holds at first: texts for controls, objects and lists for their fields. An optional object begins empty.
export const emptyDraft = (node) => draftOf(node, exactAt(node.schema, "default"), { controls: Infinity, options: Infinity });

const isFull = ({ controls, options }) => controls < 0 || options < 0;

// `room`: how many controls and options the form may still have; no draft is made of more.
function draftOf(node, usual, room, isInList = false) {
  room.controls -= 1; // a group or a list is one, too
  if (node.kind === "enum") room.options -= node.options.length;
  if (isFull(room)) return "";
  switch (node.kind) {
    case "object":
      return Object.fromEntries(node.fields.map(({ name, node: field }) => [name, draftOf(field, isObject(usual) && Object.hasOwn(usual, name) ? exactAt(usual, name) : exactAt(field.schema, "default"), room, isInList)]));
    case "array": {
      if (node.isNullable && (usual === undefined || usual === null)) return null; // no list, until one is begun
      const given = Array.isArray(usual) ? usual : [];
      const length = Math.max(given.length, Math.min(node.schema.minItems ?? 0, isInList ? 1 : STARTED_MAX));
      const drafts = [];
      for (let i = 0; i < length && !isFull(room); i++) drafts.push(draftOf(node.item, i < given.length ? exactAt(given, i) : exactAt(node.item.schema, "default"), room, true));
      return drafts;
    }
    case "json":
      return usual === undefined ? "" : jsonText(usual, 2);
    case "enum": {
      const at = node.options.findIndex((each) => usual !== undefined && writeJson(each.value) === writeJson(usual));
      return at < 0 ? (node.options.length === 1 && "const" in node.schema ? "0" : "") : String(at);
    }
    default:
      if (usual === "" && canBeEmpty(node)) return EMPTY_TEXT;
      return usual === undefined || usual === null ? "" : String(usual);
  }
}

// The value of a form, or ABSENT; mistakes go into errors by the place of the field, such as "result.items[0].price".
export function readDraft(node, draft, place, isRequired, errors) {
  switch (node.kind) {
    case "object": return readObject(node, draft, place, isRequired, errors);
    case "array": return readArray(node, draft, place, isRequired, errors);
    case "enum": return draft === "" ? missing(node, place, isRequired, errors) : node.options[Number(draft)].value;
    case "boolean": return draft === "" ? missing(node, place, isRequired, errors) : draft === "true";
    case "json": return readJson(node, draft, place, isRequired, errors);
    case "string": return readText(node, draft, place, isRequired, errors);
    default: return readNumber(node, draft, place, isRequired, errors);
  }
}

function missing(node, place, isRequired, errors) {
  if (!isRequired) return ABSENT;
  if (node.isNullable) return null;
  errors.set(place, REQUIRED);
  return ABSENT;
}

function readObject(node, draft, place, isRequired, errors) {
  const value = {};
  const own = new Map();
  for (const { name, node: field, isRequired: isNeeded } of node.fields) {
    const found = readDraft(field, draft[name], `${place}.${name.slice(0, 100)}`, isNeeded, own);
    if (found !== ABSENT) Object.defineProperty(value, name, { value: found, enumerable: true, configurable: true, writable: true });
  }
  // An optional object in which nothing is filled in is left out, whatever it would need.
  const isBlank = Object.keys(value).length === 0 && own.size > 0 && [...own.values()].every((each) => each === REQUIRED);
  if (isBlank && isRequired && node.isNullable) return null;
  if (!isRequired && Object.keys(value).length === 0 && [...own.values()].every((each) => each === REQUIRED)) return ABSENT;
  for (const [where, message] of own) errors.set(where, message);
  return value;
}

function readArray(node, draft, place, isRequired, errors) {
  if (draft === null) return missing(node, place, isRequired, errors);
  const { minItems = 0, maxItems } = node.schema;
  const own = new Map();
  const values = draft.map((each, i) => readDraft(node.item, each, `${place}[${i}]`, true, own));
  // An optional list in which nothing is filled in is left out, as an optional object is.
  if (!isRequired && values.every((each) => each === ABSENT) && [...own.values()].every((each) => each === REQUIRED)) return ABSENT;
  if (draft.length < minItems) errors.set(place, `At least ${count(minItems, "entry", "entries")} needed`);
  if (maxItems !== undefined && draft.length > maxItems) errors.set(place, `At most ${count(maxItems, "entry", "entries")} allowed`);
  for (const [where, message] of own) errors.set(where, message);
  return values.map((each) => (each === ABSENT ? null : each));
}

function readText(node, draft, place, isRequired, errors) {
  const { minLength = 0, maxLength } = node.schema;
  if (draft === EMPTY_TEXT) return "";
  if (draft === "") return missing(node, place, isRequired, errors);
  const length = [...draft].length;
  if (length < minLength) errors.set(place, `At least ${minLength} characters are needed (now ${length})`);
  if (maxLength !== undefined && length > maxLength) errors.set(place, `At most ${maxLength} characters are allowed (now ${length})`);
  return draft;
}

function readNumber(node, draft, place, isRequired, errors) {
  if (draft.trim() === "") return missing(node, place, isRequired, errors);
  const written = numberText(draft.trim());
  const number = written === null ? NaN : Number(written);
  const problem = numberProblem(node, number, written);
  if (problem) {
    errors.set(place, problem);
    return ABSENT;
  }
  const isSame = String(number) === written || (node.kind === "integer" && !isRounded(number, written)); // 3.0 is the integer 3
  return isSame ? number : new ExactNumber(written);
}

// What was typed as JSON writes it, digit for digit: without a plus, zeros in front, or a bare point; null for what is not a number.
function numberText(typed) {
  const parts = /^([-+]?)(\d*)(?:\.(\d*))?(e[-+]?\d+)?$/i.exec(typed);
  if (parts === null || !(parts[2] || parts[3])) return null;
  const [, sign, whole, fraction, power = ""] = parts;
  return `${sign.replace("+", "")}${whole.replace(/^0+(?=\d)/, "") || "0"}${fraction ? `.${fraction}` : ""}${power}`;
}

// The digits and the power of ten of a JSON number, the same for all ways to write it.
function decimalOf(written) {
  const [, whole, fraction = "", power = "0"] = /^-?(\d+)(?:\.(\d+))?(?:e([-+]?\d+))?$/i.exec(written);
  const all = (whole + fraction).replace(/^0+/, "");
  const digits = all.replace(/0+$/, "");
  return { digits, power: digits ? BigInt(power) + BigInt(all.length - digits.length - fraction.length) : 0n };
}

// Whether a number may be another one than what was written.
function isRounded(number, written) {
  const [own, given] = [decimalOf(String(number)), decimalOf(written)];
  return own.digits !== given.digits || own.power !== given.power || (Number.isInteger(number) && !Number.isSafeInteger(number));
}

function numberProblem({ kind, schema }, number, written) {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  if (!Number.isFinite(number)) return "Write a number, such as 12 or 0.5";
  if (kind === "integer" && decimalOf(written).power < 0n) return "Write a whole number";
  if (isRounded(number, written)) return null; // its limits are left to the service
  if (minimum !== undefined && number < minimum) return `The smallest value is ${minimum}`;
  if (maximum !== undefined && number > maximum) return `The greatest value is ${maximum}`;
  if (exclusiveMinimum !== undefined && number <= exclusiveMinimum) return `The value has to be above ${exclusiveMinimum}`;
  if (exclusiveMaximum !== undefined && number >= exclusiveMaximum) return `The value has to be below ${exclusiveMaximum}`;
  if (Number.isInteger(multipleOf) && Number.isInteger(number) && number % multipleOf !== 0) return `The value has to be a multiple of ${multipleOf}`;
  return null;
}

function readJson(node, draft, place, isRequired, errors) {
  if (draft.trim() === "") return missing(node, place, isRequired, errors);
  try {
    return exactAt(parseIn(draft), 0);
  } catch (problem) {
    errors.set(place, `This is not JSON: ${problem.message}`);
    return ABSENT;
  }
}

// The limits of a field in words; "" if it has none.
export function limitsOf({ kind, schema }) {
  const parts = [];
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, minLength, maxLength, minItems, maxItems } = schema;
  if (kind === "integer") parts.push("whole number");
  if (minimum !== undefined) parts.push(`from ${minimum}`);
  if (exclusiveMinimum !== undefined) parts.push(`above ${exclusiveMinimum}`);
  if (maximum !== undefined) parts.push(`up to ${maximum}`);
  if (exclusiveMaximum !== undefined) parts.push(`below ${exclusiveMaximum}`);
  if (kind === "string" && minLength > 1) parts.push(`at least ${minLength} characters`);
  if (kind === "string" && maxLength !== undefined) parts.push(`at most ${maxLength} characters`);
  if (kind === "array" && minItems) parts.push(`at least ${minItems}`);
  if (kind === "array" && maxItems !== undefined) parts.push(`at most ${maxItems}`);
  return parts.map(String).join(", ");
}
