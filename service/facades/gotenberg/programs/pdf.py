"""Runs in a sandbox: the operations of ``/forms/pdfengines`` on uploaded PDFs.

Reads a request from standard input, ``{"inputs": [{"name", "path"}], "embeds": [...], "steps": [{"do": …}],
"target"}``, writes one file, a PDF, a ZIP archive or JSON, and prints one line of JSON about it.
"""

import io
import json
import os
import sys
import zipfile
from collections.abc import Callable
from typing import Any

from pypdf import PdfReader, PdfWriter
from pypdf.constants import UserAccessPermissions

from proofbox.service.facades.gotenberg.programs.pdf_layout import cut_to_content, flatten
from proofbox.service.facades.gotenberg.programs.pdf_values import (
    Pdf,
    Refused,
    page_numbers,
    read_bookmarks,
    read_metadata,
    set_bookmarks,
    write_metadata,
)

PAGES_MAX = 20_000
RESULTS_MAX = 2_000
_HEADER_BYTES = 1024
_PERMISSIONS = {
    "allowPrinting": UserAccessPermissions.PRINT | UserAccessPermissions.PRINT_TO_REPRESENTATION,
    "allowCopying": UserAccessPermissions.EXTRACT | UserAccessPermissions.EXTRACT_TEXT_AND_GRAPHICS,
    "allowModifying": UserAccessPermissions.MODIFY,
    "allowAnnotating": UserAccessPermissions.ADD_OR_MODIFY,
    "allowFillingForms": UserAccessPermissions.FILL_FORM_FIELDS,
    "allowAssembling": UserAccessPermissions.ASSEMBLE_DOC,
}


def main() -> None:
    """Answers the request of standard input."""
    request = json.load(sys.stdin)
    try:
        answer = run(request)
    except Refused as exc:
        answer = {"ok": False, "message": str(exc)}
    except MemoryError:
        answer = {
            "ok": False,
            "message": "the PDFs take more memory than a sandbox has; send fewer or smaller ones",
        }
    print(json.dumps(answer))


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Carries out a request; the fields of its answer.

    Raises:
        Refused: it cannot be carried out.
    """
    steps = request["steps"]
    pdfs = [_open(item["name"], item["path"]) for item in request["inputs"]]
    if sum(len(pdf.content.pages) for pdf in pdfs) > PAGES_MAX:
        raise Refused(f"the PDFs have more than {PAGES_MAX:,} pages; send fewer")
    reads = {"read_metadata": read_metadata, "read_bookmarks": read_bookmarks}
    if steps and steps[0]["do"] in reads:
        shown = {pdf.name: reads[steps[0]["do"]](pdf) for pdf in pdfs}
        with open(request["target"], "w", encoding="utf-8") as file:
            json.dump(shown, file, ensure_ascii=False)
        return {"ok": True, "kind": "json", "name": ""}
    for step in steps:
        try:
            pdfs = _STEPS[step["do"]](pdfs, {**step, "embeds": request.get("embeds", ())})
        except (Refused, MemoryError):
            raise
        except Exception as exc:
            raise Refused(f"{pdfs[0].name}: '{step['do']}' failed: {type(exc).__name__}: {exc}"[:300]) from exc
    return _write(pdfs, request["target"])


def _open(name: str, path: str) -> Pdf:
    with open(path, "rb") as file:
        if b"%PDF-" not in file.read(_HEADER_BYTES):
            raise Refused(f"{name}: is not a PDF")
    try:
        reader = PdfReader(path, strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Refused(f"{name}: is encrypted; remove its password first")
        if not reader.pages:
            raise Refused(f"{name}: has no pages")
        return Pdf(name, PdfWriter(clone_from=reader))
    except (Refused, MemoryError):
        raise
    except RecursionError as exc:
        raise Refused(f"{name}: is nested too deep") from exc
    except Exception as exc:
        raise Refused(f"{name}: is not a PDF that can be read ({type(exc).__name__}: {exc})"[:300]) from exc


def _write(pdfs: list[Pdf], target: str) -> dict[str, Any]:
    if len(pdfs) == 1:
        with open(target, "wb") as file:
            file.write(_bytes_of(pdfs[0]))
        return {"ok": True, "kind": "pdf", "name": pdfs[0].name}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for pdf in pdfs:
            archive.writestr(zipfile.ZipInfo(pdf.name, (1980, 1, 1, 0, 0, 0)), _bytes_of(pdf))
    return {"ok": True, "kind": "zip", "name": ""}


def _bytes_of(pdf: Pdf) -> bytes:
    file = io.BytesIO()
    try:
        pdf.content.write(file)
    except MemoryError:
        raise
    except Exception as exc:
        raise Refused(f"{pdf.name}: cannot be written ({type(exc).__name__}: {exc})"[:300]) from exc
    return file.getvalue()


def _each(change: Callable[[Pdf, dict[str, Any]], None]) -> Callable[[list[Pdf], dict[str, Any]], list[Pdf]]:
    """A step that changes each PDF for itself."""

    def apply(pdfs: list[Pdf], step: dict[str, Any]) -> list[Pdf]:
        for pdf in pdfs:
            change(pdf, step)
        return pdfs

    return apply


def _merge(pdfs: list[Pdf], step: dict[str, Any]) -> list[Pdf]:
    merged = Pdf("merged.pdf", PdfWriter())
    bookmarks: list[dict[str, Any]] = []
    given = step.get("bookmarks")
    for pdf in pdfs:
        first = len(merged.content.pages)
        if isinstance(given, dict):
            bookmarks += _moved(given.get(pdf.name, []), first)
        merged.content.append(pdf.content, import_outline=True)  # type: ignore[arg-type]  # it takes writers too
    if isinstance(given, list):
        bookmarks = given
    if bookmarks:
        set_bookmarks(merged, {"bookmarks": bookmarks})
    return [merged]


def _moved(rows: list[dict[str, Any]], pages: int) -> list[dict[str, Any]]:
    return [
        {**row, "page": row["page"] + pages, "children": _moved(row.get("children") or [], pages)} for row in rows
    ]


def _split(pdfs: list[Pdf], step: dict[str, Any]) -> list[Pdf]:
    parts: list[Pdf] = []
    for pdf in pdfs:
        stem, count = os.path.splitext(pdf.name)[0], len(pdf.content.pages)
        if step["mode"] == "intervals":
            groups = [range(first, min(first + step["span"], count)) for first in range(0, count, step["span"])]
        else:
            numbers = page_numbers(step["span"], count, "splitSpan")
            if step["unify"]:
                parts.append(_part(pdf, pdf.name, numbers))
                continue
            groups = [range(number, number + 1) for number in numbers]
        if len(parts) + len(groups) > RESULTS_MAX:
            raise Refused(f"splitSpan: gives more than {RESULTS_MAX:,} files; take a larger one")
        parts += [_part(pdf, f"{stem}_{place}.pdf", list(group)) for place, group in enumerate(groups)]
    return parts


def _part(pdf: Pdf, name: str, numbers: list[int]) -> Pdf:
    part = PdfWriter()
    for number in numbers:
        part.add_page(pdf.content.pages[number])
    return Pdf(name, part)


def _rotate(pdf: Pdf, step: dict[str, Any]) -> None:
    pages = pdf.content.pages
    numbers = page_numbers(step["pages"], len(pages), "rotatePages") if step["pages"] else range(len(pages))
    for number in sorted(set(numbers)):
        pages[number].rotate(step["angle"])


def _scale(pdf: Pdf, step: dict[str, Any]) -> None:
    for page in pdf.content.pages:
        page.scale_by(step["factor"])


def _encrypt(pdf: Pdf, step: dict[str, Any]) -> None:
    flags = UserAccessPermissions.all()
    for name, bits in _PERMISSIONS.items():
        if not step["permissions"].get(name, True):
            flags &= ~bits
    owner = step["owner"] or None
    pdf.content.encrypt(step["user"], owner, permissions_flag=flags, algorithm="AES-256")


def _embed(pdf: Pdf, step: dict[str, Any]) -> None:
    for item in step["embeds"]:
        with open(item["path"], "rb") as file:
            pdf.content.add_attachment(item["name"], file.read())


_STEPS: dict[str, Callable[[list[Pdf], dict[str, Any]], list[Pdf]]] = {
    "merge": _merge,
    "split": _split,
    "rotate": _each(_rotate),
    "scale": _each(_scale),
    "single_page": _each(cut_to_content),
    "flatten": _each(flatten),
    "metadata": _each(write_metadata),
    "bookmarks": _each(set_bookmarks),
    "embed": _each(_embed),
    "encrypt": _each(_encrypt),
}

if __name__ == "__main__":
    main()
