"""``:::`` fences as pandoc and models nest them: a fence with a name opens, a bare one closes the innermost.

The plugin that comes with the parser wants longer fences around shorter ones, which nobody who writes
``::: columns`` around ``::: column`` remembers.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.rules_block import StateBlock

CALLOUTS = {
    "note": "note", "info": "note", "tip": "tip", "hint": "tip", "success": "tip", "important": "important",
    "warning": "warning", "attention": "warning", "caution": "caution", "danger": "caution", "error": "caution",
}  # fmt: skip
"""Names of callouts, and which of the five kinds they are."""

_MARKS = {
    "notes": ("aside", "pb-notes"), "speaker-notes": ("aside", "pb-notes"), "speaker": ("aside", "pb-notes"),
    "columns": ("div", "pb-columns"), "cols": ("div", "pb-columns"), "row": ("div", "pb-columns"),
    "column": ("div", "pb-column"), "col": ("div", "pb-column"),
    "slide": ("section", "slide"), "section": ("section", "slide"),
    "page-break": ("div", "pb-page-break"), "pagebreak": ("div", "pb-page-break"),
    "newpage": ("div", "pb-page-break"),
}  # fmt: skip
"""Names of other blocks: the element and the class that they become."""
_FENCE = re.compile(r"(:{3,})[ \t]*(.*?)[ \t]*:*$")
_ATTRIBUTES = re.compile(
    r"""\.(?P<class>[\w-]+)|\#(?P<id>[\w-]+)|(?P<key>[\w-]+)=(?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s}]+))"""
)


def colon_fences_plugin(parser: MarkdownIt) -> None:
    """Adds the rule."""
    parser.block.ruler.before(
        "fence", "colon_fence", _colon_fence, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]]


def _code_fence_after(text: str, fence: str) -> str:
    """The code fence that is open after a line: fences of colons in code are code."""
    stripped = text.strip()
    if fence:
        return "" if stripped.startswith(fence) and not stripped.strip(fence[0]) else fence
    match = re.match(r"(`{3,}|~{3,})", stripped)
    return match[1] if match else ""


def _end_of(state: StateBlock, first: int, last: int) -> int:
    """The line of the closing fence; ``last`` if there is none."""
    depth, fence = 1, ""
    for line in range(first, last):
        text = _line(state, line)
        if not fence:
            match = _FENCE.match(text)
            if match:
                depth += 1 if match[2] else -1
                if depth == 0:
                    return line
        fence = _code_fence_after(text, fence)
    return last


def _colon_fence(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    if state.is_code_block(first):
        return False
    match = _FENCE.match(_line(state, first))
    if match is None or not match[2]:
        return False
    if silent:
        return True
    tag, attributes, title = read_fence(match[2])
    end = _end_of(state, first + 1, last)
    opening = state.push("colon_fence_open", tag, 1)
    opening.block = True
    opening.attrs = dict(attributes)
    if title:
        state.push("html_block", "", 0).content = f'<p class="pb-callout-title">{escapeHtml(title)}</p>\n'
    retained = state.lineMax, state.parentType
    state.lineMax, state.parentType = end, "container"
    state.md.block.tokenize(state, first + 1, end)
    state.lineMax, state.parentType = retained
    state.push("colon_fence_close", tag, -1).block = True
    state.line = end + 1 if end < last else last
    return True


def read_fence(info: str) -> tuple[str, dict[str, str | int | float], str]:
    """What stands behind the colons: the tag, its attributes, and the title of a callout."""
    braces = re.search(r"\{(.*?)\}", info)
    words = (info[: braces.start()] if braces else info).split(maxsplit=1)
    classes, attributes = _attributes(braces[1] if braces else "")
    if words:
        classes.insert(0, words[0].lower())
    name = classes[0].lower() if classes else ""
    if name in CALLOUTS:
        title = (
            str(attributes.pop("title", "")) or (words[1].strip() if len(words) > 1 else "") or name.capitalize()
        )
        return "aside", {**attributes, "class": "pb-callout", "data-kind": CALLOUTS[name]}, title
    tag, retained = _MARKS.get(name, ("div", ""))
    width = re.fullmatch(r"(\d{1,3})(?:\.\d+)?%", str(attributes.get("width", "")))
    if retained == "pb-column" and width:
        attributes |= {"data-width": width[0], "style": f"flex:{width[1]} 1 0"}
    attributes.pop("width", None)
    return tag, {**attributes, "class": " ".join([retained, *classes[1:]] if retained else classes)}, ""


def _attributes(text: str) -> tuple[list[str], dict[str, str | int | float]]:
    """The classes, and the attributes that a block may have, of ``{.name #id key=value}``."""
    classes: list[str] = []
    attributes: dict[str, str | int | float] = {}
    for match in _ATTRIBUTES.finditer(text):
        if match["class"]:
            classes.append(match["class"])
        elif match["id"]:
            attributes["id"] = match["id"]
        elif match["key"] in {"width", "title", "lang", "dir", "style"}:
            attributes[match["key"]] = match["quoted"] if match["quoted"] is not None else match["bare"]
    return classes, attributes
