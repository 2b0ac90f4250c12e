// As whom this tab acts in a space: the entity of the link or of the key, or one that the user chooses if the key may act for others.
import { get } from "./api.js";
import { entityOfToken, spaceToken } from "./session.js";

const CHOSEN = "proofbox.acts-as.";
const PAGES_MAX = 10;
const PAGE = 100;

// {own: entity id or null, mayWrite, mayChoose}
export async function findActor(signal) {
  if (spaceToken.value) return { own: entityOfToken(spaceToken.value), mayWrite: true, mayChoose: false };
  const caller = await get("v1/caller", {}, { signal });
  const mayChoose = caller.scopes.includes("spaces:act_as");
  return { own: await findOwn(caller.user, signal), mayWrite: caller.scopes.includes("spaces:write"), mayChoose };
}

async function findOwn(user, signal) {
  let before;
  for (let page = 0; page < PAGES_MAX; page++) {
    const { items, next } = await get("v1/entities", { before, limit: PAGE }, { signal });
    const own = items.find((each) => each.user === user);
    if (own || next === null) return own?.entity_id ?? null;
    before = next;
  }
  return null;
}

// As whom the tab acts now, and what requests name as entity_id: null for the key's own.
export function actorOf({ own, mayChoose }, space, members) {
  const persons = members.filter((each) => each.type === "human");
  const isIn = (id) => persons.some((each) => each.entity_id === id);
  if (!mayChoose) return { id: isIn(own) || spaceToken.value ? own : null, named: null, persons: [] };
  const chosen = sessionStorage.getItem(CHOSEN + space);
  const id = [chosen, own, persons.length === 1 ? persons[0].entity_id : null].find((each) => each && isIn(each)) ?? null;
  return { id, named: id, persons };
}

export const chooseActor = (space, id) => sessionStorage.setItem(CHOSEN + space, id);
