"""The structure tree of a tagged PDF with its text, as PDFium reads it."""

import ctypes
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium

_SPANS = ("RowSpan", "ColSpan")


def tree(path: Path) -> list[Any]:
    """The tree as ``["Root", {}, [[role, {attribute: value}, [child or text, …]], …]]``, page after page.

    An element that goes on on another page is there once more. The attributes are ``Alt``, ``RowSpan`` and
    ``ColSpan``. Of a file that cannot be read the root holds why, as text; one without tags has no children.
    """
    root: list[Any] = ["Root", {}, []]
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        root[2].append(f"cannot be read: {error}")
        return root
    for page in document:
        structure = pdfium.FPDF_StructTree_GetForPage(page)
        if not structure:
            continue
        texts = _texts(page)
        for index in range(pdfium.FPDF_StructTree_CountChildren(structure)):
            child = pdfium.FPDF_StructTree_GetChildAtIndex(structure, index)
            if child:
                root[2].append(_element(child, texts))
        pdfium.FPDF_StructTree_Close(structure)
    document.close()
    return root


def _element(element: Any, texts: dict[int, str]) -> list[Any]:
    attributes: dict[str, Any] = {}
    if alternative := _string(pdfium.FPDF_StructElement_GetAltText, element):
        attributes["Alt"] = alternative
    for index in range(pdfium.FPDF_StructElement_GetAttributeCount(element)):
        given = pdfium.FPDF_StructElement_GetAttributeAtIndex(element, index)
        for name in _SPANS:
            value = pdfium.FPDF_StructElement_Attr_GetValue(given, name.encode())
            number = ctypes.c_float()
            if value and pdfium.FPDF_StructElement_Attr_GetNumberValue(value, number):
                attributes[name] = int(number.value)
    children: list[Any] = []
    for index in range(pdfium.FPDF_StructElement_CountChildren(element)):
        child = pdfium.FPDF_StructElement_GetChildAtIndex(element, index)
        if child:
            children.append(_element(child, texts))
        elif (content := pdfium.FPDF_StructElement_GetChildMarkedContentID(element, index)) >= 0:
            children.append(texts.get(content, ""))
    return [_string(pdfium.FPDF_StructElement_GetType, element), attributes, children]


def _texts(page: Any) -> dict[int, str]:
    """The text of each marked content of a page."""
    texts: dict[int, str] = defaultdict(str)
    letters = page.get_textpage()
    content = -1
    for index in range(pdfium.FPDFText_CountChars(letters)):
        # A space that PDFium makes up belongs to the text before it.
        if not pdfium.FPDFText_IsGenerated(letters, index):
            content = pdfium.FPDFPageObj_GetMarkedContentID(pdfium.FPDFText_GetTextObject(letters, index))
        texts[content] += chr(pdfium.FPDFText_GetUnicode(letters, index))
    return texts


def _string(read: Callable[..., int], *handles: Any) -> str:
    """A string of PDFium's: asked for its length first, in UTF-16 with a zero at its end."""
    length = read(*handles, None, 0)
    buffer = (ctypes.c_ushort * (length // 2 + 1))()
    read(*handles, buffer, length)
    return bytes(buffer)[: max(length - 2, 0)].decode("utf-16-le", errors="replace")
