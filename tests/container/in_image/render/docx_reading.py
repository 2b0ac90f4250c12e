"""Documents made from a source, written as DOCX and read back with lxml and python-docx."""

import base64
import io
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import docx
from lxml import etree
from PIL import Image
from render.docx.writer import write_docx
from render.frontend.pipeline import open_document
from render.model import Document, Metadata, RenderRequest, Source

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


@dataclass
class Written:
    """A written file, and the document that it was made of."""

    path: Path
    document: Document
    result: dict

    @cached_property
    def body(self):
        """The root of the main part."""
        return self.part("word/document.xml")

    def part(self, name: str):
        with zipfile.ZipFile(self.path) as package:
            return etree.fromstring(package.read(name))

    def names(self) -> list[str]:
        with zipfile.ZipFile(self.path) as package:
            return package.namelist()

    @cached_property
    def opened(self):
        """The file as python-docx reads it."""
        return docx.Document(str(self.path))

    def words(self) -> list[str]:
        """The words of the main part, in order."""
        words: list[str] = []
        for paragraph in self.body.iter(W + "p"):
            text = ""
            for element in paragraph.iter(W + "t", W + "br", W + "tab", M + "t"):
                text += element.text or "" if element.tag.endswith("}t") else " "
            words += text.split()
        return words

    def styles(self) -> list[tuple[str, str]]:
        """Style and text of every paragraph outside of tables."""
        return [(paragraph.style.name, paragraph.text) for paragraph in self.opened.paragraphs if paragraph.text]


def values(root, path: str, name: str = "val") -> list[str]:
    """An attribute of all elements at a path."""
    return [element.get(W + name) for element in root.iterfind(path.replace("w:", W))]


def opened_source(source: str, root: Path, *, source_format: str = "markdown", **request) -> Document:
    options = request.pop("options", {})
    return open_document(
        RenderRequest("docx", source_format, source, str(root), "out.docx", options=options, **request)  # type: ignore[arg-type]
    )


def written(source: str, root: Path, **request) -> Written:
    """Writes a source as DOCX below a folder."""
    document = opened_source(source, root, **request)
    path = root / "out.docx"
    return Written(path, document, write_docx(document, str(path)))


def png(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "#3366aa").save(file, "PNG")
    return file.getvalue()


def png_uri(width: int, height: int) -> str:
    return "data:image/png;base64," + base64.b64encode(png(width, height)).decode()


__all__ = ["M", "Metadata", "R", "Source", "W", "Written", "opened_source", "png", "png_uri", "values", "written"]
