"""What the sandbox image has: the part of the catalogue that names libraries, commands and languages."""

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict

VERSIONS_NAMED_MAX = 22  # of the main libraries; the others are named without
# What programs of models import most, first. The names are those of the distributions, as `pip list` shows them.
MAIN_LIBRARIES = (
    "numpy",
    "pandas",
    "scipy",
    "scikit-learn",
    "statsmodels",
    "sympy",
    "matplotlib",
    "seaborn",
    "plotly",
    "networkx",
    "duckdb",
    "nltk",
    "xgboost-cpu",
    "opencv-python-headless",
    "pillow",
    "openpyxl",
    "xlsxwriter",
    "pyarrow",
    "python-docx",
    "python-pptx",
    "pypdf",
    "pdfplumber",
    "reportlab",
    "weasyprint",
    "beautifulsoup4",
    "lxml",
    "requests",
    "jinja2",
    "tabulate",
    "pyyaml",
    "jsonschema",
    "docxtpl",
    "xlrd",
    "tqdm",
    "faker",
    "sqlalchemy",
    "scikit-image",
)
# Beyond what every Debian has.
MAIN_COMMANDS = (
    "jq",
    "sqlite3",
    "zip",
    "unzip",
    "pdftotext",
    "file",
    "tree",
    "less",
    "patch",
    "bc",
    "xxd",
    "git",
    "curl",
)


class ImageContents(BaseModel):
    """What a program finds in the sandbox image."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, frozen=True)

    python: str
    """The version of Python."""
    libraries: dict[str, str]
    """Version by name of every installed Python library, by name."""
    commands: list[str]
    """Every command that a shell finds, by name."""
    languages: list[str]
    """The languages that it can run."""


def named_libraries(libraries: Mapping[str, str]) -> str:
    """What comes with Python: the main libraries, the first with their versions, and how many more there are."""
    if not libraries:
        return "without further libraries"
    named = [name for name in MAIN_LIBRARIES if name in libraries]
    with_version = [f"{name} {_short(libraries[name])}" for name in named[:VERSIONS_NAMED_MAX]]
    shown = ", ".join([*with_version, *named[VERSIONS_NAMED_MAX:]])
    more = len(libraries) - len(named)
    if not named:
        return f"with {more} libraries (GET /v1/tools)"
    return f"with {shown} and {more} more (GET /v1/tools)" if more else f"with {shown}"


def named_commands(commands: Iterable[str]) -> str:
    """The main commands that are there."""
    there = set(commands)
    return ", ".join(name for name in MAIN_COMMANDS if name in there)


def _short(version: str) -> str:
    """The first two parts of a version: what an interface depends on."""
    return ".".join(version.split(".")[:2])
