"""Runs in a sandbox: Markdown files to HTML, in place of the calls of ``toHTML`` in a page.

Reads ``{"pieces": [text | {"markdown": name}], "inputs": [{"name", "path"}], "target"}`` from standard input and
writes the whole page.
"""

import json
import sys

from markdown_it import MarkdownIt


def main() -> None:
    """Answers the request of standard input."""
    request = json.load(sys.stdin)
    # As Gotenberg's own library has it: tables, struck text and plain HTML are part of Markdown.
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    paths = {item["name"]: item["path"] for item in request["inputs"]}
    parts = []
    for piece in request["pieces"]:
        if isinstance(piece, str):
            parts.append(piece)
            continue
        with open(paths[piece["markdown"]], encoding="utf-8-sig", errors="replace") as file:
            parts.append(parser.render(file.read()))
    with open(request["target"], "w", encoding="utf-8") as file:
        file.write("".join(parts))
    print(json.dumps({"ok": True, "kind": "html", "name": ""}))


if __name__ == "__main__":
    main()
