"""Chooses a layout for a slide by what is on it: a big number, cards, a table, a quote, text beside a picture, the end.

Only slides in a theme's own looks are arranged; words and their order stay as they are.
"""

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element

from render.frontend.element_tree import add_class, classes_of, make, name_of, text_of
from render.slides.splitting.slide_content import HEADINGS, flow, has_content, title_of
from render.slides.splitting.split_document import Draft

_NUMBER = re.compile(
    r"[~≈<>≤≥±+\-\u2212\u2013]?\s?(?:[$€£¥₹]|USD|EUR|CHF|GBP)?\s?\d[\d.,\u00a0\u202f' ]*"
    r"\s?(?:%|‰|\u00d7|x|k|K|M|B|T|m|bn|mn|mio|mrd|million|billion|thousand|pp|pt|pts|bps|h|hrs|min|ms|s|d|days|years|"
    r"°C|°F|km|kg|t|GB|TB|MB|MW|GW|kWh|:1|/\d+)?(?:[$€£¥])?\+?"
)
_CLOSING = re.compile(
    r"(?:many\s+)?thank(?:s|\s+you)?\b|questions?\b|q\s*&\s*a\b|contact\b|get\s+in\s+touch|any\s+questions|let.s\s+talk|"
    r"danke|vielen\s+dank|fragen\b|kontakt\b|merci\b|gracias\b|grazie\b|obrigad[oa]\b",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"\s*(?::\s*|(?:[\u2013\u2014]|-(?=\s))\s*(?![\s\d.$€£¥]))?")
"""What stands between a term and its text; a dash before a number is its sign."""
_CARDS_LEAST, _CARDS_MOST, _CARD_WORDS = 2, 4, 32
_NUMBER_CHARACTERS, _LABEL_WORDS = 14, 24
_QUOTE_WORDS, _CLOSING_WORDS, _BESIDE_WORDS = 60, 40, 70
_GROWTH = {"pb-l-number": 1.0, "pb-l-quote": 1.0, "pb-l-cards": 1.15}
_ANY = 9.0
_TOTAL = re.compile(r"(?:grand\s+|sub)?total\b|sum\b|summe\b|gesamt\b|all\b", re.IGNORECASE)
_LONG_TITLE = 42
_TEXTS = frozenset({"p", "ul", "ol", "h3", "h4"})
_PICTURES = frozenset({"img", "svg", "figure"})


def growth_of(root: Element) -> float:
    """The largest factor that type of a slide may grow by: some layouts have large type of their own."""
    return min((_GROWTH[name] for name in classes_of(root) if name in _GROWTH), default=_ANY)


def arrange(drafts: Sequence[Draft]) -> None:
    """Marks the slides whose content asks for a layout of its own, in place; ``deck_css`` has the rules."""
    for draft in drafts:
        title = title_of(draft.root)
        if draft.kind in {"title", "section"} and title is not None:
            _mark_title(draft, title)
        elif draft.kind == "content" and not set(draft.directives.classes):
            _arrange(draft, title, last=draft is drafts[-1] and len(drafts) > 1)


def _mark_title(draft: Draft, title: Element) -> None:
    if len(text_of(title)) > _LONG_TITLE:
        add_class(title, "pb-long")
    rows = [child for child in draft.root if child.tag == "p" and child is not title]
    if draft.kind == "title" and len(rows) > 1:
        add_class(rows[-1], "pb-foot")


def _arrange(draft: Draft, title: Element | None, *, last: bool) -> None:
    root = draft.root
    blocks = [block for block in root if block is not title and has_content(block) and not _is_margin(block)]
    if title is not None and last and _is_closing(root, title, blocks):
        draft.kind = "title"
        _mark_title(draft, title)
    elif (
        (title is None and len(blocks) != 1)
        or not blocks
        or (root.text or "").strip()
        or any((block.tail or "").strip() for block in root)
    ):
        return
    elif _is_number(blocks):
        add_class(root, "pb-l-number")
        add_class(blocks[0], "pb-number")
    elif len(blocks) == 1 and blocks[0].tag == "blockquote" and len(text_of(blocks[0]).split()) <= _QUOTE_WORDS:
        add_class(root, "pb-l-quote")
    elif title is not None and len(blocks) == 1 and blocks[0].tag == "table":
        _mark_table(root, blocks[0])
    elif title is not None and len(blocks) == 1 and blocks[0].tag == "ul" and _are_cards(blocks[0]):
        _make_cards(root, blocks[0])
    elif title is not None:
        _put_beside(root, blocks)


def _is_margin(block: Element) -> bool:
    return (
        bool({"pb-bottom", "pb-header", "pb-sources", "pb-toc"} & set(classes_of(block))) or name_of(block) == "nav"
    )


def _is_closing(root: Element, title: Element, blocks: list[Element]) -> bool:
    """Whether the last slide is a closing one: a short slide called "Thank you", "Questions" or "Contact"."""
    short = len(text_of(root).split()) <= _CLOSING_WORDS
    plain = all(block.tag in {"p", "ul", *HEADINGS} for block in blocks)
    return short and plain and bool(_CLOSING.match(text_of(title).strip()))


def _is_number(blocks: list[Element]) -> bool:
    """Whether there is a number alone in its paragraph, with a label behind it at most."""
    first, rest = blocks[0], blocks[1:]
    words = text_of(first).strip()
    if first.tag not in {"p", *HEADINGS} or len(words) > _NUMBER_CHARACTERS or not _NUMBER.fullmatch(words):
        return False
    label = sum(len(text_of(block).split()) for block in rest)
    return len(rest) <= 2 and label <= _LABEL_WORDS and all(block.tag == "p" for block in rest)  # noqa: PLR2004


def _mark_table(root: Element, table: Element) -> None:
    rows = list(table.iter("tr"))
    cells = [cell for row in rows for cell in row]
    if not rows or any(
        name_of(item) in {"table", "img", "svg", "ul"} for item in table.iter() if item is not table
    ):
        return
    add_class(root, "pb-l-table")
    longest = max((len(text_of(cell)) for cell in cells), default=0)
    if max(len(row) for row in rows) <= 3 and longest <= 24:  # noqa: PLR2004 - short columns, which need no whole slide
        add_class(table, "pb-narrow")
    first = next((text_of(cell) for cell in rows[-1]), "")
    if len(rows) > 2 and _TOTAL.match(first.strip()):  # noqa: PLR2004 - a head, a row, and their total
        add_class(rows[-1], "pb-total")


def _are_cards(rows: Element) -> bool:
    """Whether a list has a few items "**Term**: text", which are short enough to stand side by side."""
    items = [item for item in rows if item.tag == "li"]
    if not _CARDS_LEAST <= len(items) <= _CARDS_MOST or len(items) != len(rows):
        return False
    return all(_term_of(item) is not None and item.get("data-pb-tick") is None for item in items)


def _term_of(item: Element) -> Element | None:
    """The bold words that an item begins with, if text follows and nothing but text is in it."""
    holder = item[0] if len(item) == 1 and item[0].tag == "p" and not (item.text or "").strip() else item
    if (holder.text or "").strip() or not len(holder) or holder[0].tag not in {"strong", "b"}:
        return None
    plain = all(
        name_of(inner) in {"li", "p", "strong", "b", "em", "i", "a", "code", "span", "br"} for inner in item.iter()
    )
    blocks = sum(1 for inner in item.iter() if inner.tag == "p")
    words = len(text_of(item).split())
    rest = words - len(text_of(holder[0]).split())
    return holder[0] if plain and blocks <= 1 and rest > 0 and words <= _CARD_WORDS else None


def _make_cards(root: Element, rows: Element) -> None:
    cards = make("div", {"class": "pb-cards"})
    for item in list(rows):
        term = _term_of(item)
        if term is None:
            continue
        holder = item[0] if item[0] is not term else item
        words = term.tail or ""
        term.tail = None
        parts = list(holder)[1:]
        head = make("p", {"class": "pb-term"}, None, term)
        if text_of(term).rstrip().endswith(":") and not len(term):
            term.text = (term.text or "").rstrip().removesuffix(":")
        body = make("p", None, _SEPARATOR.sub("", words, count=1), *parts)
        number = bool(_NUMBER.fullmatch(text_of(term).strip())) and len(text_of(term)) <= _NUMBER_CHARACTERS
        card = make("div", {"class": "pb-card pb-figure" if number else "pb-card"}, None, head, body)
        if item.get("id"):
            card.set("id", item.get("id", ""))
        cards.append(card)
    cards.tail = rows.tail
    root[list(root).index(rows)] = cards
    add_class(root, "pb-l-cards")


def _put_beside(root: Element, blocks: list[Element]) -> None:
    """Text of a slide beside its one picture or chart, which would stand below it."""
    pictures = [block for block in blocks if _is_picture(block)]
    texts = [block for block in blocks if block.tag in _TEXTS and not _is_picture(block)]
    if len(pictures) != 1 or not texts or len(texts) + 1 != len(blocks):
        return
    if sum(len(text_of(block).split()) for block in texts) > _BESIDE_WORDS:
        return
    index = list(root).index(blocks[0])
    for block in blocks:
        root.remove(block)
    first = pictures[0] is blocks[0]
    halves = [
        make("div", {"class": "pb-column pb-words"}, None, *texts),
        make("div", {"class": "pb-column pb-seen"}, None, *pictures),
    ]
    root.insert(index, make("div", {"class": "pb-columns pb-beside"}, None, *(halves[::-1] if first else halves)))
    add_class(root, "pb-l-beside")


def _is_picture(block: Element) -> bool:
    """Whether a block is one picture and nothing else."""
    seen = [
        item
        for item in flow(block)
        if name_of(item).rpartition("}")[2] in {"img", "svg"} or "pb-chart" in classes_of(item)
    ]
    if "pb-chart" in classes_of(block) or name_of(block).rpartition("}")[2] in _PICTURES:
        return bool(seen)
    return block.tag == "p" and len(seen) == 1 and not text_of(block).strip()
