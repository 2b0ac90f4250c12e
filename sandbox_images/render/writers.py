"""The writer of each format."""

from collections.abc import Callable
from typing import Any

from render.model import Document


def write(document: Document, target_path: str) -> dict[str, Any]:
    """Writes a document in the format that its request asks for; gives the writer's facts."""
    output = document.request.output
    write_document: Callable[[Document, str], dict[str, Any]]
    if output == "pdf":
        from render.paged.pdf_writer import write_pdf as write_document  # noqa: PLC0415 - each writer loads its own libraries
    elif output == "png":
        from render.paged.png_writer import write_png as write_document  # noqa: PLC0415
    elif output == "docx":
        from render.docx.writer import write_docx as write_document  # noqa: PLC0415
    elif output == "xlsx":
        from render.xlsx.writer import write_xlsx as write_document  # noqa: PLC0415
    else:
        from render.pptx.writer import write_pptx as write_document  # noqa: PLC0415
    facts: dict[str, Any] = write_document(document, target_path) or {}
    return facts
