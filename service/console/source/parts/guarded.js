// Keeps a failure of one part of a page from taking the page down.
import { Component, html } from "../lib/ui.js";
import { Icon } from "./icons.js";

// Draws its children; after a failure a note, until `version` is another one.
export class Guarded extends Component {
  state = { failed: null };

  componentDidCatch() {
    this.setState({ failed: { version: this.props.version } });
  }

  render({ version, children }, { failed }) {
    if (failed === null || failed.version !== version) return children;
    return html`<p class="card-error"><${Icon} name="alert" /><span>This part cannot be shown. Reload the page; if that does not help, read it over the API.</span></p>`;
  }
}
