"""Bounds of Markdown: in one block, brackets and addresses past some thousand make the parser's time grow with their square."""

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore, linkify
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline import linkify as linkify_inline
from render.limits import BLOCK_ADDRESSES_MAX, BLOCK_BRACKETS_MAX

_PLAIN = "inline_plain"


def bounds_plugin(parser: MarkdownIt) -> None:
    """Makes brackets of a block that has too many of them plain characters, and leaves its addresses unlinked."""
    parser.core.ruler.before("inline", "bound_brackets", _bound_brackets)
    parser.core.ruler.at("linkify", _linkify)
    parser.inline.ruler.at("linkify", _linkify_inline)


def _bound_brackets(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline" and token.content.count("[") > BLOCK_BRACKETS_MAX:
            token.content = token.content.replace("[", "&#91;")


def _is_crowded(text: str) -> bool:
    return text.count(":") + text.count("@") + text.count("www.") > BLOCK_ADDRESSES_MAX


def _linkify_inline(state: StateInline, silent: bool) -> bool:
    """The parser's own rule, which searches all of the text before each ``://``."""
    if not state.src.startswith("://", state.pos) or _is_crowded(state.src):
        return False
    return linkify_inline(state, silent)


def _linkify(state: StateCore) -> None:
    crowded = [token for token in state.tokens if token.type == "inline" and _is_crowded(token.content)]
    for token in crowded:
        token.type = _PLAIN
    linkify(state)
    for token in crowded:
        token.type = "inline"
