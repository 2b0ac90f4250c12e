"""PDFs that tests send, and what is read of those that come back."""

import io
import zipfile

from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DecodedStreamObject,
    DictionaryObject,
    NameObject,
    NumberObject,
    RectangleObject,
    TextStringObject,
)

_FONT = DictionaryObject(
    {
        NameObject("/Type"): NameObject("/Font"),
        NameObject("/Subtype"): NameObject("/Type1"),
        NameObject("/BaseFont"): NameObject("/Helvetica"),
    }
)
_RESOURCES = DictionaryObject({NameObject("/Font"): DictionaryObject({NameObject("/F1"): _FONT})})


def _stream(content: bytes) -> DecodedStreamObject:
    stream = DecodedStreamObject()
    stream.set_data(content)
    return stream


def _add_page(writer: PdfWriter, text: str) -> PageObject:
    page = writer.add_blank_page(300, 200)
    page[NameObject("/Resources")] = _RESOURCES
    page[NameObject("/Contents")] = writer._add_object(
        _stream(b"BT /F1 12 Tf 20 150 Td (%b) Tj ET" % text.encode())
    )
    return page


def _bytes_of(writer: PdfWriter) -> bytes:
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def pdf_of(*texts: str, title: str = "") -> bytes:
    """A PDF with a page for each text."""
    writer = PdfWriter()
    for text in texts:
        _add_page(writer, text)
    if title:
        writer.add_metadata({"/Title": title})
    return _bytes_of(writer)


def form_pdf(value: str) -> bytes:
    """A PDF with a form field and its value."""
    writer = PdfWriter()
    page = _add_page(writer, "Name")
    shown = _stream(b"BT /F1 12 Tf 2 6 Td (%b) Tj ET" % value.encode())
    shown[NameObject("/Type")] = NameObject("/XObject")
    shown[NameObject("/Subtype")] = NameObject("/Form")
    shown[NameObject("/BBox")] = RectangleObject((0, 0, 200, 20))
    shown[NameObject("/Resources")] = _RESOURCES
    field = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Annot"),
            NameObject("/Subtype"): NameObject("/Widget"),
            NameObject("/FT"): NameObject("/Tx"),
            NameObject("/T"): TextStringObject("name"),
            NameObject("/V"): TextStringObject(value),
            NameObject("/F"): NumberObject(4),
            NameObject("/Rect"): RectangleObject((20, 80, 220, 100)),
            NameObject("/AP"): DictionaryObject({NameObject("/N"): writer._add_object(shown)}),
        }
    )
    fields = ArrayObject([writer._add_object(field)])
    page[NameObject("/Annots")] = fields
    writer.root_object[NameObject("/AcroForm")] = DictionaryObject({NameObject("/Fields"): fields})
    return _bytes_of(writer)


def encrypted(content: bytes, user: str, owner: str) -> bytes:
    writer = PdfWriter(clone_from=io.BytesIO(content))
    writer.encrypt(user, owner, algorithm="AES-256")
    return _bytes_of(writer)


def reader_of(content: bytes) -> PdfReader:
    return PdfReader(io.BytesIO(content))


def texts_of(content: bytes) -> list[str]:
    return [page.extract_text().strip() for page in reader_of(content).pages]


def members_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}
