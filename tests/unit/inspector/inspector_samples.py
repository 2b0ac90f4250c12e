"""Real files, made by the formats' own libraries, as bytes."""

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

import docx
import openpyxl
import pptx
import pypdf
from matplotlib.figure import Figure
from PIL import Image

PNG_HEADER = b"\x89PNG\r\n\x1a\n"


def pdf(*, inked: int = 1, blank: int = 0, password: str | None = None, owner: str | None = None) -> bytes:
    """A PDF with so many pages that have a line of ink, and then so many blank ones."""
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([1, 2])
    drawn = io.BytesIO()
    figure.savefig(drawn, format="pdf")
    writer = pypdf.PdfWriter()
    for _ in range(blank):
        writer.add_blank_page(200, 200)
    for _ in range(inked):
        writer.add_page(pypdf.PdfReader(drawn).pages[0])
    if owner is not None or password is not None:
        writer.encrypt(user_password=password or "", owner_password=owner, algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def handmade_pdf(objects: dict[int, bytes]) -> bytes:
    """A PDF of the given objects, with a right cross-reference table; object 1 is the catalogue."""
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    offsets = {}
    for number, body in objects.items():
        offsets[number] = out.tell()
        out.write(b"%d 0 obj\n%b\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % offsets[number] for number in sorted(objects))
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start))
    return out.getvalue()


def image(kind: str, size: tuple[int, int] = (40, 30), *, even: bool = False, mode: str = "RGB") -> bytes:
    """A picture in Pillow's format ``kind``: a gradient, or all of one colour."""
    picture = Image.new("RGB", size, (7, 7, 7))
    if not even:
        for x in range(size[0]):
            picture.putpixel((x, size[1] // 2), (250 - x % 250, x % 250, 9))
    picture = picture.convert(mode)
    out = io.BytesIO()
    picture.save(out, kind)
    return out.getvalue()


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def zip_with_link(name: str, target: str, more: dict[str, bytes] | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo(name)
        link.create_system = 3
        link.external_attr = 0o120777 << 16
        archive.writestr(link, target)
        for other, content in (more or {}).items():
            archive.writestr(other, content)
    return out.getvalue()


def rezipped(package: bytes, change: dict[str, Callable[[bytes], bytes] | None]) -> bytes:
    """A package with parts changed, or left out where the change is None."""
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    for name, how in change.items():
        if how is None:
            del parts[name]
        else:
            parts[name] = how(parts[name])
    return zipped(parts)


def tarred(members: list[tarfile.TarInfo | tuple[str, bytes]], *, compress: bool = False) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return gzip.compress(out.getvalue()) if compress else out.getvalue()


def tar_member(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def word(write: Callable[[Any], object] = lambda document: document.add_paragraph("Words")) -> bytes:
    document = docx.Document()
    write(document)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def excel(sheets: dict[str, list[list[Any]]]) -> bytes:
    workbook = openpyxl.Workbook()
    workbook.remove(workbook.active)
    for title, rows in sheets.items():
        sheet = workbook.create_sheet(title)
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    workbook.save(out)
    return out.getvalue()


def powerpoint(titles: list[str], draw: Callable[[Any], object] | None = None) -> bytes:
    presentation = pptx.Presentation()
    for title in titles:
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = title
        if draw is not None:
            draw(slide)
    out = io.BytesIO()
    presentation.save(out)
    return out.getvalue()
