"""Which libraries a sandbox should have in memory before its call: chosen by what the call will import.

A wrong choice costs time and nothing else, so programs are scanned and not parsed: Python's own parser takes
seconds and gigabytes on purpose-made code of a few hundred kilobytes, and refuses the syntax of newer versions.
"""

import re
from enum import StrEnum


class PreloadSet(StrEnum):
    """What the interpreter that becomes the program has imported while it waited."""

    BARE = "bare"
    DOCUMENTS = "documents"
    DATA = "data"
    SCIENCE = "science"


_DATA = ("numpy", "pandas", "matplotlib.pyplot", "openpyxl")
PREIMPORTED: dict[PreloadSet, tuple[str, ...]] = {
    PreloadSet.BARE: (),
    PreloadSet.DOCUMENTS: ("weasyprint", "docx", "pptx"),
    PreloadSet.DATA: _DATA,
    PreloadSet.SCIENCE: (
        *(*_DATA, "scipy.stats", "scipy.optimize", "seaborn", "sklearn.ensemble", "sklearn.linear_model"),
        *("sklearn.cluster", "sklearn.model_selection", "sklearn.pipeline", "statsmodels.api"),
    ),
}
"""The modules of each flavour, in the order in which they are imported."""

# What importing each takes in the image, in ms on the machine of docs/speed.md: what a program is spared.
_IMPORT_MS = {
    "statsmodels": 1500,
    "seaborn": 1300,
    "sklearn": 1100,
    "scipy": 600,
    "matplotlib": 340,
    "weasyprint": 290,
    "pandas": 250,
    "openpyxl": 150,
    "pptx": 150,
    "docx": 65,
    "numpy": 60,
}
_PACKAGES = {
    flavour: {module.partition(".")[0] for module in modules} for flavour, modules in PREIMPORTED.items() if modules
}
# Longer programs are data for the most part; this bounds what scanning costs, to a few milliseconds.
_SCANNED_BYTES_MAX = 128 * 1024

# What libraries look at when they are imported. A program that may change it has to import them itself.
_CHANGES_IMPORTS = re.compile(
    rb"\b(?:MPLBACKEND|MPLCONFIGDIR|MATPLOTLIBRC|matplotlibrc|OMP_|OPENBLAS_|GOTO_|MKL_|BLIS_|NPY_|NUMPY_|PANDAS_"
    rb"|OPENPYXL_|SCIPY_|SKLEARN_|JOBLIB_|LOKY_|ARROW_|FONTCONFIG_|XDG_|sys\.path|sys\.modules|sys\.meta_path|__import__\b)"
)
# What stands where a statement can begin; within a string it may mean nothing. Quantifiers are possessive, so that
# the time grows with the length of the program and not faster.
_IMPORTS = re.compile(
    rb"""
    (?:^|[;:])[\ \t\f]*+(?:
        from[\ \t]++(?P<package>\w++)[\w.]*+[\ \t]++import\b
        | import[\ \t]++(?P<modules>(?:[\w\ \t.,]++|\\\r?\n)++)
    )
    """,
    re.VERBOSE | re.MULTILINE,
)
_LISTED = re.compile(rb"(?:^|,)\s*+(\w++)")


def flavour_of(language: str, code: bytes) -> PreloadSet:
    """The flavour that serves a program best; ``language`` and ``code`` as in `Job`."""
    if language == "render":
        return PreloadSet.DOCUMENTS
    if language != "python" or len(code) > _SCANNED_BYTES_MAX or _CHANGES_IMPORTS.search(code):
        return PreloadSet.BARE
    imported = _list_imported(code)
    spared = {flavour: sum(_IMPORT_MS[name] for name in imported & names) for flavour, names in _PACKAGES.items()}
    best = max(spared, key=spared.__getitem__)
    return best if spared[best] else PreloadSet.BARE


def _list_imported(code: bytes) -> set[str]:
    """The packages we know of that a program names in import statements, wherever they stand."""
    found: set[bytes] = set()
    for statement in _IMPORTS.finditer(code):
        if statement["package"]:
            found.add(statement["package"])
        else:
            found.update(_LISTED.findall(statement["modules"].replace(b"\\", b" ")))
    return {name for name in _IMPORT_MS if name.encode() in found}
