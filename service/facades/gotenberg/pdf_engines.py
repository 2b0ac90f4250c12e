"""``/forms/pdfengines``: operations on uploaded PDFs."""

import re
from collections.abc import Callable

from proofbox.service.facades.gotenberg.fields import FieldReader
from proofbox.service.facades.gotenberg.form import FormFile
from proofbox.service.facades.gotenberg.pdf_fields import (
    Step,
    bookmark_steps,
    changing_steps,
    encrypting_steps,
    metadata_steps,
    read_bookmarks,
    refuse_standards,
    refuse_unsupported,
    rotating_steps,
    splitting_steps,
)
from proofbox.service.facades.gotenberg.work import Made, run_program, with_warnings
from proofbox.service.jobs.one_shot import OneShot

_DIGITS = re.compile(r"(\d{1,18})")


def _merge(reader: FieldReader) -> list[Step]:
    reader.boolean("autoIndexBookmarks")  # a merged PDF has the bookmarks of its parts
    return [{"do": "merge", "bookmarks": read_bookmarks(reader, required=False)}, *changing_steps(reader)]


def _embed(reader: FieldReader) -> list[Step]:
    if not reader.embeds():
        reader.refuse("form file 'embeds' is required")
    return [{"do": "embed"}]


OPERATIONS: dict[str, Callable[[FieldReader], list[Step]]] = {
    "merge": _merge,
    "split": lambda reader: [*splitting_steps(reader, required=True), *changing_steps(reader)],
    "flatten": lambda _: [{"do": "flatten"}],
    "rotate": lambda reader: rotating_steps(reader, required=True),
    "encrypt": lambda reader: encrypting_steps(reader, required=True),
    "embed": _embed,
    "metadata/read": lambda _: [{"do": "read_metadata"}],
    "metadata/write": lambda reader: metadata_steps(reader, required=True),
    "bookmarks/read": lambda _: [{"do": "read_bookmarks"}],
    "bookmarks/write": lambda reader: bookmark_steps(reader, required=True),
}
"""The operations: each reads the form and gives the steps of the program."""
UNSUPPORTED = ("convert", "watermark", "stamp", "optimize", "factur-x")


async def operate(run: OneShot, reader: FieldReader, operation: str) -> Made:
    """Carries out an operation on the PDFs of a form.

    Raises:
        InvalidFormError, RequestRefusedError: the form is wrong, or a PDF cannot be read.
        ServiceError: the service cannot do it now.
    """
    steps = OPERATIONS[operation](reader)
    pdfs = sorted(reader.require_files(".pdf"), key=_natural_order)
    refuse_unsupported(reader)
    refuse_standards(reader)
    reader.finish()
    made = await run_program(run, "pdf", {"steps": steps}, pdfs, reader.embeds())
    return with_warnings(made, reader.warnings)


def _natural_order(file: FormFile) -> list[tuple[bool, int, str]]:
    """Names in the order of people: ``page_2`` comes before ``page_10``."""
    parts = _DIGITS.split(file.name)
    return [(False, int(part), "") if place % 2 else (True, 0, part) for place, part in enumerate(parts)]
