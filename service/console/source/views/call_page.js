// The view of one call: #/calls/<conversation>/<tool call>.
import { CallWatch } from "../lib/call_watch.js";
import { href } from "../lib/router.js";
import { html, useEffect, useMemo } from "../lib/ui.js";
import { Empty, Page } from "../parts/basics.js";
import { CallResult } from "../parts/call_result.js";

export function CallPage({ parts: [conversation = "", call = ""] }) {
  const watch = useMemo(() => new CallWatch(conversation, call), [conversation, call]);
  useEffect(() => {
    if (call) watch.join();
    return () => watch.leave();
  }, [watch]);
  if (!call) return html`<${Page} title="Call"><${Empty} title="No call is named">The address is #/calls/conversation/call.<//><//>`;
  return html`<${Page} title=${call} crumbs=${[{ text: "Conversations", href: href("conversations") }, { text: conversation, href: href("conversations", conversation, "timeline") }]}>
    <${CallResult} key=${`${conversation} ${call}`} watch=${watch} /><//>`;
}
