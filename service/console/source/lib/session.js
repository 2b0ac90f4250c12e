// State of this tab: the key, the access that it gives, the colour scheme.
import { computed, signal } from "./ui.js";

const KEY = "proofbox.key";
const SCHEME = "proofbox.scheme";
const SINGLE_KEYS = "proofbox.single-keys";

// The key stays in this tab: sessionStorage ends with it, and no cookie sends it by itself.
export const key = signal(sessionStorage.getItem(KEY) ?? "");

// "checking", "open" (no key is needed), "ready" (the key is valid), "no_key", "wrong_key", "offline".
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
