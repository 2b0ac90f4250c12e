"""Markdown targets as models write them: ``![a chart](turn_1/files/own chart (2).png "Title")``, without ``<>``.

CommonMark takes no blank and no single parenthesis in a target, and shows the source. Here a picture's target may have
them, and a link's, if it is a path with a slash or names a file that is there; prose in parentheses stays prose.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

IS_FILE = "is_file"
"""Key of the environment: whether an address names a file."""
_TARGET_CHARACTERS_MAX = 1_000
_CLOSINGS_MAX = 20
_TITLED = re.compile(r"""(?P<target>.*\S)\s+(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)')\s*""")
_FILE_NAME = re.compile(r"[^/]*\.[A-Za-z][A-Za-z0-9]{0,7}(?:[?#].*)?")
_REFERENCE = re.compile(r"\[(?P<label>[^\[\]\n]{1,200})\]:[ \t]+(?P<rest>[^<\s][^\n]*)")


def loose_targets_plugin(parser: MarkdownIt) -> None:
    """Add the rules, which are asked where those of CommonMark find nothing."""
    parser.inline.ruler.after("image", "loose_target", _inline)
    parser.block.ruler.before("reference", "loose_reference", _reference)


def _inline(state: StateInline, silent: bool) -> bool:
    is_image = state.src.startswith("![", state.pos)
    if not is_image and state.src[state.pos] != "[":
        return False
    begin = state.pos + 1 + is_image
    end = state.md.helpers.parseLinkLabel(state, begin - 1, not is_image)
    if end < 0 or not state.src.startswith("](", end):
        return False
    found = _find_target(state.src[end + 2 : state.posMax], state.env, is_image=is_image)
    if found is None:
        return False
    target, title, length = found
    href = state.md.normalizeLink(target)
    if not state.md.validateLink(href):
        return False
    if not silent:
        _push(state, {"href": href, **({"title": title} if title else {})}, begin, end, is_image=is_image)
    state.pos = end + 2 + length
    return True


def _push(state: StateInline, attributes: dict[str, Any], begin: int, end: int, *, is_image: bool) -> None:
    label, limit = state.src[begin:end], state.posMax
    if is_image:
        token = state.push("image", "img", 0)
        token.content = label
        token.children = []
        state.md.inline.parse(label, state.md, state.env, token.children)
        token.attrs = {"src": attributes.pop("href"), "alt": "", **attributes}
        return
    state.push("link_open", "a", 1).attrs = attributes
    state.pos, state.posMax = begin, end
    state.linkLevel += 1
    state.md.inline.tokenize(state)
    state.linkLevel -= 1
    state.posMax = limit
    state.push("link_close", "a", -1)


def _find_target(rest: str, environment: Any, *, is_image: bool) -> tuple[str, str, int] | None:
    """The target, its title, and how much of the text they take with the parenthesis that closes."""
    line = rest[:_TARGET_CHARACTERS_MAX].partition("\n")[0]
    is_file: Callable[[str], bool] = environment.get(IS_FILE) or (lambda _: False)
    likely = None
    for at, is_balanced in _closings(line):
        titled = _TITLED.fullmatch(line[:at])
        target = (titled["target"] if titled else line[:at]).strip()
        title = (titled["double"] or titled["single"] or "") if titled else ""
        if target and is_file(target):
            return target, title, at + 1
        if likely is None and is_balanced and _is_path(target, is_image=is_image):
            likely = target, title, at + 1
    return likely


def _closings(line: str) -> Iterator[tuple[int, bool]]:
    """Where the target may end, and whether its parentheses are in pairs then."""
    depth = 0
    for match in list(re.finditer(r"[()]", line))[: 2 * _CLOSINGS_MAX]:
        if match[0] == "(":
            depth += 1
            continue
        yield match.start(), depth == 0
        depth = max(depth - 1, 0)


def _is_path(target: str, *, is_image: bool) -> bool:
    last = target.rpartition("/")[2]
    return bool(_FILE_NAME.fullmatch(last)) and (is_image or "/" in target)


def _reference(state: StateBlock, line: int, _end: int, silent: bool) -> bool:
    """``[logo]: turn_1/files/own chart.png "Title"``."""
    if state.is_code_block(line):
        return False
    text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip()
    match = _REFERENCE.fullmatch(text)
    if match is None:
        return False
    titled = _TITLED.fullmatch(match["rest"])
    target = titled["target"] if titled else match["rest"]
    is_file: Callable[[str], bool] = state.env.get(IS_FILE) or (lambda _: False)
    if not re.search(r"\s", target) or not (is_file(target) or _is_path(target, is_image=False)):
        return False
    if not silent:
        title = (titled["double"] or titled["single"] or "") if titled else ""
        reference = {"title": title, "href": state.md.normalizeLink(target), "map": [line, line + 1]}
        state.env.setdefault("references", {}).setdefault(normalizeReference(match["label"]), reference)
        state.line = line + 1
    return True
