"""Prepares a document's tree for slides: footnotes on their slides, sources, contents, headers and footers."""

import json
from typing import Any
from xml.etree.ElementTree import Element

from render.frontend.citations import link_of
from render.frontend.element_tree import add_class, body_of, classes_of, make, name_of, parents_of, remove, text_of
from render.frontend.sanitise import scrub_css
from render.frontend.title_block import word
from render.model import Document
from render.slides.author_css import BODY_TAG, is_slide_body, sized_slides
from render.slides.dialects import (
    mark_notes,
    name_columns,
    read_marp_headings,
    read_slidev,
    strip_slide_numbers,
)
from render.slides.marp import from_front_matter, small_print, take_backdrops
from render.slides.splitting.slide_content import title_of
from render.slides.splitting.split_after_layout import whole_copy
from render.slides.splitting.split_document import Draft, has_slides, segment, title_draft
from render.slides.spoken import take_spoken
from render.slides.tex import tex_as_text

_CONTENTS_MAX = 40
_CONTROLS = frozenset({"input", "select", "textarea", "button"})


def drafts_of(document: Document, css: str = "") -> list[Draft]:
    """The slides of a document, before layout; its tree is taken apart.

    Args:
        document: what is read.
        css: its style sheets: they decide whether the page itself is a slide.
    """
    body = body_of(document.tree)
    read_slidev(body)
    read_marp_headings(body)
    take_spoken(document, body)
    strip_slide_numbers(body)
    mark_notes(body)
    name_columns(body, css)
    if is_slide_body(css):
        _wrap_body(body)
    if not has_slides(body):
        for element in sized_slides(body, css):
            element.set("data-slide", "1")
    notes = _take_footnotes(document.tree)
    _write_formulas(document.tree)
    _take_ticks(document.tree)
    _write_controls(document.tree)
    for section in [item for item in document.tree.iter("section") if "pb-sources" in classes_of(item)]:
        remove(parents_of(document.tree)[section], section)
    directives = from_front_matter(_front_matter(document))
    drafts = segment(body, directives)
    for draft in drafts:
        if directives.divider is None and not draft.directives.picture:
            continue
        draft.backdrops = take_backdrops(draft.root, draft.directives)
    if document.request.options.get("include_sources_slide") and document.cited:
        drafts.append(Draft("content", _sources(document)))
    _add_title(document, drafts)
    for draft in drafts:
        _dress(draft, notes)
    _fill_contents(drafts)
    return drafts or [title_draft(document.metadata.title or "Untitled", [])]


def _wrap_body(body: Element) -> None:
    """Makes the content of a page that is one slide an element of its own, unless there are slides in it."""
    if has_slides(body):
        return
    root = make(BODY_TAG, {**body.attrib, "data-slide": "1"}, body.text, *list(body))
    body[:], body.text = [root], None


def _take_ticks(tree: Element) -> None:
    """Tick boxes of task lists become marks of their items, which are drawn as bullets."""
    parents = parents_of(tree)
    for box in [item for item in tree.iter("input") if item.get("type") == "checkbox"]:
        item: Element | None = parents[box]
        while item is not None and item.tag != "li":
            item = parents.get(item)
        if item is not None and item.get("data-pb-tick") is None:
            item.set("data-pb-tick", "1" if box.get("checked") is not None else "0")
            item.set("style", f"{item.get('style', '')};list-style:none")
            add_class(parents[item], "pb-ticks")
            remove(parents[box], box)


def _write_controls(tree: Element) -> None:
    """Controls of a form become what they show."""
    for element in [item for item in tree.iter() if name_of(item) in _CONTROLS]:
        tag, kind = name_of(element), (element.get("type") or "text").lower()
        if tag == "select":
            options = list(element.iter("option"))
            chosen = next(
                (item for item in options if item.get("selected") is not None), options[0] if options else None
            )
            words = text_of(chosen) if chosen is not None else ""
        elif tag == "input":
            marks = {"checkbox": "☑☐", "radio": "◉○"}.get(kind)
            shown = element.get("value") or element.get("placeholder") or ""
            hidden = kind in {"hidden", "file", "image", "range", "color"}
            words = marks[element.get("checked") is None] if marks else "" if hidden else shown
        else:
            words = text_of(element)
        tail, style = element.tail, element.get("style")
        element.clear()
        element.tag, element.text, element.tail = "span", words, tail
        if style:
            element.set("style", style)


def _write_formulas(tree: Element) -> None:
    """Small formulas become text: a picture within a line of a slide can't move with its words."""
    for element in tree.iter("span"):
        if "pb-math" in classes_of(element) and not element.get("data-display"):
            words = tex_as_text(element.get("data-tex", ""))
            if words is not None:
                element[:], element.text = [], words
                element.set("class", "pb-tex")
                element.set("style", "font-style:italic")


def add_marp_styles(document: Document) -> None:
    """Makes the style sheet in the front matter of a Marp deck one of the document."""
    matter = _front_matter(document)
    head = document.tree.find("head")
    if matter.get("marp") and isinstance(matter.get("style"), str) and head is not None:
        css = scrub_css(document, matter["style"])
        head.append(make("style", None, css))


def _front_matter(document: Document) -> dict[str, Any]:
    try:
        value = json.loads(document.tree.get("data-front-matter", "{}"))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _take_footnotes(tree: Element) -> dict[str, Element]:
    """Footnotes by id; their section leaves the tree."""
    found: dict[str, Element] = {}
    for section in [item for item in tree.iter() if "footnotes" in classes_of(item)]:
        called = {item.get("href", "")[1:] for item in tree.iter("a") if "pb-footnote-ref" in classes_of(item)}
        items = {item.get("id", ""): item for item in section.iter("li") if item.get("id")}
        if items and set(items) <= called:
            found.update(items)
            remove(parents_of(tree)[section], section)
    return found


def _sources(document: Document) -> Element:
    """The cited sources, numbered, with their titles and links."""
    rows = make("ol")
    for number, source in enumerate(document.cited, 1):
        link = link_of(source)
        title = source.title or link or f"Source {source.sid}"
        item = make("li", {"id": f"pb-source-{number}"})
        if link:
            item.append(make("a", {"href": link}, title))
        else:
            item.text = title
        rows.append(item)
    return make("section", {"class": "pb-loose pb-sources"}, None, make("h2", None, "Sources"), rows)


def _add_title(document: Document, drafts: list[Draft]) -> None:
    """A title slide of the document's own words, if there is a title that no slide begins with."""
    data, matter = document.metadata, _front_matter(document)
    given = bool(matter.get("title")) or bool(document.request.metadata.title)
    if not given or not data.title or (drafts and (drafts[0].authored or matter.get("marp"))):
        return
    first = title_of(drafts[0].root) if drafts else None
    upper = [word(matter.get("subtitle")), data.subject]
    lower = [data.author, data.date]
    if first is None or text_of(first).casefold() != data.title.casefold():
        if first is None or drafts[0].kind != "title":
            drafts.insert(0, title_draft(data.title, [*upper, _joined(lower)]))
        return
    root = drafts[0].root
    shown = text_of(root).casefold()
    upper, lower = ([part for part in parts if part.casefold() not in shown] for parts in (upper, lower))
    rows = [make("p", None, line) for line in (*upper, _joined(lower)) if line]
    if drafts[0].kind == "title":
        root.extend(rows)
    elif rows:
        _put_behind(parents_of(root)[first], first, rows)


def _joined(parts: list[str]) -> str:
    return " · ".join(part for part in parts if part)


def _put_behind(parent: Element, child: Element, rows: list[Element]) -> None:
    rows[-1].tail, child.tail = child.tail, None
    index = list(parent).index(child) + 1
    parent[index:index] = rows


def _dress(draft: Draft, notes: dict[str, Element]) -> None:
    """Puts footnotes, header and footer on a slide."""
    rows: list[Element] = []
    for link in [item for item in draft.root.iter("a") if "pb-footnote-ref" in classes_of(item)]:
        key = link.get("href", "")[1:]
        if key in notes and not any(row.get("data-note") == key for row in rows):
            rows.append(_footnote(notes[key], key, text_of(link)))
            link.attrib.pop("href")
            link.set("href", "")
            link.set("data-ref", key)
    if draft.directives.footer:
        rows.append(small_print("p", {"data-footer": "1"}, draft.directives.footer))
    if rows:
        rule = [make("div", {"class": "pb-rule"})] if any(row.get("data-note") for row in rows) else []
        draft.root.append(make("div", {"class": "pb-bottom"}, None, *rule, *rows))
    if draft.directives.header:
        draft.root.insert(0, small_print("div", {"class": "pb-header"}, draft.directives.header))


def _footnote(note: Element, key: str, number: str) -> Element:
    """A footnote as one paragraph: its number, then its words."""
    row = make("p", {"data-note": key}, None, make("sup", None, number))
    row[0].tail = " "
    for block in list(note) or [note]:
        copy = whole_copy(block)
        if copy.tag in {"p", "li"}:
            row[-1].tail = (row[-1].tail or "") + (copy.text or "")
            row.extend(list(copy))
        else:
            row.append(make("span", None, text_of(copy)))
        row[-1].tail = (row[-1].tail or "") + " "
    return row


def _fill_contents(drafts: list[Draft]) -> None:
    """A table of contents on a slide lists the slides' titles, as links."""
    for draft in drafts:
        for contents in [item for item in draft.root.iter("nav") if "pb-toc" in classes_of(item)]:
            rows = make("ul")
            seen: set[str] = set()
            for other in drafts:
                heading = title_of(other.root)
                if heading is None or other is draft or other.kind == "title" or text_of(heading) in seen:
                    continue
                seen.add(text_of(heading))
                if len(rows) < _CONTENTS_MAX:
                    anchor = heading.get("id") or ""
                    attributes = {"href": f"#{anchor}"} if anchor else {}
                    rows.append(make("li", None, None, make("a", attributes, text_of(heading))))
            contents[:] = [rows]
            contents.text = None
            if title_of(draft.root) is None:
                draft.root.insert(0, make("h2", None, contents.get("data-title") or "Contents"))
