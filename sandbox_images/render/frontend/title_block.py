"""The title block of a document, or its cover page: from its front matter and its request."""

from datetime import date, datetime
from typing import Any
from xml.etree.ElementTree import Element

from render.frontend.element_tree import body_of, make, text_of
from render.model import Document

WORD_CHARACTERS_MAX = 1_000
WORDS_MAX = 50


def word(value: Any) -> str:
    """A scalar of a front matter as text on one line."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    return " ".join(str(value).split())[:WORD_CHARACTERS_MAX] if isinstance(value, str | int | float) else ""


def words(value: Any) -> tuple[str, ...]:
    """A list of a front matter, or a text with commas."""
    if isinstance(value, str):
        return tuple(part for part in (part.strip() for part in value.split(",")) if part)[:WORDS_MAX]
    if not isinstance(value, list):
        return ()
    rows = (word(item.get("name")) if isinstance(item, dict) else word(item) for item in value[:WORDS_MAX])
    return tuple(row for row in rows if row)


def add_title_block(document: Document, front_matter: dict[str, Any]) -> None:
    """Put title, subtitle, author and date in front of a document; a deck's title slide is its writer's business.

    A title that the first heading has already is not repeated. The request's title heads Markdown that has no heading
    of the first level; pages of HTML have their own, and get no block unless a cover is asked for.
    """
    request = document.request
    is_cover = bool(request.options.get("cover"))
    if request.output == "pptx" or request.source_format in {"mermaid", "svg"}:
        return
    if request.source_format == "html" and not is_cover:
        return
    body = body_of(document.tree)
    tops = list(body.iter("h1"))
    if front_matter.get("marp") and tops and not is_cover:  # its first slide has the title
        return
    own = word(front_matter.get("title"))
    title = own or request.metadata.title
    if not is_cover:
        is_page = request.output == "png" or bool(tops)
        title = own or ("" if is_page else title)
        if tops and _same(title, text_of(tops[0])):
            title = ""
    lines = _lines(document, front_matter, shown=bool(title) or is_cover)
    if is_cover:
        _put_first(body, _cover(document, title or (text_of(tops[0]) if tops else ""), lines, tops))
    elif title:
        _put_first(body, make("header", {"class": "pb-title-block"}, None, _title(title), *lines))
    elif lines and len(body):
        _put_behind_title(body, make("header", {"class": "pb-title-block"}, None, *lines))


def _lines(document: Document, front_matter: dict[str, Any], *, shown: bool) -> list[Element]:
    """Subtitle, and author with date, where the document or the request means them to be read."""
    metadata, options = document.request.metadata, document.request.options
    subtitle = word(front_matter.get("subtitle")) or word(options.get("subtitle"))
    own_author = ", ".join(words(front_matter.get("author") or front_matter.get("authors")))
    own_date = word(front_matter.get("date")) or metadata.date
    is_read = shown or bool(own_author or own_date or subtitle)
    author = own_author or metadata.author
    byline = [text for text in (author, own_date) if text and is_read]
    rows = [make("p", {"class": "pb-subtitle"}, subtitle)] if subtitle else []
    return rows + ([make("p", {"class": "pb-byline"}, " \u00b7 ".join(byline))] if byline else [])


def _title(text: str) -> Element:
    return make("h1", {"class": "pb-doc-title"}, text)


def _cover(document: Document, title: str, lines: list[Element], tops: list[Element]) -> Element:
    """The cover page; a first heading with the same words moves there."""
    body = body_of(document.tree)
    first = next(iter(body), None)
    if tops and first is tops[0] and _same(title, text_of(first)):
        body.text = (body.text or "") + (first.tail or "")
        body.remove(first)
    cover = make("header", {"class": "pb-title-block pb-cover"})
    if document.theme.logo:
        cover.append(
            make("p", {"class": "pb-cover-logo"}, None, make("img", {"src": document.theme.logo, "alt": "Logo"}))
        )
    if title:
        cover.append(_title(title))
    cover.extend(lines)
    return cover


def _put_first(body: Element, block: Element) -> None:
    block.tail, body.text = body.text, None
    body.insert(0, block)


def _put_behind_title(body: Element, block: Element) -> None:
    """Puts lines without a title below the heading that the document begins with, else first."""
    first = next(iter(body), None)
    if first is None or first.tag != "h1" or (body.text or "").strip():
        _put_first(body, block)
        return
    block.tail, first.tail = first.tail, None
    body.insert(1, block)


def _same(one: str, other: str) -> bool:
    return "".join(one.split()).casefold() == "".join(other.split()).casefold()
