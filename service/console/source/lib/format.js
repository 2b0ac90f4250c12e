// Numbers, sizes, times and names for readers.
const UNITS = ["B", "KB", "MB", "GB", "TB"];

export function bytes(count) {
  if (count === null || count === undefined) return "–";
  let size = count;
  let unit = 0;
  while (size >= 1000 && unit < UNITS.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)}\u00a0${UNITS[unit]}`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1) return ms === 0 ? "0 ms" : "< 1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  const seconds = Math.round(ms / 1000);
  return seconds < 3600
    ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    : `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

// "26 Nov, 10:48" in the reader's time zone; the year if it is another one.
export function time(text) {
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return text ?? "–";
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return date.toLocaleString("en-GB", { day: "numeric", month: "short", year, hour: "2-digit", minute: "2-digit" });
}

export function ago(text, now = Date.now()) {
  const s = Math.max(0, (now - new Date(text).getTime()) / 1000);
  if (s < 60) return "just now";
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ago`;
  return `${count(Math.floor(s / 86_400), "day")} ago`;
}

export const fileName = (path) => path.slice(path.lastIndexOf("/") + 1);
export const words = (code) => code.replaceAll("_", " ");
// ArrayBuffer to hex is not needed: the service sends hashes as text.
export const shortHash = (sha256) => (sha256 ? sha256.slice(0, 12) : "–");

// Controls and marks that change the direction of text would let a file name show as another one.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
export const visible = (text) =>
  text.replace(INVISIBLE, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

export function randomId(prefix) {
  const letters = crypto.getRandomValues(new Uint8Array(5));
  return `${prefix}${[...letters].map((n) => n.toString(36).padStart(2, "0")).join("").slice(0, 10)}`;
}
