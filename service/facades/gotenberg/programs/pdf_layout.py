"""Part of the program `pdf`: steps that change what its pages show."""

import io
from collections.abc import Iterator
from typing import Any

from pypdf.generic import (
    ArrayObject,
    ContentStream,
    DecodedStreamObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    RectangleObject,
)

from proofbox.service.facades.gotenberg.programs.pdf_values import Pdf, Refused


def flatten(pdf: Pdf, step: dict[str, Any]) -> None:  # noqa: ARG001 - as every step
    """Draws what form fields and annotations show onto their pages and takes these away; links stay."""
    for page in pdf.content.pages:
        links: list[tuple[Any, Any, Any]] = []
        drawn: list[tuple[Any, Any, Any]] = []
        for reference in page.get("/Annots", None) or ():
            annotation = reference.get_object()
            stream = None if annotation.get("/Subtype") == "/Link" else _appearance(annotation)
            (links if annotation.get("/Subtype") == "/Link" else drawn).append((reference, annotation, stream))
        if not drawn:
            continue
        page[NameObject("/Annots")] = ArrayObject(reference for reference, _, _ in links)
        marks = b"".join(
            _drawing(page, place, item[1], item[2]) for place, item in enumerate(drawn) if item[2] is not None
        )
        if marks:
            content = ContentStream(page.get_contents(), pdf.content)
            whole = b"q\n" + content.get_data() + b"\nQ\n" + marks
            stream = DecodedStreamObject()
            stream.set_data(whole)
            page[NameObject("/Contents")] = pdf.content._add_object(stream.flate_encode())  # noqa: SLF001
    pdf.content.root_object.pop(NameObject("/AcroForm"), None)


def _appearance(annotation: DictionaryObject) -> Any:
    """The reference to the drawing that an annotation shows; None if it shows none."""
    hidden = int(annotation.get("/F", 0)) & 2
    shown: Any = annotation.get("/AP", DictionaryObject()).get_object()
    normal = shown.raw_get("/N") if "/N" in shown and not hidden else None
    target = None if normal is None else normal.get_object()
    if target is not None and "/BBox" not in target:  # one drawing for each state
        state = annotation.get("/AS", "/Off")
        normal = target.raw_get(state) if state in target else None
        target = None if normal is None else normal.get_object()
    return normal if target is not None and "/BBox" in target else None


def _drawing(page: Any, place: int, annotation: DictionaryObject, reference: Any) -> bytes:
    """The operators that draw an appearance in the rectangle of its annotation (ISO 32000-1, 12.5.5)."""
    form = reference.get_object()
    left, bottom, right, top = RectangleObject(annotation["/Rect"])  # type: ignore[arg-type]
    x0, y0, x1, y1 = (float(value) for value in form["/BBox"])
    a, b, c, d, e, f = (float(value) for value in form.get("/Matrix", (1, 0, 0, 1, 0, 0)))
    corners = [(a * x + c * y + e, b * x + d * y + f) for x in (x0, x1) for y in (y0, y1)]
    wide = max(x for x, _ in corners) - min(x for x, _ in corners)
    high = max(y for _, y in corners) - min(y for _, y in corners)
    if not wide or not high:
        return b""
    sx, sy = (float(right) - float(left)) / wide, (float(top) - float(bottom)) / high
    dx = float(left) - sx * min(x for x, _ in corners)
    dy = float(bottom) - sy * min(y for _, y in corners)
    name = f"/PbxFlat{place}"
    resources = page.setdefault(NameObject("/Resources"), DictionaryObject()).get_object()
    drawings = resources.setdefault(NameObject("/XObject"), DictionaryObject()).get_object()
    drawings[NameObject(name)] = reference
    form.setdefault(NameObject("/Subtype"), NameObject("/Form"))
    return f"q {sx:.5f} 0 0 {sy:.5f} {dx:.5f} {dy:.5f} cm {name} Do Q\n".encode()


def cut_to_content(pdf: Pdf, step: dict[str, Any]) -> None:
    """Cuts a tall page below its content."""
    import pypdfium2  # noqa: PLC0415 - only this step needs it

    if len(pdf.content.pages) != 1:
        raise Refused("singlePage: the document is longer than one page of 5,000 mm; leave the field out")
    page = pdf.content.pages[0]
    file = io.BytesIO()
    pdf.content.write(file)
    laid = pypdfium2.PdfDocument(file.getvalue())[0]
    height = laid.get_height()
    bottoms = [low for low, high in _extents(laid) if high - low < height * 0.98]
    bottom = max(0.0, min([*bottoms, height - step["height_min"]]) - step["margin_bottom"])
    for name in ("/MediaBox", "/CropBox", "/BleedBox", "/TrimBox", "/ArtBox"):
        if name in page:
            area = RectangleObject(page[name])  # type: ignore[arg-type]
            page[NameObject(name)] = RectangleObject((area.left, FloatObject(bottom), area.right, area.top))


def _extents(page: Any) -> Iterator[tuple[float, float]]:
    for item in page.get_objects(max_depth=4):
        bounds = item.get_bounds() if hasattr(item, "get_bounds") else item.get_pos()
        yield bounds[1], bounds[3]
