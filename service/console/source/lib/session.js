// State of this tab: the key, the access that it gives, the colour scheme.
import { PAGE_PARTS } from "./base.js";
import { computed, signal } from "./ui.js";

const KEY = "proofbox.key";
const SPACE_TOKEN = "proofbox.space-token.";
const SCHEME = "proofbox.scheme";
const SINGLE_KEYS = "proofbox.single-keys";

// The key stays in this tab: sessionStorage ends with it, and no cookie sends it by itself.
export const key = signal(sessionStorage.getItem(KEY) ?? "");

// The token of a shared link, which opens the space of this page; "" on other pages.
export const spaceToken = signal("");

// What requests send in Authorization.
export const credential = computed(() => spaceToken.value || key.value);

// "checking", "open" (no key is needed), "ready" (the key is valid), "guest" (a shared link), "no_key", "wrong_key", "wrong_link", "left_link", "offline".
export const access = signal("checking");
export const accessProblem = signal(null);
export const mayUse = computed(() => access.value === "open" || access.value === "ready");

// The tools of the service, as GET /v1/tools lists them; empty until access is known.
export const tools = signal([]);
export const image = signal(null);

export function setKey(text) {
  key.value = text.trim();
  if (key.value) sessionStorage.setItem(KEY, key.value);
  else sessionStorage.removeItem(KEY);
}

// Takes the token of a shared link, /spaces/<id>#token=pbs_…, out of the address: a fragment is sent to no server, and this one is
// not left in the history. It stays in this tab, so a reload keeps it.
export function takeSpaceToken() {
  const [view, space] = PAGE_PARTS;
  if (view !== "spaces" || !space) return;
  const given = /^#token=(pbs_[\w.-]+)$/.exec(location.hash);
  if (given) {
    sessionStorage.setItem(SPACE_TOKEN + space, given[1]);
    history.replaceState(null, "", location.pathname);
  }
  spaceToken.value = sessionStorage.getItem(SPACE_TOKEN + space) ?? "";
  addEventListener("hashchange", () => { if (location.hash.startsWith("#token=")) location.reload(); });
}

export function forgetSpaceToken() {
  sessionStorage.removeItem(SPACE_TOKEN + PAGE_PARTS[1]);
  spaceToken.value = "";
  access.value = "left_link";
}

// The entity that a space token acts as, for showing it: the service alone checks the token. null if it cannot be read.
export function entityOfToken(token) {
  try {
    const payload = token.slice("pbs_".length).split(".")[0].replaceAll("-", "+").replaceAll("_", "/");
    const fields = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(payload), (each) => each.charCodeAt(0))));
    return typeof fields[4] === "string" ? fields[4] : null;
  } catch {
    return null;
  }
}

// "auto" follows the system.
export const scheme = signal(localStorage.getItem(SCHEME) ?? "auto");

export function setScheme(name) {
  scheme.value = name;
  if (name === "auto") localStorage.removeItem(SCHEME);
  else localStorage.setItem(SCHEME, name);
  applyScheme();
}

export function applyScheme() {
  if (scheme.value === "auto") delete document.documentElement.dataset.scheme;
  else document.documentElement.dataset.scheme = scheme.value;
}

// WCAG 2.1.4: shortcuts of one character can be switched off.
export const singleKeys = signal(localStorage.getItem(SINGLE_KEYS) !== "off");

export function setSingleKeys(isOn) {
  singleKeys.value = isOn;
  localStorage.setItem(SINGLE_KEYS, isOn ? "on" : "off");
}
