"""Font families: what office programs call the faces that the image has, and how large a face's text has to be."""

_OFFICE = {
    "carlito": "Calibri",
    "calibri": "Calibri",
    "noto sans": "Calibri",
    "liberation sans": "Arial",
    "arial": "Arial",
    "helvetica": "Arial",
    "caladea": "Cambria",
    "cambria": "Cambria",
    "liberation serif": "Times New Roman",
    "times new roman": "Times New Roman",
    "times": "Times New Roman",
    "courier": "Courier New",
    "noto serif": "Times New Roman",
    "noto sans mono": "Consolas",
    "liberation mono": "Courier New",
    "courier new": "Courier New",
    "consolas": "Consolas",
    "dejavu sans mono": "DejaVu Sans Mono",
    "monospace": "Consolas",
    "georgia": "Georgia",
    # Wider than what they are measured with.
    "verdana": "Tahoma",
    "montserrat": "Segoe UI",
    "poppins": "Segoe UI",
    "century gothic": "Segoe UI",
    "arial black": "Arial",
    # Fonts of editors, which readers of slides don't have.
    "menlo": "Consolas",
    "monaco": "Consolas",
    "fira code": "Consolas",
    "jetbrains mono": "Consolas",
    "sf mono": "Consolas",
    "source code pro": "Consolas",
    "ui-monospace": "Consolas",
    "tahoma": "Tahoma",
    "trebuchet ms": "Trebuchet MS",
    "segoe ui": "Segoe UI",
}
_TEXT_PT = {"Carlito": 11.0, "Calibri": 11.0, "Caladea": 10.5, "Cambria": 10.5, "Liberation Serif": 11.0}
"""Faces with a small x-height, and the size at which they look as large as others at 10 pt."""


def shown_face(family: str) -> str:
    """The font that readers have, of the same metrics as the one that text was measured with."""
    return _OFFICE.get(family.strip().lower(), family)


def code_face(family: str) -> str:
    """The font of code in text documents: where Consolas is not, LibreOffice takes a proportional one for it there."""
    shown = shown_face(family)
    return "Courier New" if shown == "Consolas" else shown


def text_size_pt(family: str) -> float:
    """The size of a page's text in a family, in points."""
    return _TEXT_PT.get(family, 10.0)
