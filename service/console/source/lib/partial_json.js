// What can be read of JSON text that is not complete: to be shown, not acted on.
import { parseJson } from "./json_text.js";

const READ_CHARS = 32_000; // each part reads the text again
const DEPTH_MAX = 64; // what is deeper cannot be read by a person

// The value as far as it is there; undefined for text that is too long, is nested too deeply or has nothing to show yet.
export function readPartial(text) {
  if (text.length > READ_CHARS) return undefined;
  const found = scan(text);
  if (found === null) return undefined;
  const { closers, isInString, comma } = found;
  const end = isInString ? `${text.replace(/\\(u[0-9a-fA-F]{0,3})?$/, (tail, _, at) => (isEscaped(text, at) ? tail : ""))}"` : text;
  return parse(end + closers) ?? (comma === null ? undefined : parse(text.slice(0, comma.at) + closersOf(comma.open)));
}

const closersOf = (open) => [...open].reverse().join("");

// What is open at the end and at the last comma; null for text that is nested too deeply.
function scan(text) {
  const open = [];
  let isInString = false;
  let comma = null;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (isInString) {
      if (c === "\\") i += 1;
      else if (c === '"') isInString = false;
    } else if (c === '"') isInString = true;
    else if (c === "{" || c === "[") {
      if (open.push(c === "{" ? "}" : "]") > DEPTH_MAX) return null;
    } else if (c === "}" || c === "]") open.pop();
    else if (c === ",") comma = { at: i, open: [...open] };
  }
  return { closers: closersOf(open), isInString, comma };
}

// Whether the backslash at this place is the second one of a pair.
function isEscaped(text, at) {
  let count = 0;
  while (text[at - 1 - count] === "\\") count += 1;
  return count % 2 === 1;
}

function parse(text) {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
