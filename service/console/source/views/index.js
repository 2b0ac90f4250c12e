// The table of views. A view is a component with {parts, query}: the segments and the query behind its name.
import { CallPage } from "./call_page.js";
import { Conversations } from "./conversations.js";
import { Keys } from "./keys.js";
import { Operations } from "./operations.js";
import { Run } from "./run.js";
import { Spaces } from "./spaces.js";

const VIEWS = {
  run: Run,
  calls: CallPage, // #/calls/<conversation>/<tool call>
  conversations: Conversations, // #/conversations, #/conversations/<id>/timeline|files|sources
  spaces: Spaces, // #/spaces, and the page /spaces/<id>
  operations: Operations,
  keys: Keys,
};

// The entries of the navigation; `letter` is the second key of the shortcut "g <letter>".
export const NAVIGATION = [
  { name: "run", title: "Run", icon: "run", letter: "r" },
  { name: "conversations", title: "Conversations", icon: "chat", letter: "c" },
  { name: "spaces", title: "Spaces", icon: "people", letter: "s" },
  { name: "operations", title: "Operations", icon: "gauge", letter: "o" },
  { name: "keys", title: "Keys", icon: "key", letter: "k" },
];

export function viewOf(parts) {
  const name = Object.hasOwn(VIEWS, parts[0] ?? "") ? parts[0] : "run";
  return { name, component: VIEWS[name] };
}
