"""The readable text of one page, by trafilatura; what it finds no article in is given whole."""

import copy
import re
from typing import Any

import htmldate
import lxml.html
import trafilatura
from page_text.decoding import decoded

TITLE_CHARACTERS_MAX = 500
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_STATING = "//meta | //script[@type='application/ld+json']"
_SPACES = re.compile(r"\s+")


def extracted(data: bytes, charset: str | None, url: str, characters_max: int) -> dict[str, Any]:
    """A page as ``title``, ``text`` (Markdown), ``truncated`` and, if known, ``language`` and ``date``."""
    page = decoded(data, charset)
    tree = trafilatura.load_html(page)
    if tree is None:
        return {"title": "", "text": "", "truncated": False}
    title, published = _title(tree), _published(tree)
    text = trafilatura.extract(
        page, url=url, output_format="markdown", include_comments=False, include_formatting=True
    )
    if not text:
        text = trafilatura.html2txt(page)
    answer: dict[str, Any] = {
        "title": title[:TITLE_CHARACTERS_MAX],
        "text": text[:characters_max],
        "truncated": len(text) > characters_max,
    }
    language = _language(tree)
    if language:
        answer["language"] = language
    if published and _DATE.fullmatch(published):
        answer["date"] = published
    return answer


def _title(tree: lxml.html.HtmlElement) -> str:
    """The title that the page gives itself, else its first heading; a picture's ``<title>`` is none."""
    found = (
        *(element.text_content() for element in tree.xpath("//title[not(ancestor::*[local-name()='svg'])]")),
        *tree.xpath("//meta[@property='og:title' or @name='og:title']/@content"),
        *(element.text_content() for element in tree.xpath("//h1")),
    )
    return next((title for text in found if (title := _SPACES.sub(" ", text).strip())), "")


def _published(tree: lxml.html.HtmlElement) -> str | None:
    """The day that the page states: in its metadata, in JSON-LD, or in a ``time`` element.

    htmldate sees nothing else of it: it would take any number in the text for a year.
    """
    page = lxml.html.fromstring("<html><head></head><body></body></html>")
    page.head.extend(copy.deepcopy(element) for element in tree.xpath(_STATING))
    for stated in tree.xpath("//*[@itemprop='datePublished']/@content"):
        page.head.append(lxml.html.Element("meta", itemprop="datePublished", content=stated))
    page.body.extend(copy.deepcopy(element) for element in tree.xpath("//time"))
    return htmldate.find_date(page, extensive_search=False, original_date=True)


def _language(tree: lxml.html.HtmlElement) -> str | None:
    declared = str(tree.get("lang") or tree.get("xml:lang") or "").strip()
    return declared if _LANGUAGE.fullmatch(declared) else None
