"""The HTML of a conversion: decoding, templates with Markdown, headers and footers on each page."""

import html
import itertools
import re
from datetime import datetime
from pathlib import Path
from typing import Literal

from proofbox.service.facades.gotenberg.errors import InvalidFormError, RequestRefusedError
from proofbox.service.facades.gotenberg.html_scan import (
    elements,
    end_of_tag,
    tag_pattern,
    without_comments,
    without_elements,
    without_tags,
)

DOCUMENT_BYTES_MAX = 10 * 1024 * 1024
RUNNING_BYTES_MAX = 64 * 1024
_CALLS_MAX = 1_000
_LISTED_MAX = 10
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s{0,8}=[\s"']{0,8}([A-Za-z0-9_-]{1,40})""", re.IGNORECASE)
# Encodings that pages have; some of Python's others are slow on purpose-made bytes.
_CHARSETS = re.compile(
    r"utf-?8|utf-16(le|be)?|us-ascii|iso-8859-\d{1,2}|latin-?1|windows-125\d|cp125\d|koi8-[ru]|shift[_-]jis"
    r"|euc-(jp|kr)|gb2312|gbk|gb18030|big5",
    re.IGNORECASE,
)
_CALL = re.compile(r"""\{\{-?\s*toHTML\s+(?:"([^"\n]{1,255})"|`([^`\n]{1,255})`)\s*-?\}\}""")
_BODY, _HEAD_END = tag_pattern("body"), tag_pattern("/head")
_OUTER_TAG = tag_pattern("(?:!doctype|/?(?:html|body))")
_TITLE_CHARS_MAX = 2_000
_ROOT_SELECTOR = re.compile(r"(^|[},;])(\s*)(?:html|body|:root)(?=\s*[,{.#:>\s])", re.IGNORECASE)


def read_html(path: Path, name: str, bytes_max: int = DOCUMENT_BYTES_MAX) -> str:
    """Decodes an uploaded page: by its ``meta`` element, as UTF-8, else as Windows-1252.

    Raises:
        RequestRefusedError: it is too large.
    """
    size_bytes = path.stat().st_size
    if size_bytes > bytes_max:
        raise RequestRefusedError(413, f"{name}: has {size_bytes} bytes (limit {bytes_max}); make it smaller")
    raw = path.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", errors="replace")
    declared = _META_CHARSET.search(raw[:4096])
    charset = declared[1].decode("ascii") if declared else "utf-8"
    if _CHARSETS.fullmatch(charset) is not None and "16" not in charset:
        try:
            return raw.decode("utf-8-sig" if charset.lower() in {"utf-8", "utf8"} else charset)
        except (UnicodeDecodeError, LookupError):
            pass
    return raw.decode("utf-8-sig", errors="replace") if declared else raw.decode("windows-1252", errors="replace")


def split_template(text: str, names: set[str]) -> list[str | dict[str, str]]:
    """The pieces of a page: its own text, and the Markdown files that ``{{ toHTML "name" }}`` puts in.

    Raises:
        InvalidFormError: a file is missing, there are too many calls, or the page has other template syntax.
    """
    pieces: list[str | dict[str, str]] = []
    missing: dict[str, None] = {}
    at = 0
    # Not finditer: it has no end before the next call, and the interpreter runs nothing else until then.
    while (opened := text.find("{{", at)) >= 0 and (call := _CALL.match(text, opened)) is not None:
        if len(pieces) >= 2 * _CALLS_MAX:
            raise InvalidFormError(
                [f"index.html: names Markdown files more than {_CALLS_MAX} times; make it smaller"]
            )
        name = call[1] or call[2]
        if name not in names:
            missing[name] = None
        pieces += [text[at:opened], {"markdown": name}]
        at = call.end()
    pieces.append(text[at:])
    if missing:
        listed = "; ".join(f"'{name}'" for name in itertools.islice(missing, _LISTED_MAX))
        more = "; …" if len(missing) > _LISTED_MAX else ""
        raise RequestRefusedError(400, f"Markdown file(s) not found: {listed}{more}")
    if opened >= 0:
        raise InvalidFormError(
            ['index.html: only {{ toHTML "file.md" }} is expanded; take other template syntax out']
        )
    if len(pieces) == 1:
        raise InvalidFormError(['index.html: names no Markdown file; put {{ toHTML "file.md" }} where it belongs'])
    return pieces


def title_of(text: str) -> str:
    """The title of a page, without markup; empty if it has none."""
    title = next(elements(text, "title"), None)
    if title is None:
        return ""
    end = min(title.inner_end, title.inner_start + _TITLE_CHARS_MAX)
    return " ".join(html.unescape(text[title.inner_start : end]).split())


def insert_at_start(text: str, fragment: str) -> str:
    """Puts a fragment at the beginning of the body of a page."""
    at = end_of_tag(text, _BODY) or end_of_tag(text, _HEAD_END)
    if at is None:
        doctype = re.match(r"\s*<!doctype[^>]*>", text, re.IGNORECASE)
        at = doctype.end() if doctype else 0
    return text[:at] + fragment + text[at:]


def running_fragment(edge: Literal["header", "footer"], source: str) -> str:
    """The element that stands above or below the text of each page, with the styles of its file.

    The styles are nested in the element, so they do not reach the document.
    """
    source = without_comments(source)
    styles = "\n".join(source[style.inner_start : style.inner_end] for style in elements(source, "style"))
    body = without_elements(without_tags(without_elements(source, "head"), _OUTER_TAG), "style")
    scoped = _ROOT_SELECTOR.sub(r"\1\2.pbx-page", styles)
    style = f"<style>.pbx-{edge} {{ {scoped} }}</style>" if styles.strip() else ""
    # Gotenberg's own element has this id, and authors take its padding away by it.
    return f'{style}<div class="pbx-{edge}"><div class="pbx-page"><div id="{edge}">{body}</div></div></div>'


def running_css(
    edges: list[Literal["header", "footer"]], margins_mm: dict[str, float], title: str, now: datetime
) -> str:
    """The rules that put the running elements into the margins and fill in their classes."""
    rules = []
    clock = f"{(now.hour + 11) % 12 + 1}:{now:%M} {'AM' if now.hour < 12 else 'PM'}"  # noqa: PLR2004 - noon
    values = {
        "pageNumber": "counter(page)",
        "totalPages": "counter(pages)",
        "title": f'"{_css_text(title)}"',
        "date": f'"{now.month}/{now.day}/{now:%y}, {clock}"',
    }
    for edge in edges:
        place, padding = ("top", "padding-top") if edge == "header" else ("bottom", "padding-bottom")
        rules.append(
            f"@page {{ @{place}-center {{ content: element(pbx-{edge}); width: 100%; vertical-align: {place} }}"
            f" @{place}-left {{ content: none }} @{place}-right {{ content: none }} }}"
        )
        rules.append(
            f".pbx-{edge} {{ position: running(pbx-{edge}); text-align: left;"
            f" margin: 0 -{margins_mm['right']:g}mm 0 -{margins_mm['left']:g}mm }}"
            f" .pbx-{edge} #{edge} {{ {padding}: 15px }}"
        )
        rules += [f".pbx-{edge} .{name}::before {{ content: {value} }}" for name, value in values.items()]
    return "\n".join(rules)


def _css_text(text: str) -> str:
    return re.sub(r'["\\\n\r\f<>&]', lambda match: f"\\{ord(match[0]):x} ", text[:500])
