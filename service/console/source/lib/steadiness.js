// Whether something has stood still for long enough that a click on it is meant for it.
export const STEADY_MS = 700;
const MOVED_PX = 2;

// How often the page itself has scrolled. A reader who scrolls knows what comes under the pointer.
let pageScrolls = 0;
export const countPageScroll = () => { pageScrolls += 1; };

export const placeOf = (element) => {
  const { bottom } = element.getBoundingClientRect();
  return { screen: bottom, content: bottom - (element.closest(".messages-inner")?.getBoundingClientRect().top ?? 0), scrolls: pageScrolls };
};

export class Steadiness {
  #place = null;
  #since_ms = 0;

  // Notes where it is now: on the screen and in what is scrolled, px; whether it has been there for STEADY_MS.
  see(place, now_ms) {
    if (this.#place === null || isMoved(this.#place, place)) this.#since_ms = now_ms;
    this.#place = place;
    return now_ms - this.#since_ms >= STEADY_MS;
  }
}

const isMoved = (before, now) =>
  Math.abs(now.screen - before.screen) > MOVED_PX && (Math.abs(now.content - before.content) > MOVED_PX || now.scrolls !== before.scrolls);
