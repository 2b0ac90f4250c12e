// How much of a card has been open to its reader: what a person has not seen, a person cannot approve.
import { computed, createContext, signal } from "./ui.js";

// A Reading inside a card that waits for an approval; null elsewhere.
export const ReadingContext = createContext(null);

export class Reading {
  #closed = signal(new Map()); // id of a part -> how many characters of it are not shown
  openings = signal(0); // how often all was asked for
  hidden = computed(() => [...this.#closed.value.values()].reduce((sum, each) => sum + each, 0));

  // Notes that a part is not shown whole; returns what ends the note.
  close(id, characters) {
    this.#closed.value = new Map(this.#closed.peek()).set(id, characters);
    return () => {
      const left = new Map(this.#closed.peek());
      left.delete(id);
      this.#closed.value = left;
    };
  }

  openAll() {
    this.openings.value += 1;
  }
}
