"""WeasyPrint, from a document's tree: no file or address is opened but through `assets`.

Theme and page defaults are *user* style sheets: whatever the author sets, in a style sheet or with ``@page``, wins.
"""

import gc
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any
from xml.etree.ElementTree import Element

import cssselect2
import weasyprint
from render.frontend.assets import BASE_URL, MISSING_SHOWN_MAX, AssetRefused, read_asset
from render.frontend.sanitise import scrub_css
from render.limits import SHEETS_READ_MAX
from render.model import Document
from render.themes import document_css
from render.weasy.fitting_grids import fit_grids
from render.weasy.glyph_text import settle_letters
from render.weasy.limits import keep_bounds
from render.weasy.savings import save, without_notes
from render.weasy.shadows import smooth_shadows
from render.weasy.usable_styles import with_usable_styles
from weasyprint.text.fonts import FontConfiguration
from weasyprint.urls import URLFetcher, URLFetcherResponse

DROPPED_SHOWN_MAX = 15
"""So many dropped declarations are reported one by one; a browser's style sheet has hundreds."""
_PAGE_RULE = re.compile(r"@page[^{]*\{(?:[^{}]|\{[^{}]*\})*\}|@charset[^;]*;|/\*.*?\*/", re.DOTALL)
_AUTHORED_CHARACTERS = 120
"""A style sheet longer than this, ``@page`` aside, styles the text; ours would get in its way."""
_VENDOR = re.compile(
    r"`-(?:webkit|moz|ms|o)-|`(?:transition|animation|cursor|user-select|will-change|pointer-events|scroll-behavior)\b"
)


class AssetFetcher(URLFetcher):  # type: ignore[misc]
    """What WeasyPrint asks for files: it answers with assets of the document or refuses, with a warning."""

    def __init__(self, document: Document) -> None:
        super().__init__(allowed_protocols=["data", "file"])
        self.document = document
        self.sheets = 0

    def fetch(self, url: str, headers: dict[str, str] | None = None) -> URLFetcherResponse:  # noqa: ARG002
        """Reads one asset.

        Raises:
            ValueError: it is refused; WeasyPrint goes on without it.
        """
        shown = url.removeprefix(BASE_URL)[:MISSING_SHOWN_MAX]
        try:
            asset = read_asset(self.document, url)
        except AssetRefused as refusal:
            self.document.warn(refusal.code, str(refusal).replace(BASE_URL, ""), path=shown)
            raise ValueError(str(refusal)) from refusal
        data = asset.data
        if asset.mime.startswith("text/"):
            self.sheets += 1
            if self.sheets > SHEETS_READ_MAX:
                self.document.warn(
                    "asset_refused",
                    f"More than {SHEETS_READ_MAX} style sheets were asked for; do they import themselves?",
                )
                raise ValueError("too many style sheets")
            data = scrub_css(self.document, data.decode("utf-8", "replace")).encode()
        # Not the file: address: WeasyPrint would open that path itself, later.
        return URLFetcherResponse(f"asset:{shown}", data, {"Content-Type": asset.mime})


class TreeHTML(weasyprint.HTML):  # type: ignore[misc]
    """WeasyPrint's document of a tree that is there: writing it out and parsing it again would change it."""

    def __init__(  # pylint: disable=super-init-not-called
        self, tree: Element, fetcher: URLFetcher, media: str = "print", base_url: str | None = BASE_URL
    ) -> None:
        self.base_url = base_url
        self.url_fetcher = fetcher
        self.media_type = media
        self.wrapper_element = cssselect2.ElementWrapper.from_html_root(tree, content_language=None)
        self.etree_element = self.wrapper_element.etree_element
        self.may_have_notes = _may_have_notes(tree)

    def _ua_stylesheets(self, forms: bool = False) -> list[weasyprint.CSS]:
        sheets: list[weasyprint.CSS] = super()._ua_stylesheets(forms)
        return sheets if self.may_have_notes else [without_notes(sheet) for sheet in sheets]


class _Notices(logging.Handler):
    """Turns what WeasyPrint logs into warnings of the document."""

    def __init__(self, document: Document) -> None:
        super().__init__(logging.WARNING)
        self.document = document
        self.dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message.startswith(
            ("Ignored", "Invalid or unsupported selector", "Parse error", "Expected", "Unknown rule")
        ):
            if _VENDOR.search(message):
                return
            self.dropped += 1
            if self.dropped <= DROPPED_SHOWN_MAX:
                self.document.warn("dropped_css", re.sub(r" at \d+:\d+", "", message)[:300])
        elif message.startswith("No anchor"):
            self.document.warn("broken_link", message[:300])


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Lets the garbage collector look at new objects only, and seldom.

    Layout makes millions of objects that all live until the end: looking through them again and again takes a third
    of its time.
    """
    retained = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(50_000, 1_000, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*retained)
        gc.unfreeze()


@contextmanager
def noticing(document: Document) -> Iterator[None]:
    """Collects messages of WeasyPrint as warnings of a document."""
    logger = logging.getLogger("weasyprint")
    handler = _Notices(document)
    retained = logger.handlers[:], logger.propagate, logger.level
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.handlers, logger.propagate = retained[0], retained[1]
        logger.setLevel(retained[2])


def is_authored(document: Document) -> bool:
    """Whether the source styles its own text."""
    if any("stylesheet" in (link.get("rel") or "") for link in document.tree.iter("link")):
        return True
    css = "".join(style.text or "" for style in document.tree.iter("style") if not style.get("data-pb"))
    return len(_PAGE_RULE.sub("", css).strip()) > _AUTHORED_CHARACTERS


def _may_have_notes(tree: Element) -> bool:
    """Whether the author's styles may ask for notes or list items of their own: a style sheet elsewhere may."""
    for element in tree.iter():
        css = (element.text or "") if element.tag == "style" else element.get("style") or ""
        if element.tag == "link" or "note" in css or "list-item" in css or "@import" in css:
            return True
    return False


def style_sheets(document: Document, *own: str) -> list[weasyprint.CSS]:
    """The style sheets of a document: its theme, typography unless it is authored, and what a writer adds."""
    sheets = [_sheet(document.theme.css)]
    if not is_authored(document):
        sheets.append(_sheet(document_css(document.theme)))
    return [*sheets, *(weasyprint.CSS(string=css) for css in own)]


@lru_cache(maxsize=16)
def _sheet(css: str) -> weasyprint.CSS:
    """A parsed style sheet of ours: it takes longer to parse than a page to lay out."""
    return weasyprint.CSS(string=css)


def lay_out(
    document: Document, sheets: Sequence[weasyprint.CSS], media: str = "print", **options: Any
) -> weasyprint.Document:
    """Lays a document out, without the author's rules that make WeasyPrint fail.

    Raises:
        RenderError: ``layout_failed``.
    """
    options.setdefault("presentational_hints", True)
    return with_usable_styles(document, lambda: _render(document, sheets, media, options))


def _render(
    document: Document, sheets: Sequence[weasyprint.CSS], media: str, options: dict[str, Any]
) -> weasyprint.Document:
    save()
    keep_bounds()
    settle_letters()
    smooth_shadows()
    fit_grids()
    html = TreeHTML(document.tree, AssetFetcher(document), media)
    return html.render(font_config=FontConfiguration(), stylesheets=list(sheets), **options)
