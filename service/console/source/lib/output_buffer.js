// What a program prints: the whole as blobs for saving, and a tail of bounded size for the page.
import { signal } from "./ui.js";

export const TAIL_CHARS = 120_000;
const WHOLE_CHARS = 64_000_000; // what one tab holds; the service's own log of events has the same limit
const PACKED_CHARS = 1_000_000;

// Escape sequences of terminals, and controls other than tab and line ends.
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;
const OVERWRITTEN = /[^\n]*\r(?=[^\n\r])/g; // a progress bar shows its last state

export class OutputBuffer {
  #tail = [];
  #tailChars = 0;
  #packed = [];
  #loose = [];
  #looseChars = 0;
  #chars = 0;
  // Grows with each piece.
  changes = signal(0);
  isCut = false;

  get chars() { return this.#chars; }

  add(stream, text) {
    if (!text) return;
    this.#keep(text);
    const part = text.length > TAIL_CHARS ? text.slice(-TAIL_CHARS) : text;
    const last = this.#tail.at(-1);
    if (last?.stream === stream && last.text.length < TAIL_CHARS / 8) last.text += part;
    else this.#tail.push({ stream, text: part });
    this.#tailChars += part.length;
    while (this.#tail.length > 1 && this.#tailChars - this.#tail[0].text.length >= TAIL_CHARS) {
      this.#tailChars -= this.#tail.shift().text.length;
    }
    this.changes.value += 1;
  }

  #keep(text) {
    this.#chars += text.length;
    if (this.#chars > WHOLE_CHARS) {
      this.isCut = true;
      return;
    }
    this.#loose.push(text);
    this.#looseChars += text.length;
    if (this.#looseChars < PACKED_CHARS) return;
    this.#packed.push(new Blob(this.#loose)); // the browser may hold blobs on disk
    this.#loose = [];
    this.#looseChars = 0;
  }

  // Runs of one stream, as they are shown; `isPart` if the beginning is left out.
  tail() {
    const runs = [];
    for (const { stream, text } of this.#tail) {
      if (runs.at(-1)?.stream === stream) runs.at(-1).text += text;
      else runs.push({ stream, text });
    }
    let isPart = this.#chars > this.#tailChars;
    let surplus = this.#tailChars - TAIL_CHARS;
    while (surplus > 0 && runs.length) {
      isPart = true;
      const cut = Math.min(surplus, runs[0].text.length);
      runs[0].text = runs[0].text.slice(cut);
      surplus -= cut;
      if (!runs[0].text) runs.shift();
    }
    if (isPart && runs.length) runs[0].text = runs[0].text.slice(runs[0].text.indexOf("\n") + 1); // from a whole line on
    for (const run of runs) run.text = run.text.replace(ESCAPES, "").replace(OVERWRITTEN, "").replace(CONTROLS, "");
    return { runs, isPart };
  }

  whole() {
    return new Blob([...this.#packed, ...this.#loose], { type: "text/plain;charset=utf-8" });
  }
}
