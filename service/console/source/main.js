// Entry: the shell around the views.
import { checkAccess } from "./lib/api.js";
import { route, startRouter } from "./lib/router.js";
import { access, applyScheme, spaceToken, takeSpaceToken } from "./lib/session.js";
import { startShortcuts } from "./lib/shortcuts.js";
import { html, render } from "./lib/ui.js";
import { KeyForm } from "./parts/key_form.js";
import { Toasts } from "./parts/toast_list.js";
import { GuestShell, LinkEnded, LinkLeft, Shell } from "./parts/shell.js";
import { Loading } from "./parts/basics.js";
import { viewOf } from "./views/index.js";
import { Spaces } from "./views/spaces.js";

function App() {
  const { parts, query } = route.value;
  if (spaceToken.value || access.value === "left_link") return html`<${Guest} parts=${parts} />`;
  const view = viewOf(parts);
  return html`<${Shell} active=${view.name}>
    ${access.value === "checking" ? html`<div class="page"><${Loading} text="Connecting to the service…" /></div>`
      : access.value === "open" || access.value === "ready"
        ? html`<${view.component} key=${view.name} parts=${parts.slice(1)} query=${query} />`
        : html`<${KeyForm} />`}
    <${Toasts} />
  <//>`;
}

// The page of a shared link: its space, without the views that need a key.
function Guest({ parts }) {
  return html`<${GuestShell}>
    ${access.value === "wrong_link" ? html`<${LinkEnded} />` : access.value === "left_link" ? html`<${LinkLeft} />` : html`<${Spaces} parts=${parts.slice(1)} />`}
    <${Toasts} />
  <//>`;
}

applyScheme();
takeSpaceToken();
startRouter();
startShortcuts();
checkAccess();
render(html`<${App} />`, document.getElementById("app"));
