// Texts of others as parts: plain text, links to web pages, mentions.
import { visible } from "./format.js";

// Controls, and marks that do not show or let a text show in another order than it has. Joiners of letters and emoji stay: scripts need them.
const DISTURBING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;
export const readableText = (text) => text.replace(/\r\n?/g, "\n").replace(DISTURBING, (c) => `\\u${c.codePointAt(0).toString(16).padStart(4, "0")}`);

const PARTS = /https?:\/\/[^\s<>"'`\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069]{1,2000}|@[A-Za-z][A-Za-z0-9_-]{0,63}/gi;
const CLOSING = /[.,;:!?)\]}*_]+$/;

// [{kind: "text" | "link" | "mention", text, href?}]; handles: a Set of folded ones.
export function splitText(text, handles = new Set()) {
  const parts = [];
  let end = 0;
  const addText = (until) => { if (until > end) parts.push({ kind: "text", text: readableText(text.slice(end, until)) }); };
  for (const match of text.matchAll(PARTS)) {
    const found = match[0].startsWith("@") ? mention(text, match, handles) : link(match[0]);
    if (!found) continue;
    addText(match.index);
    parts.push(found);
    end = match.index + found.source.length;
  }
  addText(text.length);
  return parts;
}

function mention(text, { 0: written, index }, handles) {
  if (index > 0 && /[\p{L}\p{N}]/u.test(text[index - 1])) return null;
  return handles.has(written.slice(1).toLowerCase()) ? { kind: "mention", text: written, source: written } : null;
}

function link(written) {
  const source = written.replace(CLOSING, "");
  let url;
  try {
    url = new URL(source);
  } catch {
    return null;
  }
  // A user in the address makes another host look like the one that is meant.
  if (!["http:", "https:"].includes(url.protocol) || url.username || url.password) return null;
  return { kind: "link", text: visible(source), href: url.href, source };
}
