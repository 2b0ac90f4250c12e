"""What of the look of its slides a document settles, and so how much of the theme is left."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import tinycss2
from render.frontend.element_tree import classes_of, name_of
from render.slides.splitting.slide_content import HEADINGS
from render.slides.splitting.split_document import Draft

_COMBINATORS = re.compile(r"[\s>+~]+")
_PSEUDO = re.compile(r"::?[\w-]+(?:\([^()]*\))?|\[[^\]]*\]")
_NAME = re.compile(r"[.#]?[\w-]+")
_SIZE = re.compile(r"(?:min-)?(?:width|height)|aspect-ratio|inset|inline-size|block-size")
_COMPOSED = re.compile(r"background(?:-.*)?|width|position|padding(?:-.*)?|left|top|inset")
_LOOK = re.compile(r"background|color|font|border|padding|display|width|height|position")
_SMALL = frozenset({"small", "sup", "sub", "code", "pre", "table", "td", "th", "caption", "footer", "figcaption"})
_NESTED = frozenset({"media", "supports", "layer"})
_DECLARATIONS_MAX = 20_000
_SIZES = frozenset({"font", "font-size"})
_BASES = frozenset({"html", "body", ":root", "p", "li", "ul", "ol", "div", "section", "article", "main"})
_SLIDES = re.compile(r"(?:^|[\s,>])(?:section|body|html|:root)(?:[.:][\w-]+)?\s*$")
_LAID_OUT = re.compile(r"display|position|padding(?:-.*)?|width|height|(?:flex|grid|justify|align|place)-.*")
_MANY = 3
"""So many rules about the size of some text amount to one about all of it."""


@dataclass(frozen=True, slots=True)
class Design:
    """What a document's own rules settle.

    Attributes:
        styled: there are rules of its own: the theme's decorations and colours stay away.
        tinted: it has colours of its own, in the theme's layout: title slides and the like get none of the theme.
        bare: its elements look as in a browser where no rule is about them, not as in the theme.
        framed: slides have a size or a padding of their own: they get no margins of ours.
        sized: text has sizes of its own: what has none is as large as in a browser.
    """

    styled: bool = False
    tinted: bool = False
    bare: bool = False
    framed: bool = False
    sized: bool = False


def design_of(css: str, drafts: list[Draft], *, markup: bool) -> Design:
    """Reads what a document settles.

    Args:
        css: its style sheets.
        drafts: its slides.
        markup: whether it is HTML; the rules of Markdown are additions to the theme.
    """
    roots = [draft.root for draft in drafts if draft.authored]
    inline = [element.get("style") or "" for root in roots for element in root.iter() if element.get("style")]
    own = [root.get("style") or "" for root in roots]
    if not markup:
        return _additions(css)
    styled = bool(css.strip()) or any(_LOOK.search(style) for style in own)
    if not styled:
        return Design()
    names = {name for root in roots for name in (name_of(root), *(f".{item}" for item in classes_of(root)))}
    names |= {f"#{root.get('id')}" for root in roots if root.get("id")}
    wanted = [row for style in own for row in _declared(style)]
    inner = any(_COMPOSED.fullmatch(name) for style in inline if style not in own for name, _ in _declared(style))
    sizes = sum(any(name in _SIZES for name, _ in _declared(style)) for style in inline)
    for selector, rows in _rules(css):
        parts = set(_NAME.findall(_COMBINATORS.split(_PSEUDO.sub("", selector).strip())[-1]))
        if parts & names:
            wanted.extend(rows)
        else:
            inner = inner or any(_COMPOSED.fullmatch(name) for name, _ in rows)
        if any(name in _SIZES for name, _ in rows) and not parts & {*HEADINGS, *_SMALL} and "title" not in selector:
            sizes += _MANY if parts & (names | _BASES) or selector.strip() == "*" else 1
    framed = _is_framed(wanted, composed=inner)
    return Design(styled=styled, bare=framed or sizes >= _MANY, framed=framed, sized=sizes >= _MANY)


def _additions(css: str) -> Design:
    """What the style sheet of Markdown settles: it adds to the theme, unless it lays slides out."""
    rows = [(_SLIDES.search(selector), rows) for selector, rows in _rules(css)]
    composed = any(slides and _LAID_OUT.fullmatch(name) for slides, rows in rows for name, _ in rows)
    tinted = any(
        name == "color" or (slides and name.startswith("background")) for slides, rows in rows for name, _ in rows
    )
    return Design(styled=composed, tinted=tinted)


def _is_framed(rows: list[tuple[str, str]], *, composed: bool) -> bool:
    """Whether slides have a padding, or a size that their content is composed for, to their very edges."""
    if any(name.startswith("padding") for name, _ in rows):
        return True
    boxed = any(_SIZE.fullmatch(name) for name, _ in rows)
    rowed = any(name == "display" and ("flex" in value or "grid" in value) for name, value in rows)
    return boxed and (composed or rowed)


def _rules(css: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Selectors, one at a time, with the declarations of their rules."""
    stack: list[Any] = [tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)]
    count = 0
    while stack:
        for rule in stack.pop():
            if rule.type == "at-rule" and rule.lower_at_keyword in _NESTED and rule.content:
                stack.append(tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True))
            elif rule.type == "qualified-rule":
                rows = list(_rows(tinycss2.parse_blocks_contents(rule.content)))
                for selector in tinycss2.serialize(rule.prelude).split(","):
                    count += len(rows) + 1
                    if count > _DECLARATIONS_MAX:
                        return
                    yield selector, rows


def _declared(style: str) -> Iterator[tuple[str, str]]:
    return _rows(tinycss2.parse_blocks_contents(style))


def _rows(items: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for item in items:
        if item.type == "declaration":
            yield item.lower_name, tinycss2.serialize(item.value).strip()
