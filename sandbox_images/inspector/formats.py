"""The table of formats: which extension promises which media type, and which checks it can answer.

This module imports nothing heavy, so the service can read it beside its own table. An extension that is not
listed is ``application/octet-stream``: such a file is only ever asked whether it holds anything.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """What an extension promises.

    Attributes:
        mime: The one media type that the extension stands for.
        family: The module of ``families`` that opens such a file.
        name: What a file of this kind is called in a sentence, with its article.
    """

    mime: str
    family: str
    name: str


OCTET_STREAM = Format("application/octet-stream", "binary", "a binary file")

_OOXML = "application/vnd.openxmlformats-officedocument."

FORMATS: dict[str, Format] = {
    "pdf": Format("application/pdf", "pdf", "a PDF"),
    "png": Format("image/png", "image", "a PNG image"),
    "jpg": Format("image/jpeg", "image", "a JPEG image"),
    "jpeg": Format("image/jpeg", "image", "a JPEG image"),
    "gif": Format("image/gif", "image", "a GIF image"),
    "webp": Format("image/webp", "image", "a WebP image"),
    "bmp": Format("image/bmp", "image", "a BMP image"),
    "tif": Format("image/tiff", "image", "a TIFF image"),
    "tiff": Format("image/tiff", "image", "a TIFF image"),
    "svg": Format("image/svg+xml", "svg", "an SVG drawing"),
    "xml": Format("application/xml", "xml", "an XML document"),
    "xsd": Format("application/xml", "xml", "an XML document"),
    "gpx": Format("application/gpx+xml", "xml", "a GPX track"),
    "kml": Format("application/vnd.google-earth.kml+xml", "xml", "a KML document"),
    "docx": Format(_OOXML + "wordprocessingml.document", "office.word", "a Word document"),
    "xlsx": Format(_OOXML + "spreadsheetml.sheet", "office.excel", "an Excel workbook"),
    "pptx": Format(_OOXML + "presentationml.presentation", "office.powerpoint", "a PowerPoint presentation"),
    "csv": Format("text/csv", "delimited", "a CSV table"),
    "tsv": Format("text/tab-separated-values", "delimited", "a TSV table"),
    "parquet": Format("application/vnd.apache.parquet", "parquet", "a Parquet table"),
    "json": Format("application/json", "json_document", "a JSON document"),
    "geojson": Format("application/geo+json", "json_document", "a GeoJSON document"),
    "ipynb": Format("application/x-ipynb+json", "notebook", "a notebook"),
    "jsonl": Format("application/x-ndjson", "json_lines", "a file of JSON lines"),
    "ndjson": Format("application/x-ndjson", "json_lines", "a file of JSON lines"),
    "html": Format("text/html", "html", "an HTML page"),
    "htm": Format("text/html", "html", "an HTML page"),
    "xhtml": Format("application/xhtml+xml", "html", "an XHTML page"),
    "zip": Format("application/zip", "zip_archive", "a ZIP archive"),
    "tar": Format("application/x-tar", "tar_archive", "a tar archive"),
    "tar.gz": Format("application/gzip", "tar_archive", "a gzipped tar archive"),
    "tgz": Format("application/gzip", "tar_archive", "a gzipped tar archive"),
    "txt": Format("text/plain", "text", "a text file"),
    "log": Format("text/plain", "text", "a text file"),
    "ini": Format("text/plain", "text", "a text file"),
    "cfg": Format("text/plain", "text", "a text file"),
    "md": Format("text/markdown", "text", "a Markdown text"),
    "markdown": Format("text/markdown", "text", "a Markdown text"),
    "rst": Format("text/x-rst", "text", "a reStructuredText"),
    "tex": Format("text/x-tex", "text", "a TeX source"),
    "mmd": Format("text/vnd.mermaid", "text", "a Mermaid diagram"),
    "py": Format("text/x-python", "python_source", "a Python source"),
    "pyi": Format("text/x-python", "python_source", "a Python source"),
    "sh": Format("text/x-shellscript", "text", "a shell script"),
    "sql": Format("application/sql", "text", "an SQL script"),
    "css": Format("text/css", "text", "a style sheet"),
    "js": Format("text/javascript", "text", "a JavaScript source"),
    "mjs": Format("text/javascript", "text", "a JavaScript source"),
    "ts": Format("text/x-typescript", "text", "a TypeScript source"),
    "yaml": Format("application/yaml", "yaml_document", "a YAML text"),
    "yml": Format("application/yaml", "yaml_document", "a YAML text"),
    "toml": Format("application/toml", "toml_document", "a TOML text"),
    "jsonc": Format("application/json", "json_document", "a JSON document"),
    "code-workspace": Format("application/json", "json_document", "a JSON document"),
    "gz": Format("application/gzip", "compressed", "a gzip file"),
    "bz2": Format("application/x-bzip2", "compressed", "a bzip2 file"),
    "xz": Format("application/x-xz", "compressed", "an xz file"),
    "tar.bz2": Format("application/x-bzip2", "tar_archive", "a tar archive packed by bzip2"),
    "tbz2": Format("application/x-bzip2", "tar_archive", "a tar archive packed by bzip2"),
    "tar.xz": Format("application/x-xz", "tar_archive", "a tar archive packed by xz"),
    "txz": Format("application/x-xz", "tar_archive", "a tar archive packed by xz"),
    "npy": Format("application/x-npy", "numpy_array", "a NumPy array"),
    "npz": Format("application/x-npz", "numpy_array", "an archive of NumPy arrays"),
    "mp4": Format("video/mp4", "media", "an MP4 file"),
    "m4v": Format("video/mp4", "media", "an MP4 file"),
    "m4a": Format("audio/mp4", "media", "an MP4 file"),
    "mov": Format("video/quicktime", "media", "a QuickTime film"),
    "webm": Format("video/webm", "media", "a WebM film"),
    "mkv": Format("video/x-matroska", "media", "a Matroska film"),
    "avi": Format("video/x-msvideo", "media", "an AVI film"),
    "mp3": Format("audio/mpeg", "mp3", "an MP3 file"),
    "wav": Format("audio/wav", "media", "a WAV file"),
    "ogg": Format("audio/ogg", "media", "an Ogg file"),
    "flac": Format("audio/flac", "media", "a FLAC file"),
    "epub": Format("application/epub+zip", "epub", "an EPUB book"),
    "odt": Format("application/vnd.oasis.opendocument.text", "office.open_document", "an OpenDocument text"),
    "ods": Format(
        "application/vnd.oasis.opendocument.spreadsheet", "office.open_document", "an OpenDocument spreadsheet"
    ),
    "odp": Format(
        "application/vnd.oasis.opendocument.presentation", "office.open_document", "an OpenDocument presentation"
    ),
    "rtf": Format("application/rtf", "rich_text", "an RTF document"),
    "doc": Format("application/msword", "office.old_office", "an old Word document"),
    "xls": Format("application/vnd.ms-excel", "office.old_office", "an old Excel workbook"),
    "ppt": Format("application/vnd.ms-powerpoint", "office.old_office", "an old PowerPoint presentation"),
    "sqlite": Format("application/vnd.sqlite3", "sqlite_database", "an SQLite database"),
    "sqlite3": Format("application/vnd.sqlite3", "sqlite_database", "an SQLite database"),
    "db": Format("application/vnd.sqlite3", "sqlite_database", "an SQLite database"),
    "ics": Format("text/calendar", "component_text", "a calendar"),
    "vcf": Format("text/vcard", "component_text", "an address card"),
    "eml": Format("message/rfc822", "email_message", "an e-mail message"),
    "ttf": Format("font/ttf", "font", "a TrueType font"),
    "otf": Format("font/otf", "font", "an OpenType font"),
    "woff": Format("font/woff", "font", "a WOFF font"),
    "woff2": Format("font/woff2", "font", "a WOFF2 font"),
}

MIME_ALIASES: dict[str, str] = {
    "application/x-pdf": "application/pdf",
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/x-ms-bmp": "image/bmp",
    "image/x-bmp": "image/bmp",
    "image/tif": "image/tiff",
    "image/svg": "image/svg+xml",
    "text/xml": "application/xml",
    "application/csv": "text/csv",
    "text/x-csv": "text/csv",
    "text/tsv": "text/tab-separated-values",
    "application/parquet": "application/vnd.apache.parquet",
    "application/x-parquet": "application/vnd.apache.parquet",
    "text/json": "application/json",
    "application/jsonl": "application/x-ndjson",
    "application/jsonlines": "application/x-ndjson",
    "application/x-jsonlines": "application/x-ndjson",
    "application/ndjson": "application/x-ndjson",
    "application/x-zip-compressed": "application/zip",
    "application/x-gzip": "application/gzip",
    "application/x-compressed-tar": "application/gzip",
    "application/x-gtar": "application/x-tar",
    "text/x-markdown": "text/markdown",
    "text/x-log": "text/plain",
    "application/x-python": "text/x-python",
    "application/x-python-code": "text/x-python",
    "application/x-sh": "text/x-shellscript",
    "text/x-sh": "text/x-shellscript",
    "text/x-sql": "application/sql",
    "application/javascript": "text/javascript",
    "application/x-javascript": "text/javascript",
    "application/typescript": "text/x-typescript",
    "text/typescript": "text/x-typescript",
    "application/x-tex": "text/x-tex",
    "text/yaml": "application/yaml",
    "text/x-yaml": "application/yaml",
    "application/x-yaml": "application/yaml",
    "text/x-toml": "application/toml",
    "application/jsonc": "application/json",
    "application/bzip2": "application/x-bzip2",
    "application/xz": "application/x-xz",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-m4a": "audio/mp4",
    "audio/x-flac": "audio/flac",
    "application/ogg": "audio/ogg",
    "video/x-m4v": "video/mp4",
    "video/avi": "video/x-msvideo",
    "text/rtf": "application/rtf",
    "application/x-sqlite3": "application/vnd.sqlite3",
    "text/x-vcard": "text/vcard",
    "application/font-woff": "font/woff",
}
"""Other names of the same media type, each pointing to the one in ``FORMATS``."""

_EVERY_FORMAT = frozenset({"mime", "not_blank"})
_PAGED = _EVERY_FORMAT | {"min_pages", "max_pages"}
_TABLE = _EVERY_FORMAT | {"min_rows", "columns"}
_SIZED = _EVERY_FORMAT | {"min_width", "min_height"}

CHECKS_BY_FAMILY: dict[str, frozenset[str]] = {
    "pdf": _PAGED | {"password"},
    "office.word": _PAGED,
    "office.powerpoint": _PAGED,
    "image": _SIZED,
    "svg": _SIZED,
    "office.excel": _TABLE,
    "delimited": _TABLE | {"encoding"},
    "parquet": _TABLE,
    "json_document": _EVERY_FORMAT | {"json_schema"},
    "json_lines": _TABLE | {"json_schema"},
    "xml": _EVERY_FORMAT,
    "html": _EVERY_FORMAT,
    "zip_archive": _EVERY_FORMAT,
    "tar_archive": _EVERY_FORMAT,
    "compressed": _EVERY_FORMAT,
    "numpy_array": _EVERY_FORMAT,
    "media": _EVERY_FORMAT,
    "mp3": _EVERY_FORMAT,
    "epub": _EVERY_FORMAT,
    "office.open_document": _EVERY_FORMAT,
    "rich_text": _EVERY_FORMAT,
    "office.old_office": _EVERY_FORMAT,
    "sqlite_database": _EVERY_FORMAT,
    "font": _EVERY_FORMAT,
    "notebook": _EVERY_FORMAT | {"json_schema"},
    "python_source": _EVERY_FORMAT,
    "yaml_document": _EVERY_FORMAT,
    "toml_document": _EVERY_FORMAT,
    "component_text": _EVERY_FORMAT,
    "email_message": _EVERY_FORMAT,
    "text": _EVERY_FORMAT | {"encoding"},
    "binary": _EVERY_FORMAT,
}
"""The checks that each family can answer; any other one is a problem of the contract."""

CHECKS_JUDGED_ELSEWHERE = frozenset({"min_bytes", "max_bytes", "glob", "min_count", "max_count"})
"""Checks that need no look inside the file; the service answers them itself."""

_LONGEST_EXTENSION_PARTS = 2


def extension_of(path: str) -> str:
    """Return the longest known extension of a path, lower-cased and without its dot.

    ``a.tar.gz`` gives ``tar.gz``, ``a.b.csv`` gives ``csv``, ``.csv`` and ``README`` give an empty string;
    an extension that is not in the table is returned as its last part.
    """
    parts = path.rsplit("/", 1)[-1].lower().lstrip(".").split(".")
    for count in range(_LONGEST_EXTENSION_PARTS, 0, -1):
        extension = ".".join(parts[-count:])
        if len(parts) > count and extension in FORMATS:
            return extension
    return parts[-1] if len(parts) > 1 else ""


def format_of(path: str) -> Format:
    """Return the format that a path's extension promises; ``OCTET_STREAM`` for an unknown one."""
    return FORMATS.get(extension_of(path), OCTET_STREAM)


def canonical_mime(mime: str) -> str:
    """Return the table's name of a media type: lower case, parameters dropped, aliases resolved."""
    bare = mime.split(";", 1)[0].strip().lower()
    return MIME_ALIASES.get(bare, bare)
