"""The readable text of one page, by trafilatura; what it finds no article in is given whole."""

import re
from typing import Any

import lxml.html
import trafilatura
from readable.decoding import decoded

TITLE_CHARACTERS_MAX = 500
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SPACES = re.compile(r"\s+")


def extracted(data: bytes, charset: str | None, url: str, characters_max: int) -> dict[str, Any]:
    """What a page says: ``title``, ``text`` (Markdown), ``truncated`` and, if known, ``language`` and ``date``."""
    page = decoded(data, charset)
    tree = trafilatura.load_html(page)
    if tree is None:
        return {"title": "", "text": "", "truncated": False}
    found = trafilatura.bare_extraction(
        page, url=url, with_metadata=True, include_comments=False, include_tables=True, include_formatting=True
    )
    text = trafilatura.extract(
        page,
        url=url,
        output_format="markdown",
        include_comments=False,
        include_tables=True,
        include_formatting=True,
    )
    if not text:
        text = trafilatura.html2txt(page) or ""
    title = (found.title if found is not None else None) or tree.findtext(".//title") or ""
    answer: dict[str, Any] = {
        "title": _SPACES.sub(" ", title).strip()[:TITLE_CHARACTERS_MAX],
        "text": text[:characters_max],
        "truncated": len(text) > characters_max,
    }
    language = _language(tree)
    if language:
        answer["language"] = language
    date = found.date if found is not None else None
    if date and _DATE.fullmatch(date):
        answer["date"] = date
    return answer


def _language(tree: lxml.html.HtmlElement) -> str | None:
    said = str(tree.get("lang") or tree.get("xml:lang") or "").strip()
    return said if _LANGUAGE.fullmatch(said) else None
