"""Markdown to HTML: CommonMark, GitHub's additions, and what pandoc and models write besides."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.attrs import attrs_block_plugin, attrs_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.tasklists import tasklists_plugin
from render.frontend.attributes import pandoc_attributes_plugin
from render.frontend.colon_fences import colon_fences_plugin
from render.frontend.environments import environments_plugin
from render.frontend.front_matter import read_front_matter
from render.frontend.limits_markdown import bounds_plugin
from render.frontend.loose_targets import IS_FILE, loose_targets_plugin

TOKEN = re.compile(r"\[\[\s*[sS]\s*:\s*[0-9][0-9\s,;\u2010-\u2015-]*\]\]")
"""A citation token; what is in it is read by the citations' own module."""

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class MarkdownText:
    """HTML, and the front matter of the document that it was made of."""

    html: str
    front_matter: dict[str, Any] = field(default_factory=dict)


def read_markdown(
    text: str, *, has_cell_formulas: bool = False, is_file: Callable[[str], bool] | None = None
) -> MarkdownText:
    """Turns Markdown into HTML; never fails, since every text is Markdown.

    Args:
        text: the source.
        has_cell_formulas: cells that begin with ``=`` are taken as they are: stars in them are no emphasis.
        is_file: whether an address names a file.
    """
    match = _FRONT_MATTER.match(text)
    front_matter = read_front_matter(match[1]) if match else None
    if match and front_matter is not None:
        text = text[match.end() :]
    environment: dict[str, Any] = {IS_FILE: is_file}
    tokens = _parser().parse(text, environment)
    _mark_underlined(tokens)
    if has_cell_formulas:
        _keep_formulas(tokens)
    return MarkdownText(_parser().renderer.render(tokens, _parser().options, environment), front_matter or {})


def _mark_underlined(tokens: list[Token]) -> None:
    """Marks headings between two rules: lines that a maker of slides may mean as keys of a slide."""
    for index, token in enumerate(tokens):
        if token.type == "heading_open" and token.markup == "-" and (not index or tokens[index - 1].type == "hr"):
            token.attrSet("data-underlined", "1")


_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


def _keep_formulas(tokens: list[Token]) -> None:
    """Makes a cell that begins with ``=`` one text again, as it was written."""
    for before, token in pairwise(tokens):
        text = token.content.strip()
        if token.type == "inline" and before.type in {"td_open", "th_open"} and text.startswith("="):
            token.children = [Token("text", "", 0, content=_ESCAPE.sub(r"\1", unescape(text)))]


class _Parser(MarkdownIt):
    """The library's parser, which reads drawings as data too: they are cleaned like all others."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        return super().validateLink(url) or url.strip().lower().startswith("data:image/svg+xml")


@cache
def _parser() -> MarkdownIt:
    """The parser: made once, since its rules cost more to build than a page to parse."""
    parser = _Parser("commonmark", {"html": True, "linkify": True, "maxNesting": 100})
    parser.enable(["table", "strikethrough", "linkify"])
    if parser.linkify is not None:
        parser.linkify.set({"fuzzy_link": False})
        parser.linkify.add("www.", {"validate": _www_length, "normalize": _www_address})
        parser.linkify.re["email_fuzzy"] = _MAIL
    parser.use(footnote_plugin).use(deflist_plugin).use(tasklists_plugin)
    parser.use(dollarmath_plugin, allow_space=False, allow_digits=False, double_inline=True, renderer=_formula)
    parser.use(attrs_plugin, after=("code_inline", "link_close", "span_close"), spans=True)
    parser.use(attrs_block_plugin).use(colon_fences_plugin).use(bounds_plugin)
    parser.use(environments_plugin).use(pandoc_attributes_plugin).use(loose_targets_plugin)
    parser.inline.ruler.before("link", "citation", _citation)
    parser.inline.ruler.before("escape", "backslash_math", _backslash_math)
    for name in ("math_inline", "math_inline_double", "math_block", "math_block_label", "backslash_math"):
        parser.add_render_rule(name, _render_math)
    parser.add_render_rule("citation", _render_citation)
    parser.add_render_rule("footnote_ref", _render_footnote_ref)
    parser.add_render_rule("footnote_anchor", _render_nothing)
    parser.add_render_rule("footnote_block_open", _render_footnotes_open)
    return parser


def _citation(state: StateInline, silent: bool) -> bool:
    """Takes a token before links do; in code the rule isn't asked."""
    if not state.src.startswith("[[", state.pos):
        return False
    match = TOKEN.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("citation", "", 0).content = match[0]
    state.pos = match.end()
    return True


_MAIL = r"()(?<![a-z0-9._+-])[a-z0-9._+-]{1,64}@[a-z0-9_-]+(?:\.[a-z0-9_-]+)+(?<![_-])(?![a-z0-9_-])"
"""A mail address, as GitHub reads it; the empty group is what the parser leaves out before it."""


def _www_length(linkify: Any, text: str, position: int) -> int:
    """How much of the text is the rest of an address that begins with ``www.``, as GitHub reads it."""
    path = rf"(?:(?=[/?#]){linkify.re['src_path']}(?:\)+[\w+&=/?#%-]+)*)?"
    found = re.match(linkify.re["src_host_port_strict"] + path, text[position:], re.IGNORECASE)
    return found.end() if found else 0


def _www_address(_linkify: Any, match: Any) -> None:
    match.url = f"http://{match.url}"


_BACKSLASH_MATH = re.compile(r"\\\((.{1,2000}?)\\\)|\\\[(.{1,4000}?)\\\]", re.DOTALL)
_LETTER = re.compile(r"[A-Za-z0-9]")
_TEX = re.compile(r"\\[A-Za-z]|[\^_=+<>]|\d\s*[A-Za-z]")
_PROSE = re.compile(r"\]\(|https?:|[A-Za-z]{3}")


def _is_tex(text: str) -> bool:
    """Whether what escaped brackets hold is a formula: they may as well be brackets around words or links."""
    return bool(_LETTER.search(text)) and (
        not _PROSE.search(text) or ("](" not in text and bool(_TEX.search(text)))
    )


def _backslash_math(state: StateInline, silent: bool) -> bool:
    r"""``\(x\)`` and ``\[x\]``, as models write them; escapes of brackets around no letter stay escapes."""
    if not state.src.startswith(("\\(", "\\["), state.pos):
        return False
    match = _BACKSLASH_MATH.match(state.src, state.pos, state.posMax)
    if match is None or not _is_tex(match[1] or match[2]):
        return False
    if not silent:
        token = state.push("backslash_math", "", 0)
        token.content = (match[1] or match[2]).strip()
        token.meta = {"display": match[2] is not None}
    state.pos = match.end()
    return True


def _formula(content: str, _options: dict[str, Any]) -> str:
    return escapeHtml(content)


def _render_math(_renderer: Any, tokens: Any, index: int, _options: Any, _environment: Any) -> str:
    token = tokens[index]
    tex = escapeHtml(token.content.strip())
    # Inside a paragraph an HTML parser would end the paragraph at a div.
    if token.type in {"math_block", "math_block_label"}:
        return f'<div class="pb-math" data-tex="{tex}">{tex}</div>\n'
    display = token.type == "math_inline_double" or token.meta.get("display")
    style = ' data-display="true"' if display else ""
    return f'<span class="pb-math" data-tex="{tex}"{style}>{tex}</span>'


def _render_citation(_renderer: Any, tokens: Any, index: int, _options: Any, _environment: Any) -> str:
    return escapeHtml(tokens[index].content)


def _render_nothing(_renderer: Any, _tokens: Any, _index: int, _options: Any, _environment: Any) -> str:
    return ""


def _render_footnotes_open(_renderer: Any, _tokens: Any, _index: int, _options: Any, _environment: Any) -> str:
    return '<section class="footnotes"><ol>\n'


def _render_footnote_ref(renderer: Any, tokens: Any, index: int, options: Any, environment: Any) -> str:
    rules = renderer.rules
    note = rules["footnote_anchor_name"](tokens, index, options, environment)
    number = tokens[index].meta["id"] + 1
    sub = tokens[index].meta.get("subId", 0)
    anchor = f"fnref{note}:{sub}" if sub else f"fnref{note}"
    return f'<sup><a class="pb-footnote-ref" href="#fn{note}" id="{anchor}">{number}</a></sup>'
