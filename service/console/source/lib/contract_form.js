// The contract as the form has it, and as the API takes it.
import EXTENSIONS from "./checks.json";

// kind: how a value is written; checks with `glob` are for patterns only.
export const CHECKS = {
  min_rows: { title: "min rows", kind: "number" },
  columns: { title: "columns", kind: "list", hint: "month, total" },
  min_pages: { title: "min pages", kind: "number" },
  max_pages: { title: "max pages", kind: "number" },
  min_width: { title: "min width px", kind: "number" },
  min_height: { title: "min height px", kind: "number" },
  json_schema: { title: "JSON Schema", kind: "json", hint: '{"type": "object"}' },
  not_blank: { title: "not blank", kind: "flag" },
  min_bytes: { title: "min bytes", kind: "number" },
  max_bytes: { title: "max bytes", kind: "number" },
  mime: { title: "media type", kind: "text", hint: "text/csv" },
  encoding: { title: "encoding", kind: "text", hint: "cp1251" },
  password: { title: "password", kind: "text" },
  min_count: { title: "min matches", kind: "number", glob: true },
  max_count: { title: "max matches", kind: "number", glob: true },
};

export const isPattern = (name) => /[*?[]/.test(name);
const extensionOf = (name) => (/\.([A-Za-z0-9-]+)$/.exec(name)?.[1] ?? "").toLowerCase();

// The checks that can apply to a name; of a pattern with an open extension all.
export function checksFor(name) {
  const extension = extensionOf(name);
  const isOpen = !name || (isPattern(name) && !extension);
  return Object.keys(CHECKS).filter((check) => {
    if (CHECKS[check].glob) return isPattern(name);
    return !(check in EXTENSIONS) || isOpen || EXTENSIONS[check].includes(extension);
  });
}

export const emptyPromise = () => ({ name: "", description: "", visibility: "external", checks: {} });

export class FormError extends Error {}

// One entry of the contract. Throws FormError for a value that cannot be read.
export function entryOf(promise, index) {
  const where = `Promise ${index + 1}`;
  const name = promise.name.trim();
  if (!name) throw new FormError(`${where}: the file name is empty; write a name such as report.pdf, or remove the promise`);
  const entry = { [isPattern(name) ? "glob" : "filename"]: name, description: promise.description.trim() || name };
  if (promise.visibility === "internal") entry.visibility = "internal";
  for (const [check, text] of Object.entries(promise.checks)) {
    const value = valueOf(check, text, `${where} (${name})`);
    if (value !== undefined) entry[check] = value;
  }
  return entry;
}

function valueOf(check, given, where) {
  const { kind, title } = CHECKS[check];
  if (kind === "flag") return true;
  const text = String(given).trim();
  if (!text) return undefined;
  if (kind === "list") return text.split(",").map((each) => each.trim()).filter(Boolean);
  if (kind === "number") {
    if (!/^\d+$/.test(text)) throw new FormError(`${where}: ${title} is "${text}"; write a whole number`);
    return Number(text);
  }
  if (kind === "json") {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new FormError(`${where}: ${title} is not JSON: ${error.message}`);
    }
  }
  return text;
}

// The form of a contract in JSON, as it stands in a call. Throws FormError.
export function promisesOf(text) {
  let entries;
  try {
    entries = JSON.parse(text);
  } catch (error) {
    throw new FormError(`The contract is not JSON: ${error.message}`);
  }
  if (!Array.isArray(entries)) throw new FormError("The contract is not a list; write [{\"filename\": …, \"description\": …}]");
  return entries.map(({ filename, glob, description, visibility, ...checks }) => {
    const unknown = Object.keys(checks).filter((check) => !(check in CHECKS));
    if (unknown.length) throw new FormError(`The contract has unknown checks: ${unknown.join(", ")}`);
    const written = Object.entries(checks).map(([check, value]) => [check, writtenValue(check, value)]);
    return { name: filename ?? glob ?? "", description: description ?? "", visibility: visibility ?? "external", checks: Object.fromEntries(written) };
  });
}

function writtenValue(check, value) {
  const { kind } = CHECKS[check];
  if (kind === "list") return value.join(", ");
  return kind === "json" ? JSON.stringify(value) : String(value);
}
