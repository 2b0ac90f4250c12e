"""PDFs that a request appends: pages of their sizes are laid out in their places, and theirs are put onto these.

So pages are counted, listed and watermarked as those of the document, whose tags and links stay as they are. A page
becomes a picture made of its own text and fonts; of what acts in it, links to the web are left.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import weasyprint
from pypdf import PdfReader, PdfWriter
from pypdf.errors import PyPdfError
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NullObject,
    PdfObject,
    StreamObject,
    TextStringObject,
)
from render.frontend.assets import read_file
from render.frontend.element_tree import make
from render.frontend.merge import pdf_marks
from render.limits import MERGED_PAGES_MAX
from render.model import Document, RenderError
from render.page_setup import SIDE_MM_MAX

OUTLINE_MAX = 1_000
ANNOTATIONS_MAX = 2_000
_MM_PER_POINT = 25.4 / 72
_HIDDEN = 2
_FIELD_DEPTH_MAX = 32
_SCHEMES = ("http:", "https:", "mailto:")
_TITLE_MAX = 200
Matrix = tuple[float, float, float, float, float, float]


@dataclass(frozen=True, slots=True)
class _Page:
    """A page that is put onto one of the document: what it is, and its size in points as it is shown."""

    label: str
    source: Any
    width: float
    height: float


@dataclass(slots=True)
class PdfParts:
    """The appended PDFs of a document.

    Attributes:
        pages: their pages, by the anchor of the page that each is put onto.
        css: rules for those pages.
    """

    pages: dict[str, _Page] = field(default_factory=dict)
    css: str = ""

    def places(self, laid: weasyprint.Document) -> list[tuple[int, str]]:
        """Which pages of a laid-out document are for which anchors."""
        return [
            (number, anchor)
            for number, page in enumerate(laid.pages)
            for anchor in page.anchors
            if anchor in self.pages
        ]


def place_pdf_parts(document: Document) -> PdfParts:
    """Puts empty pages into the tree in place of the marks of PDFs, with their outlines as bookmarks.

    Raises:
        RenderError: ``invalid_part``: a PDF is broken, encrypted, empty or too long.
    """
    parts = PdfParts()
    given = document.request.options.get("merge") or []
    sizes: dict[tuple[float, float], str] = {}
    for mark, index in list(pdf_marks(document.tree)):
        if index >= len(given):
            continue
        path = str(given[index])
        label = f"merge[{index}]: {PurePosixPath(path).name[:100]}"
        reader, title, entries = _opened(document, path, label)
        mark.set("class", "pb-pdf-pages")
        for number, source in enumerate(reader.pages):
            if len(parts.pages) >= MERGED_PAGES_MAX:
                raise RenderError(
                    "invalid_part", f"{label}: the PDFs have more than {MERGED_PAGES_MAX:,} pages; append fewer"
                )
            page = _measured(source, label)
            unseen = _unseen_fields(source)
            if unseen:
                fields = "1 form field are" if unseen == 1 else f"{unseen} form fields are"
                document.warn(
                    "content_lost",
                    f"{label}, page {number + 1}: the values of {fields} not shown, because the PDF does not draw "
                    "them; print it to a new PDF and append that.",
                )
            anchor = f"pb-pdf-{index}-{number}"
            parts.pages[anchor] = page
            size = round(page.width, 1), round(page.height, 1)
            name = sizes.setdefault(size, f"pb-pdf-size-{len(sizes)}")
            marks = [
                make("div", {"style": _bookmark(depth, words)}) for at, depth, words in entries if at == number
            ]
            if number == 0:
                marks.insert(0, make("div", {"style": _bookmark(1, title)}))
            style = f"page: {name}; break-before: page; height: 1pt"
            mark.append(make("div", {"id": anchor, "style": style}, None, *marks))
    boxes = " ".join(
        f"@{edge}-{side} {{ content: none; background: none }}"
        for edge in ("top", "bottom")
        for side in ("left", "center", "right")
    )
    parts.css = "\n".join(
        f"@page {name} {{ size: {width}pt {height}pt; margin: 0; background: none; {boxes} }}"
        for (width, height), name in sizes.items()
    )
    if sizes:
        parts.css += "\nhtml { page: pb-text }\n"
    return parts


def put_pages(path: str, parts: PdfParts, places: list[tuple[int, str]]) -> None:
    """Puts the pages of the appended PDFs onto those of a written document, in place.

    Raises:
        RenderError: ``invalid_part``: a page cannot be read.
    """
    if not places:
        return
    with open(path, "rb") as file:  # noqa: PTH123
        writer = PdfWriter(clone_from=io.BytesIO(file.read()))
    for number, anchor in places:
        page = parts.pages[anchor]
        try:
            _put(writer, writer.pages[number], page)
        except (PyPdfError, ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as exc:
            raise _broken(page.label, exc) from exc
    writer.write(path)


def _bookmark(level: int, label: str) -> str:
    words = "".join(f"\\{ord(letter):x} " if letter in '"\\\n\r\f<>' else letter for letter in label)
    return f'bookmark-level: {level}; bookmark-label: "{words}"; bookmark-state: closed'


def _broken(label: str, exc: Exception) -> RenderError:
    return RenderError("invalid_part", f"{label} cannot be read as a PDF ({str(exc)[:120]}); export it again")


def _opened(document: Document, path: str, label: str) -> tuple[PdfReader, str, list[tuple[int, int, str]]]:
    """A PDF, its title, and its outline: page, level and words of each entry."""
    data, _ = read_file(document, path)
    title, entries, pages = "", [], 0
    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        is_locked = reader.is_encrypted
        if not is_locked:
            pages = len(reader.pages)
            metadata = reader.metadata
            title = " ".join(str((metadata and metadata.title) or "").split())[:_TITLE_MAX]
            entries = list(_entries(reader, reader.outline, 2))[:OUTLINE_MAX]
    except Exception as exc:  # readers of broken files fail in their own ways
        raise _broken(label, exc) from exc
    if is_locked:
        raise RenderError("invalid_part", f"{label} is encrypted; give a copy without a password")
    if not pages:
        raise RenderError("invalid_part", f"{label} has no pages; leave it out")
    return reader, title or PurePosixPath(path).stem, entries


def _entries(reader: PdfReader, rows: Any, level: int) -> Iterator[tuple[int, int, str]]:
    for row in rows:
        if isinstance(row, list):
            if level < 6:  # noqa: PLR2004 - deeper entries are not shown by readers at once
                yield from _entries(reader, row, level + 1)
            continue
        number = reader.get_destination_page_number(row)
        title = " ".join(str(row.title or "").split())[:_TITLE_MAX]
        if number is not None and number >= 0 and title:
            yield number, level, title


def _measured(source: Any, label: str) -> _Page:
    try:
        left, bottom, right, top = (float(value) for value in source.cropbox)
        unit = float(source.get("/UserUnit", 1))
        width, height = abs(right - left) * unit, abs(top - bottom) * unit
        if source.rotation % 180:
            width, height = height, width
    except (PyPdfError, ValueError, TypeError) as exc:
        raise _broken(label, exc) from exc
    most = SIDE_MM_MAX / _MM_PER_POINT
    if not (1 <= width <= most and 1 <= height <= most):
        raise RenderError(
            "invalid_part", f"{label} has a page of {width:.0f} by {height:.0f} points; export it again"
        )
    return _Page(label, source, width, height)


def _put(writer: PdfWriter, target: Any, page: _Page) -> None:
    """Puts a page behind what a page of the document shows."""
    matrix = _matrix(page, float(target.mediabox.width), float(target.mediabox.height))
    form = writer._add_object(_form(writer, page.source))  # noqa: SLF001 - pypdf has no other way to add an object
    resources = target["/Resources"].get_object()
    drawings = resources.setdefault(NameObject("/XObject"), DictionaryObject()).get_object()
    name = f"/PbPart{len(drawings)}"  # the pages of a document share their resources
    drawings[NameObject(name)] = form
    shown = StreamObject()
    numbers = " ".join(f"{value:.5f}" for value in matrix)
    shown.set_data(f"q {numbers} cm {name} Do Q\n".encode())
    old = target.get("/Contents", NullObject())
    rest = old.get_object() if isinstance(old.get_object(), ArrayObject) else [target.raw_get("/Contents")]
    target[NameObject("/Contents")] = ArrayObject([writer._add_object(shown), *rest])  # noqa: SLF001
    links = ArrayObject(target.get("/Annots", ArrayObject()).get_object())
    links.extend(writer._add_object(link) for link in _web_links(page.source, matrix))  # noqa: SLF001
    if links:
        target[NameObject("/Annots")] = links


def _matrix(page: _Page, width: float, height: float) -> Matrix:
    """From the page's own space to that of the page that it is put onto: turned, moved and as large."""
    left, bottom, right, top = (float(value) for value in page.source.cropbox)
    left, right, bottom, top = min(left, right), max(left, right), min(bottom, top), max(bottom, top)
    turns: dict[int, Matrix] = {
        0: (1, 0, 0, 1, -left, -bottom),
        90: (0, -1, 1, 0, -bottom, right),
        180: (-1, 0, 0, -1, right, top),
        270: (0, 1, -1, 0, top, -left),
    }
    a, b, c, d, e, f = turns[page.source.rotation % 360]
    across = width / ((right - left) if page.source.rotation % 180 == 0 else (top - bottom))
    down = height / ((top - bottom) if page.source.rotation % 180 == 0 else (right - left))
    return a * across, b * down, c * across, d * down, e * across, f * down


def _form(writer: PdfWriter, source: Any) -> StreamObject:
    """A page as a drawing, with the looks of its notes and fields in it."""
    contents = source.get_contents()
    data = contents.get_data() if contents is not None else b""
    resources = DictionaryObject()
    own = source.get("/Resources")
    for key, value in (own.get_object() if own is not None else {}).items():
        resources[NameObject(key)] = _cloned(value, writer)
    looks = list(_appearances(source))
    if looks:
        drawings = DictionaryObject()
        known = resources.get("/XObject")
        for key, value in (known.get_object() if known is not None else {}).items():
            drawings[NameObject(key)] = value
        for number, (stream, matrix) in enumerate(looks):
            drawings[NameObject(f"/PbNote{number}")] = _cloned(stream, writer)
            data += f"\nq {' '.join(f'{value:.5f}' for value in matrix)} cm /PbNote{number} Do Q".encode()
        resources[NameObject("/XObject")] = drawings
    form = StreamObject()
    form.set_data(b"q\n" + data + b"\nQ\n")
    form = form.flate_encode()
    box = ArrayObject(FloatObject(float(value)) for value in source.cropbox)
    form.update({
        NameObject("/Type"): NameObject("/XObject"), NameObject("/Subtype"): NameObject("/Form"),
        NameObject("/BBox"): box, NameObject("/Resources"): resources,
    })  # fmt: skip
    group = source.get("/Group")
    if group is not None:
        form[NameObject("/Group")] = _cloned(group, writer)
    return form


def _cloned(value: Any, writer: PdfWriter) -> PdfObject:
    """An object of another file in this one; pages that it leads to stay away."""
    found = value.get_object()
    cloned: PdfObject = found.clone(writer, ignore_fields=("/Parent", "/StructParents", "/StructParent", "/P"))
    reference: PdfObject | None = getattr(cloned, "indirect_reference", None)
    return cloned if reference is None else reference


def _annotations(source: Any) -> Iterator[Any]:
    rows = source.get("/Annots")
    found = rows.get_object() if rows is not None else []
    for row in list(found)[:ANNOTATIONS_MAX] if isinstance(found, list) else []:
        annotation = row.get_object()
        if not isinstance(annotation, DictionaryObject) or _box(annotation.get("/Rect")) is None:
            continue
        flags = annotation.get("/F", 0)
        if not (isinstance(flags, int) and flags & _HIDDEN):
            yield annotation


def _box(value: Any) -> tuple[float, float, float, float] | None:
    """The four numbers of a rectangle: left, bottom, right, top; None if it is not one."""
    try:
        x0, y0, x1, y1 = (float(number.get_object()) for number in value.get_object())
    except (PyPdfError, AttributeError, TypeError, ValueError):
        return None
    return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)


def _appearances(source: Any) -> Iterator[tuple[Any, Matrix]]:
    """What notes and fields look like, and where: a form that is appended is no form any more."""
    for annotation in _annotations(source):
        looks = annotation.get("/AP")
        if annotation.get("/Subtype") in {"/Link", "/Popup"} or looks is None:
            continue
        stream = looks.get_object().get("/N")
        stream = stream.get_object() if stream is not None else None
        if isinstance(stream, DictionaryObject) and not isinstance(stream, StreamObject):  # one for each state
            state = stream.get(annotation.get("/AS", "/Off"))
            stream = state.get_object() if state is not None else None
        place = _box(annotation.get("/Rect"))
        box = _box(stream.get("/BBox")) if isinstance(stream, StreamObject) else None
        if place is None or box is None or box[0] == box[2] or box[1] == box[3]:
            continue
        across, down = (place[2] - place[0]) / (box[2] - box[0]), (place[3] - place[1]) / (box[3] - box[1])
        yield stream, (across, 0, 0, down, place[0] - box[0] * across, place[1] - box[1] * down)


def _unseen_fields(source: Any) -> int:
    """How many fields of a page have words that no drawing shows."""
    try:
        return sum(
            annotation.get("/Subtype") == "/Widget"
            and _inherited(annotation, "/FT") in {"/Tx", "/Ch"}
            and _has_words(_inherited(annotation, "/V"))
            and not _is_drawn(annotation)
            for annotation in _annotations(source)
        )
    except (PyPdfError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return 0  # a broken page is an error where it is put onto one of the document


def _inherited(annotation: Any, key: str) -> Any:
    """A value of a field, or of one that it is a part of."""
    for _ in range(_FIELD_DEPTH_MAX):
        value = annotation.get(key)
        parent = annotation.get("/Parent")
        if value is not None or parent is None:
            return None if value is None else value.get_object()
        annotation = parent.get_object()
    return None


def _has_words(value: Any) -> bool:
    if isinstance(value, StreamObject):
        return bool(value.get_data().strip())
    rows = value if isinstance(value, ArrayObject) else [value]
    return any(isinstance(row, str) and bool(row.strip()) for row in rows)


def _is_drawn(annotation: Any) -> bool:
    looks = annotation.get("/AP")
    found = looks.get_object() if looks is not None else None
    return isinstance(found, DictionaryObject) and found.get("/N") is not None


def _web_links(source: Any, matrix: Matrix) -> Iterator[DictionaryObject]:
    """The links to the web of a page, where they are on the one that it is put onto."""
    a, b, c, d, e, f = matrix
    for annotation in _annotations(source):
        action = annotation.get("/A")
        found = action.get_object() if action is not None else None
        address = str(found.get("/URI", "")) if isinstance(found, DictionaryObject) else ""
        box = _box(annotation.get("/Rect"))
        if box is None or annotation.get("/Subtype") != "/Link" or not address.lower().startswith(_SCHEMES):
            continue
        points = [(a * x + c * y + e, b * x + d * y + f) for x, y in (box[:2], box[2:])]
        rows = [
            *(min(axis) for axis in zip(*points, strict=True)),
            *(max(axis) for axis in zip(*points, strict=True)),
        ]
        yield DictionaryObject({
            NameObject("/Type"): NameObject("/Annot"), NameObject("/Subtype"): NameObject("/Link"),
            NameObject("/Rect"): ArrayObject(FloatObject(value) for value in rows),
            NameObject("/Border"): ArrayObject([FloatObject(0)] * 3),
            NameObject("/A"): DictionaryObject({
                NameObject("/S"): NameObject("/URI"), NameObject("/URI"): TextStringObject(address[:2000]),
            }),
        })  # fmt: skip
