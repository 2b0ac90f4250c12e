// Line icons of 16 by 16 pixels. All are decoration: the words beside them carry the meaning.
import { html } from "../lib/ui.js";

const PATHS = {
  run: "M4.5 2.5v11l9-5.5z",
  chat: "M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z",
  gauge: "M2.5 11.5a5.5 5.5 0 1 1 11 0M8 11.5l3-4",
  key: "M6 10a3 3 0 1 1 0-4 3 3 0 0 1 .7 1h6.8v2h-1.5v1.5h-2V9H6.7A3 3 0 0 1 6 10z",
  book: "M3 2.5h8.5a1 1 0 0 1 1 1v10H4a1 1 0 0 1-1-1zM3 12a1 1 0 0 1 1-1h8.5",
  file: "M4 1.5h5l3 3v10H4zM9 1.5v3h3",
  files: "M5.5 3.5v-2h5l3 3v7h-3M2.5 4.5h5l3 3v7h-8z",
  download: "M8 2v8M4.5 6.5 8 10l3.5-3.5M2.5 13.5h11",
  alert: "M8 1.8 15 14H1zM8 6v4M8 11.7v.6",
  check: "M2.5 8.5 6 12l7.5-8",
  close: "M3.5 3.5l9 9M12.5 3.5l-9 9",
  circle: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11",
  plus: "M8 2.5v11M2.5 8h11",
  trash: "M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.6 9h6.8l.6-9",
  stop: "M4 4h8v8H4z",
  sun: "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5z",
  half: "M8 2.5a5.5 5.5 0 1 1 0 11zM8 2.5a5.5 5.5 0 1 0 0 11",
  keyboard: "M1.5 4h13v8h-13zM4 6.5h.1M6.5 6.5h.1M9 6.5h.1M11.5 6.5h.1M5 9.5h6",
  refresh: "M13 8a5 5 0 1 1-1.5-3.5M13 2v3h-3",
  upload: "M8 10.5V2.5M4.5 6 8 2.5 11.5 6M2.5 13.5h11",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8zM8 6.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9M10.5 10.5l3 3",
  left: "M10 3 5 8l5 5",
  right: "M6 3l5 5-5 5",
  people: "M6 3a2.2 2.2 0 1 1 0 4.4A2.2 2.2 0 0 1 6 3M2 13c0-2.4 1.8-4 4-4s4 1.6 4 4M10.5 3.4a2 2 0 1 1 0 3.8M11.5 9.3c1.6.3 2.5 1.7 2.5 3.7",
  send: "M2 8 14 2.5 10.5 14 8 9zM8 9l6-6.5",
  reply: "M6.5 4 3 7.5 6.5 11M3 7.5h6a4 4 0 0 1 4 4v1",
  link: "M6.5 9.5l3-3M7 4.8l1.6-1.6a2.9 2.9 0 0 1 4.2 4.2L11.2 9M9 11.2l-1.6 1.6a2.9 2.9 0 0 1-4.2-4.2L4.8 7",
  down: "M8 3v10M3.5 8.5 8 13l4.5-4.5",
  clock: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11M8 5v3.3l2 1.7",
  out: "M9 2.5h4.5V7M13.5 2.5 7 9M11.5 9v4.5h-9v-9H7",
};

export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
  <path d=${PATHS[name] ?? PATHS.circle} /></svg>`;

export const Mark = () => html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
  <rect x="1.5" y="1.5" width="21" height="21" rx="5" /><path d="M7 12.4l3.4 3.4L17.2 8.6" /></svg>`;
