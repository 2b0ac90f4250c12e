"""A document's tree becomes slides: sections, ``.slide``, rules, heading levels, Marp's directives.

Nothing is dropped: what stands between slides becomes a slide of its own.
"""

from dataclasses import dataclass, field, replace
from xml.etree.ElementTree import Element

from render.frontend.element_tree import classes_of, make, name_of, text_of
from render.frontend.merge import documents_of
from render.slides.marp import Backdrops, Directives, from_attributes, read_directive
from render.slides.splitting.slide_content import HEADINGS, SKIPPED, flow, has_content, is_notes, title_of

_TRANSPARENT = frozenset({"div", "main", "article", "body", "section"})
_SLIDE_CLASSES = frozenset({"slide", "pb-slide", "slide-container", "ppt-slide", "swiper-slide", "page-slide"})
_RULED_SHARE = 0.6
_TITLE_WORDS_MAX = 60
_DIVIDER_WORDS_MAX = 24
_LEAD_IN_WORDS_MAX = 12
_OWN_CLASSES = frozenset({"pb-sources", "footnotes"})


@dataclass(slots=True)
class Draft:
    """A slide before layout.

    Attributes:
        kind: title, section, content or blank.
        root: the slide's own element if the document has one, else a new ``section``.
        chain: the elements around the root, outermost first, for an author's selectors.
        notes: the elements of the speaker's notes.
        directives: the directives of Marp.
        authored: whether the root is the author's own element.
        backdrops: pictures behind it.
    """

    kind: str
    root: Element
    chain: tuple[Element, ...] = ()
    notes: list[Element] = field(default_factory=list)
    directives: Directives = field(default_factory=Directives)
    authored: bool = False
    backdrops: Backdrops = field(default_factory=Backdrops)


@dataclass(slots=True)
class _Walk:
    """What segmentation has found so far."""

    explicit: set[int]
    drafts: list[Draft] = field(default_factory=list)
    loose: list[Element] = field(default_factory=list)
    directives: Directives = field(default_factory=Directives)


def segment(body: Element, directives: Directives | None = None) -> list[Draft]:
    """Cuts the body of a document into slides.

    Args:
        body: the ``body`` element; it's taken apart.
        directives: what the front matter asks for.
    """
    walk = _Walk(_explicit(body), directives=directives or Directives())
    _visit(walk, body, ())
    drafts = [draft for draft in walk.drafts if not _is_blank(draft)]
    _mark_dividers(drafts)
    return drafts


def _mark_dividers(drafts: list[Draft]) -> None:
    """A short slide under a bigger heading than the others' ("Thank you") is a divider."""
    tags = [heading.tag if (heading := title_of(draft.root)) is not None else "" for draft in drafts]
    if tags.count("h2") <= tags.count("h1"):
        return
    for draft, tag in zip(drafts, tags, strict=True):
        plain = all(
            item.tag in {"section", "div", "header", "h1", "h2", "p", "span", "strong", "em", "a", "br"}
            for item in flow(draft.root)
        )
        if (
            draft.kind == "content"
            and tag == "h1"
            and plain
            and len(text_of(draft.root).split()) <= _DIVIDER_WORDS_MAX
        ):
            draft.kind = "section"


def _is_blank(draft: Draft) -> bool:
    return not draft.notes and not has_content(draft.root)


def has_slides(body: Element) -> bool:
    """Whether there are elements that the author meant as slides."""
    return bool(_explicit(body))


def _explicit(body: Element) -> set[int]:
    """Identities of the elements that the author meant as slides."""
    marked = [item for item in flow(body) if item is not body and _SLIDE_CLASSES.intersection(classes_of(item))]
    if not marked:
        marked = [
            item
            for item in flow(body)
            if item.get("data-slide") is not None or item.get("data-marpit-svg") is not None
        ]
    if not marked:
        marked = [
            item for item in flow(body) if item.tag == "section" and not _OWN_CLASSES.intersection(classes_of(item))
        ]
    chosen = {id(item) for item in marked}
    # Of nested ones the inner are slides only if the outer is nothing but their stack (reveal.js).
    for outer in marked:
        inner = [item for item in flow(outer) if item is not outer and id(item) in chosen]
        if not inner:
            continue
        stacked = all(id(child) in chosen or is_notes(child) for child in outer) and not (outer.text or "").strip()
        if stacked and len(outer) > 1:
            chosen.discard(id(outer))
        else:
            chosen.difference_update(id(item) for item in inner)
    return chosen


def _visit(walk: _Walk, container: Element, chain: tuple[Element, ...]) -> None:
    """Takes a container apart: slides, the containers around them, and what is loose."""
    inside = (*chain, container)
    _keep_text(walk, container.text)
    for child in list(container):
        tail, child.tail = child.tail, None
        if id(child) in walk.explicit:
            _flush(walk, inside)
            _add_authored(walk, child, inside)
        elif walk.explicit and any(id(item) in walk.explicit for item in flow(child)):
            _flush(walk, inside)
            _visit(walk, child, inside)
        else:
            walk.loose.append(child)
        _keep_text(walk, tail)
    _flush(walk, inside)


def _keep_text(walk: _Walk, text: str | None) -> None:
    if text and text.strip():
        if walk.loose and walk.loose[-1].tag == "p" and walk.loose[-1].get("data-pb-loose"):
            walk.loose[-1].text = (walk.loose[-1].text or "") + text
        else:
            walk.loose.append(make("p", {"data-pb-loose": "1"}, text))


def _add_authored(walk: _Walk, element: Element, chain: tuple[Element, ...]) -> None:
    draft = Draft("content", element, chain, authored=True, directives=walk.directives)
    draft.notes = _take_notes(element)
    if element.get("data-notes"):
        draft.notes.append(make("p", None, element.get("data-notes")))
    draft.directives = _take_directives(walk, element)
    draft.directives = from_attributes(element, draft.directives)
    draft.kind = _kind(draft, first=not walk.drafts)
    walk.drafts.append(draft)


def _take_notes(root: Element) -> list[Element]:
    """Takes the notes out of a slide."""
    found: list[Element] = []
    for parent in list(root.iter()):
        for child in list(parent):
            if is_notes(child):
                index = list(parent).index(child)
                tail, child.tail = child.tail, None
                if tail and tail.strip():
                    before = parent[index - 1] if index else None
                    if before is None:
                        parent.text = (parent.text or "") + tail
                    else:
                        before.tail = (before.tail or "") + tail
                parent.remove(child)
                found.append(child)
    return found


def _take_directives(walk: _Walk, root: Element) -> Directives:
    """Reads the directives in a slide: those that last change the walk's, those for one slide only this one's."""
    once = walk.directives
    for element in root.iter("template"):
        if "pb-directive" in classes_of(element):
            walk.directives, once = read_directive(element.get("data-directive", ""), walk.directives, once)
    return once


def _flush(walk: _Walk, chain: tuple[Element, ...]) -> None:
    """Makes slides of what was loose."""
    blocks, walk.loose = walk.loose, []
    blocks = _unwrapped(blocks)
    if not blocks:
        return
    if walk.explicit and all(is_notes(block) for block in blocks) and walk.drafts:
        walk.drafts[-1].notes.extend(blocks)
        return
    whole, divider = not walk.explicit, walk.directives.divider
    for group in (group for part in documents_of(blocks) for group in _groups(part, whole=whole, divider=divider)):
        visible = [block for block in group if not is_notes(block)]
        templates_only = all(name_of(block) == "template" for block in visible)
        if templates_only and walk.drafts and not walk.explicit:
            walk.drafts[-1].notes.extend(block for block in group if is_notes(block))
            _take_directives(walk, make("section", None, None, *visible))
            continue
        root = make("section", {"class": "pb-loose"}, None, *visible)
        draft = Draft("content", root, chain)
        draft.notes = [*[block for block in group if is_notes(block)], *_take_notes(root)]
        draft.directives = _take_directives(walk, root)
        draft.kind = _kind(draft, first=not walk.drafts)
        walk.drafts.append(draft)


def _unwrapped(blocks: list[Element]) -> list[Element]:
    """Blocks in wrappers that hold headings or rules: ``<main><h1>…<h2>…``."""
    for _ in range(20):
        solid = [
            block for block in blocks if name_of(block) not in SKIPPED and (has_content(block) or block.tag == "hr")
        ]
        if len(solid) != 1 or solid[0].tag not in _TRANSPARENT or solid[0].get("class", "").startswith("pb-"):
            return blocks
        inner = solid[0]
        if sum(1 for child in inner if child.tag in HEADINGS or child.tag == "hr") < 2:  # noqa: PLR2004 - one is a title
            return blocks
        blocks = ([make("p", None, inner.text)] if (inner.text or "").strip() else []) + list(inner)
        for index, child in enumerate(list(blocks)):
            tail, child.tail = child.tail, None
            if tail and tail.strip():
                blocks.insert(index + 1, make("p", None, tail))
    return blocks


def _groups(blocks: list[Element], *, whole: bool, divider: int | None) -> list[list[Element]]:
    """Loose blocks by slide: at rules and page breaks, else at headings of the slide level."""
    pieces: list[list[Element]] = [[]]
    for block in blocks:
        if block.tag == "hr" or "pb-page-break" in classes_of(block):
            pieces.append([])
        elif _OWN_CLASSES.intersection(classes_of(block)) or "pb-toc" in classes_of(block):
            pieces.extend([[block], []])
        else:
            pieces[-1].append(block)
    pieces = [piece for piece in pieces if piece]
    if not whole:
        return pieces
    level = _slide_level(blocks) if divider is None else divider
    if level == 0:
        return pieces
    ruled = divider is None and any(block.tag == "hr" for block in blocks)
    counts = [sum(1 for block in piece if _level(block) and _level(block) <= level) for piece in pieces]
    single = sum(1 for count in counts if count <= 1)
    if ruled and single >= len(pieces) * _RULED_SHARE:
        return pieces
    groups: list[list[Element]] = []
    for piece in pieces:
        groups.append([])
        for block in piece:
            lead_in = len(groups) == 1 and _is_lead_in(groups[0])
            if 0 < _level(block) <= level and not lead_in and any(not is_notes(item) for item in groups[-1]):
                groups.append([])
            groups[-1].append(block)
    return [group for group in groups if group]


def _is_lead_in(group: list[Element]) -> bool:
    """Whether what stands before a document's first heading is a line that belongs above it."""
    words = sum(len(text_of(block).split()) for block in group)
    return words <= _LEAD_IN_WORDS_MAX and all(
        block.tag == "p" and all(name_of(item) not in {"img", "svg"} for item in flow(block)) for block in group
    )


def _level(block: Element) -> int:
    return HEADINGS.index(block.tag) + 1 if block.tag in HEADINGS else 0


def _slide_level(blocks: list[Element]) -> int:
    """Pandoc's rule, the highest level of heading that content follows, with two leaves.

    The document's first heading is its title, whatever follows it. And a level at which that happens now and then
    ("# Thanks" at the end of a deck of ``##``) doesn't make one slide of all that is below it.
    """
    blocks = [
        block for block in blocks if not is_notes(block) and name_of(block) not in SKIPPED and block.tag != "hr"
    ]
    levels = [_level(block) for block in blocks]
    present = [level for level in levels if level]
    if not present:
        return 0
    first = next(index for index, level in enumerate(levels) if level)
    titled = len(present) > 1 and present[0] == min(present) and present[1] > present[0]
    followed: dict[int, int] = {}
    for index, level in enumerate(levels):
        if level and not (titled and index == first) and index + 1 < len(levels) and not levels[index + 1]:
            followed[level] = followed.get(level, 0) + 1
    most = max(followed.values(), default=0)
    return min((level for level, count in followed.items() if count * 2 >= most), default=max(present))


def _kind(draft: Draft, *, first: bool) -> str:
    """What sort of slide it is, by what is on it and by what it's called."""
    names = {*classes_of(draft.root), *draft.directives.classes}
    blocks = [block for block in draft.root if name_of(block) not in SKIPPED and (has_content(block) or len(block))]
    headings = [item for item in flow(draft.root) if item.tag in HEADINGS]
    if first and (names & {"title", "title-slide", "lead", "cover"} or _is_title(draft, blocks, headings)):
        return "title"
    if headings and len(blocks) <= 2 and names & {"lead", "section", "section-header", "divider", "title-slide"}:  # noqa: PLR2004
        return "section"
    if headings and len(blocks) == 1 and blocks[0].tag in HEADINGS[:2]:
        return "section"
    return "content"


def _is_title(draft: Draft, blocks: list[Element], headings: list[Element]) -> bool:
    root = draft.root
    plain = all(
        item.tag not in {"ul", "ol", "table", "pre", "img", "figure", "blockquote", "dl"}
        and "pb-columns" not in classes_of(item)
        for item in flow(root)
    )
    short = len(text_of(root).split()) <= _TITLE_WORDS_MAX
    return (
        bool(headings)
        and plain
        and short
        and bool(blocks)
        and headings[0].tag in {"h1", "h2" if draft.authored else "h1"}
        and len(headings) <= 2  # noqa: PLR2004 - a title and what is under it
    )


def title_draft(title: str, lines: list[str]) -> Draft:
    """A title slide of what the document declares about itself."""
    paragraphs = [make("p", None, line) for line in lines if line]
    return Draft("title", make("section", {"class": "pb-loose"}, None, make("h1", None, title), *paragraphs))


def with_kind(draft: Draft, kind: str) -> Draft:
    """The same slide as another kind."""
    return replace(draft, kind=kind)
