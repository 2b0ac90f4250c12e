"""Hints on libraries, packages and commands that a program did not find: what is there in their place."""

import re
import sys
from collections.abc import Mapping

from proofbox.contracts.image_contents import MAIN_LIBRARIES

INSTALLERS = frozenset({"pip", "pip3", "conda", "apt", "apt-get", "npm", "uv", "ensurepip"})
# What a library is imported as, where that is not its name.
_IMPORTED_AS = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "docx": "python-docx",
    "dotenv": "python-dotenv",
    "fitz": "PyMuPDF",
    "fpdf": "fpdf2",
    "PIL": "pillow",
    "pptx": "python-pptx",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "xgboost": "xgboost-cpu",
    "yaml": "PyYAML",
}
HOW_TO_LIST = "importlib.metadata.distributions() names what is installed"
_ASKS = re.compile(r"\bpip3?['\", ]+(?:list|freeze)\b")
_RENDERING = "the rendering tools, rendering_tools.write_pdf and others"
# By what is imported or called: what an image has that does the same. A name that is installed has no hint.
SUBSTITUTES = {
    **dict.fromkeys(("PyPDF2", "PyPDF3", "PyPDF4", "pikepdf"), "pypdf"),
    **dict.fromkeys(("fitz", "pymupdf", "pymupdf4llm"), "pypdfium2 for pages as pictures and text, or pdfplumber"),
    **dict.fromkeys(("camelot", "tabula"), "pdfplumber, whose pages have extract_tables()"),
    **dict.fromkeys(("markdown2", "mistune", "commonmark"), "markdown, or markdown_it"),
    **dict.fromkeys(("pdfkit", "xhtml2pdf", "wkhtmltopdf"), "weasyprint"),
    **dict.fromkeys(("xlwt", "pyexcel", "xlwings", "ezodf"), "openpyxl, or xlsxwriter"),
    **dict.fromkeys(("ujson", "orjson", "simplejson", "json5"), "json"),
    **dict.fromkeys(("toml", "tomli", "pytoml"), "tomllib"),
    **dict.fromkeys(("docx2pdf", "soffice", "libreoffice", "unoconv", "pandoc", "pypandoc"), _RENDERING),
    **dict.fromkeys(("selenium", "playwright", "pyppeteer", "imgkit", "html2image"), _RENDERING),
    **dict.fromkeys(("chromium", "google-chrome", "chrome"), _RENDERING),
    **dict.fromkeys(("torch", "tensorflow", "keras"), "sklearn, whose neural_network has MLPClassifier"),
    **dict.fromkeys(("convert", "magick", "wand"), "PIL"),
    **dict.fromkeys(("moviepy", "imageio_ffmpeg"), "cv2.VideoCapture and cv2.VideoWriter"),
    **dict.fromkeys(("geopandas", "fiona", "cartopy"), "shapely for shapes, folium for maps"),
    **dict.fromkeys(("textblob", "spacy", "gensim"), "nltk, or sklearn.feature_extraction.text"),
    **dict.fromkeys(("bokeh", "altair", "pygal"), "plotly, or matplotlib"),
    **dict.fromkeys(("dot", "graphviz", "pygraphviz", "pydot"), "networkx with matplotlib"),
    **dict.fromkeys(("prophet", "pmdarima"), "statsmodels.tsa"),
    **dict.fromkeys(("wget", "httpie"), "curl, where the call has a network"),
    "borb": "fpdf or reportlab",
    "catboost": "xgboost or lightgbm",
    "cchardet": "chardet",
    "numba": "numpy",
    "pandasql": "duckdb",
    "polars": "pandas, or duckdb",
    "pdf2image": "pypdfium2, or the command pdftoppm",
    "kaleido": "matplotlib for pictures; fig.write_html for pages of plotly",
    "docx2txt": "docx of python-docx",
    "html2text": "bs4, whose get_text() is the text of a page",
    "pytz": "zoneinfo",
    "mock": "unittest.mock",
}


def missing_module(
    name: str, libraries: Mapping[str, str] | None, *, has_index: bool, is_asked: bool = False
) -> str:
    """The hint on a module that cannot be imported; empty if it is there.

    Args:
        name: as it is imported.
        libraries: name and version of what is installed; None if that is not known.
        has_index: calls may have packages installed.
        is_asked: the program asks what is installed.
    """
    top, _, below = name.partition(".")
    if top in INSTALLERS and is_asked and libraries:
        return _installed_libraries(libraries)
    if top in INSTALLERS:
        return f"nothing can be installed while a program runs{_offer('name', has_index=has_index)}"
    if top in sys.stdlib_module_names:
        return f"{name} is not a module of Python in the sandbox"
    library = _IMPORTED_AS.get(top, top)
    if (version := _version_of(library, libraries or {})) is not None:
        return f"{name} is not a module of {library} {version}" if below else ""
    substitute = SUBSTITUTES.get(top)
    instead = f"; use {substitute}" if substitute else ""
    return f"the library {library} is not installed{instead}{_offer(library, has_index=has_index)}"


def missing_command(name: str) -> str:
    """The hint on a command that is not there; installers name what they would install."""
    if name in INSTALLERS:
        return ""
    substitute = SUBSTITUTES.get(name)
    end = f"use {substitute}" if substitute else "without a network nothing can be installed"
    return f"the command {name} is not installed; {end}"


def missing_package(name: str) -> str:
    """The hint on a package of Node.js."""
    if name.startswith((".", "/")):
        return ""  # a file of the program's own
    return f"the package {name} is not installed, and npm has no network; Node.js has its built-in modules alone"


def asks_what_is_installed(code: str) -> bool:
    """Whether a program runs ``pip list``."""
    return _ASKS.search(code) is not None


def _installed_libraries(libraries: Mapping[str, str]) -> str:
    """What is installed, in one sentence."""
    names = [name for name in MAIN_LIBRARIES if name in libraries]
    more = len(libraries) - len(names)
    return f"installed are {', '.join(names)}" + (f" and {more} more" if more > 0 else "")


def _offer(library: str, *, has_index: bool) -> str:
    return f'; call again with packages: ["{library}"]' if has_index else ""


def _version_of(library: str, libraries: Mapping[str, str]) -> str | None:
    alike = library.lower().replace("_", "-")
    return next((version for name, version in libraries.items() if name.lower().replace("_", "-") == alike), None)
