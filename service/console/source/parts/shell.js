// Navigation around all views, at the left or, on a phone, at the bottom; the map of keys.
import { BASE, checkAccess } from "../lib/api.js";
import { go, href } from "../lib/router.js";
import { access, accessProblem, forgetSpaceToken, key, scheme, setKey, setScheme, setSingleKeys, singleKeys } from "../lib/session.js";
import { useShortcut } from "../lib/shortcuts.js";
import { html, useEffect, useSignal } from "../lib/ui.js";
import { NAVIGATION } from "../views/index.js";
import { Dialog, ProblemNote } from "./basics.js";
import { Icon, Mark } from "./icons.js";

const SCHEMES = { auto: ["half", "dark", "Colours: system"], dark: ["moon", "light", "Colours: dark"], light: ["sun", "auto", "Colours: light"] };

export function Shell({ active, children }) {
  const isMapOpen = useSignal(false);
  const [icon, next, label] = SCHEMES[scheme.value] ?? SCHEMES.auto;
  useShortcut("?", () => { isMapOpen.value = true; });
  useShortcut("t", () => setScheme(SCHEMES[scheme.value][1]));
  for (const each of NAVIGATION) useShortcut(`g ${each.letter}`, () => go(each.name));
  const forget = () => { setKey(""); checkAccess(); };
  return html`<a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      document.getElementById("main").focus();
    }}>Skip to the content</a>
  <div class="shell">
    <header class="side">
      <a class="brand" href=${href("run")}><${Mark} /><span>Proofbox</span></a>
      <nav class="views" aria-label="Views">
        ${NAVIGATION.map((each) => html`<a href=${href(each.name)} aria-current=${each.name === active ? "page" : null}>
          <${Icon} name=${each.icon} /><span>${each.title}</span></a>`)}
      </nav>
      <div class="side-foot">
        <a class="side-link" href=${new URL("docs/site", BASE).href} target="_blank" rel="noopener" title="Documentation (in a new tab)">
          <${Icon} name="file" /><span>Documentation</span></a>
        <a class="side-link" href=${new URL("docs", BASE).href} title="API documentation"><${Icon} name="book" /><span>API</span></a>
        <button type="button" class="side-link" title="Keyboard shortcuts" onClick=${() => { isMapOpen.value = true; }}>
          <${Icon} name="keyboard" /><span>Shortcuts</span></button>
        <button type="button" class="side-link" title=${label} onClick=${() => setScheme(next)}>
          <${Icon} name=${icon} /><span>${label}</span></button>
        ${key.value && access.value !== "checking" && html`<button type="button" class="side-link" title="Forget the key" onClick=${forget}>
          <${Icon} name="out" /><span>Forget the key</span></button>`}
      </div>
    </header>
    <main id="main" tabindex="-1">${children}</main>
  </div>
  ${isMapOpen.value && html`<${KeyMap} onClose=${() => { isMapOpen.value = false; }} />`}`;
}

// Around a space that a shared link opens: no other view.
export function GuestShell({ children }) {
  const [icon, next, label] = SCHEMES[scheme.value] ?? SCHEMES.auto;
  const isLeaving = useSignal(false);
  return html`<div class="shell guest">
    <header class="guest-head"><span class="brand grow"><${Mark} /><span>Proofbox</span></span>
      ${access.value === "guest" && html`<button type="button" class="button quiet" onClick=${() => { isLeaving.value = true; }}><${Icon} name="out" />Leave this link</button>`}
      <button type="button" class="side-link" title=${label} onClick=${() => setScheme(next)}><${Icon} name=${icon} /><span class="hidden">${label}</span></button></header>
    <main id="main" tabindex="-1">${children}</main>
  </div>
  ${isLeaving.value && html`<${Dialog} title="Leave this link" onClose=${() => { isLeaving.value = false; }}>
    <p>This tab forgets the link. To come back, open the link again.</p>
    <button type="button" class="button primary" onClick=${() => { isLeaving.value = false; forgetSpaceToken(); }}>Leave</button><//>`}`;
}

// What is there after a guest has left.
export function LinkLeft() {
  useEffect(() => {
    document.title = "Proofbox";
    document.getElementById("main").focus();
  }, []);
  return html`<div class="gate"><${Mark} /><h1>You have left the link</h1>
    <p class="faint">This tab has forgotten it. To come back, open the link again.</p>
    <button type="button" class="button" onClick=${openWithKey}>Open the space with a key</button></div>`;
}

const openWithKey = () => {
  forgetSpaceToken();
  location.reload();
};

// What a shared link shows that does not work any more.
export function LinkEnded() {
  return html`<div class="gate"><${Mark} /><h1>This link does not work any more</h1>
    <p class="faint">It has expired, or you are not a member of the space any more. Ask for a new link.</p>
    <${ProblemNote} problem=${accessProblem.value} />
    <button type="button" class="button" onClick=${openWithKey}>Open the space with a key</button></div>`;
}

const MOD = navigator.platform.startsWith("Mac") ? "⌘" : "Ctrl";

function KeyMap({ onClose }) {
  const keys = [
    [[MOD, "Enter"], "run"],
    [["Esc"], "leave the editor, close a dialog"],
    ...NAVIGATION.map((each) => [["g", each.letter], each.title]),
    [["t"], "change the colours"],
    [["?"], "this list"],
  ];
  return html`<${Dialog} title="Shortcuts" onClose=${onClose}>
    <dl class="keys">${keys.map(([names, what]) => html`<div><dt>${names.map((name) => html`<kbd>${name}</kbd>`)}</dt><dd>${what}</dd></div>`)}</dl>
    <label class="check"><input type="checkbox" checked=${singleKeys.value}
      onChange=${(event) => setSingleKeys(event.target.checked)} /> Shortcuts of one letter are on</label>
  <//>`;
}
