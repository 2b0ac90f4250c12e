"""Which checks of a contract apply to which formats, and what is wrong with one before anything runs."""

from encodings.aliases import aliases

from proofbox.contracts.media_types import canonical_mime, extension_of, mime_of_name

_PAGED = ("pdf", "docx", "pptx")
_TABLES = ("csv", "tsv", "xlsx", "parquet", "jsonl", "ndjson")
_IMAGES = ("png", "jpg", "jpeg", "gif", "webp", "bmp", "tif", "tiff", "svg")
_TEXTS = (
    *("csv", "tsv", "txt", "log", "ini", "cfg", "md", "markdown", "rst", "tex", "mmd", "sh", "sql", "css", "js"),
    *("mjs", "ts"),
)

EXTENSIONS_OF_CHECK: dict[str, tuple[str, ...]] = {
    "min_pages": _PAGED,
    "max_pages": _PAGED,
    "min_rows": _TABLES,
    "columns": _TABLES,
    "json_schema": ("json", "geojson", "jsonc", "code-workspace", "ipynb", "jsonl", "ndjson"),
    "min_width": _IMAGES,
    "min_height": _IMAGES,
    "encoding": _TEXTS,
    "password": ("pdf",),
}
"""The extensions that a check applies to; one that is not named here applies to every file.

The inspector of the sandbox image has the same as checks of its families of formats; a test compares the two.
"""

_NO_TEXT = frozenset({"base64_codec", "bz2_codec", "hex_codec", "quopri_codec", "rot_13", "uu_codec", "zlib_codec"})
_OF_WINDOWS = frozenset({"mbcs", "oem"})
ENCODINGS = frozenset(
    {*aliases, *aliases.values(), "utf_8_sig", "koi8_u", "cp720", "cp737", "cp856", "cp874", "cp875", "cp1006"}
    - {name for name, codec in aliases.items() if codec in _NO_TEXT | _OF_WINDOWS}
    - _NO_TEXT
    - _OF_WINDOWS
)
"""The names of text encodings that Python has, in small letters and with underscores."""

_WILDCARDS = "*?[]"


def encoding_name(text: str) -> str | None:
    """The name of an encoding as the codec is called; None if there is none of that name."""
    name = text.strip().lower().replace("-", "_").replace(" ", "_")
    return name if name in ENCODINGS else None


def misfit(check: str, value: object, rel: str, *, is_glob: bool) -> str | None:
    """Why a check can hold for no file of a name, as a clause about the check; None if it can.

    Args:
        check: the check's name.
        value: what it asks for.
        rel: the promised name, or the pattern of promised names.
        is_glob: whether ``rel`` is a pattern; of one that leaves the extension open nothing is known.
    """
    name = _known_name(rel) if is_glob else rel
    if name is None:
        return None
    extension = extension_of(name)
    kind = f".{extension} files" if extension else "files without an extension"
    applies_to = EXTENSIONS_OF_CHECK.get(check)
    if applies_to is not None and extension not in applies_to:
        return f"{check} does not apply to {kind}; it applies to {', '.join('.' + each for each in applies_to)}"
    mime = mime_of_name(name)
    if check == "mime" and isinstance(value, str) and canonical_mime(value) != mime:
        return f"mime '{value}' cannot hold: {kind} are {mime}"
    return None


def _known_name(pattern: str) -> str | None:
    """A name with the extension that all matches of a pattern have; None if they may have several."""
    last = pattern.rsplit("/", 1)[-1]
    tail = last[max(last.rfind(wildcard) for wildcard in _WILDCARDS) + 1 :]
    return f"x{tail}" if "." in tail else None
