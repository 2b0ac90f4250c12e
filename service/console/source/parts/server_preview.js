// Pictures of pages and tables, made by the service in a sandbox.
import { html } from "../lib/ui.js";
import { Empty } from "./basics.js";

// Whether the service can show a file of this media type.
export const canShow = (mime) => false && mime;

export function ServerPreview() {
  return html`<${Empty} title="No preview" icon="file">Download the file to see it.<//>`;
}
