// A list that the service gives page by page: loaded items, a button for more, and how many there are.
import { count } from "../lib/format.js";
import { batch, html, useEffect, useRef, useSignal } from "../lib/ui.js";
import { Icon } from "./icons.js";

// load(cursor, abortSignal) asks for a page; itemsOf and nextOf read it, next is null on the last page.
export function usePages(load, itemsOf, nextOf, deps) {
  const items = useSignal([]);
  const cursor = useSignal(undefined);
  const isOver = useSignal(false);
  const isLoading = useSignal(false);
  const problem = useSignal(null);
  const controller = useRef(null);
  const more = async () => {
    if (isLoading.peek() || isOver.peek()) return;
    const own = controller.current;
    isLoading.value = true;
    try {
      const answer = await load(cursor.peek(), own.signal);
      if (own.signal.aborted) return;
      const next = nextOf(answer);
      batch(() => {
        items.value = [...items.peek(), ...itemsOf(answer)];
        cursor.value = next ?? undefined;
        isOver.value = next === null;
        problem.value = null;
        isLoading.value = false;
      });
    } catch (error) {
      if (own.signal.aborted) return;
      batch(() => { problem.value = error; isLoading.value = false; });
    }
  };
  const restart = () => {
    controller.current?.abort();
    controller.current = new AbortController();
    batch(() => {
      items.value = [];
      cursor.value = undefined;
      isOver.value = false;
      isLoading.value = false;
      problem.value = null;
    });
    more();
  };
  useEffect(() => {
    restart();
    return () => controller.current.abort();
  }, deps);
  const Foot = ({ what, shown }) => html`<div class="list-foot">
    ${isLoading.value ? html`<span class="spinner" role="status" aria-label="Loading" />` : ""}
    <span class="faint small" role="status">${shown !== undefined && shown !== items.value.length ? `${shown} of ` : ""}${count(items.value.length, what)}${isOver.value ? "" : " loaded"}</span>
    ${!isOver.value && !isLoading.value && html`<button type="button" class="button quiet" onClick=${more}><${Icon} name="plus" />Load more</button>`}
  </div>`;
  const foot = useRef(Foot);
  return { items, isOver, isLoading, problem, more, restart, Foot: foot.current };
}
