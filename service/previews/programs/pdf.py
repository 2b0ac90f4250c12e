"""Runs in a sandbox: the pages of a PDF as pictures."""

from typing import Any

from proofbox.service.previews.programs.pages import PageWriter, add_pdf, run_program


def show_pdf(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request."""
    writer = PageWriter(request)
    return writer.answer(add_pdf(writer, request["input"]), exact=True)


if __name__ == "__main__":
    run_program(show_pdf)
