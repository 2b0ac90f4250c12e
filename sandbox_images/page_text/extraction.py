"""The readable text of one page, by trafilatura; what it finds no article in is given whole."""

import re
from typing import Any

import lxml.html
import trafilatura
from page_text.decoding import decoded

TITLE_CHARACTERS_MAX = 500
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_SPACES = re.compile(r"\s+")


def extracted(data: bytes, charset: str | None, url: str, characters_max: int) -> dict[str, Any]:
    """A page as ``title``, ``text`` (Markdown), ``truncated`` and, if known, ``language`` and ``date``."""
    page = decoded(data, charset)
    tree = trafilatura.load_html(page)
    if tree is None:
        return {"title": "", "text": "", "truncated": False}
    about = trafilatura.extract_metadata(tree, default_url=url)
    text = trafilatura.extract(
        page, url=url, output_format="markdown", include_comments=False, include_formatting=True
    )
    if not text:
        text = trafilatura.html2txt(page)
    title = about.title or tree.findtext(".//title") or ""
    answer: dict[str, Any] = {
        "title": _SPACES.sub(" ", title).strip()[:TITLE_CHARACTERS_MAX],
        "text": text[:characters_max],
        "truncated": len(text) > characters_max,
    }
    language = _language(tree)
    if language:
        answer["language"] = language
    if about.date and _DATE.fullmatch(about.date):
        answer["date"] = about.date
    return answer


def _language(tree: lxml.html.HtmlElement) -> str | None:
    declared = str(tree.get("lang") or tree.get("xml:lang") or "").strip()
    return declared if _LANGUAGE.fullmatch(declared) else None
