// Where the service is: the script is at console/console.js below it. Pages are at several depths, also behind the path prefix of a proxy.
export const BASE = new URL("..", import.meta.url);

// The segments of the page's own path below the service: [] of the console, ["spaces", id] of a space.
export const PAGE_PARTS = location.pathname.slice(BASE.pathname.length).split("/").filter(Boolean).map(decode);

export function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
