"""Media types by file name, and how each is carried in a content block."""

import mimetypes
import re

_OOXML = "application/vnd.openxmlformats-officedocument."
OCTET_STREAM = "application/octet-stream"
MIME_CHARS_MAX = 127
_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+")  # the names of RFC 6838
# An instance of its own: the functions of the module also read the tables of the machine.
_OTHER_TYPES = mimetypes.MimeTypes()
_MIME_BY_ENCODING = {"br": "application/x-brotli", "compress": "application/x-compress"}

# One line per format; the inspector of the sandbox image has the same table with its checks, and a test compares.
MIME_BY_EXTENSION = {
    "pdf": "application/pdf",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "svg": "image/svg+xml",
    "xml": "application/xml",
    "xsd": "application/xml",
    "gpx": "application/gpx+xml",
    "kml": "application/vnd.google-earth.kml+xml",
    "docx": _OOXML + "wordprocessingml.document",
    "xlsx": _OOXML + "spreadsheetml.sheet",
    "pptx": _OOXML + "presentationml.presentation",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "geojson": "application/geo+json",
    "ipynb": "application/x-ipynb+json",
    "jsonl": "application/x-ndjson",
    "ndjson": "application/x-ndjson",
    "html": "text/html",
    "htm": "text/html",
    "xhtml": "application/xhtml+xml",
    "zip": "application/zip",
    "tar": "application/x-tar",
    "tar.gz": "application/gzip",
    "tgz": "application/gzip",
    "txt": "text/plain",
    "log": "text/plain",
    "ini": "text/plain",
    "cfg": "text/plain",
    "md": "text/markdown",
    "markdown": "text/markdown",
    "rst": "text/x-rst",
    "tex": "text/x-tex",
    "mmd": "text/vnd.mermaid",
    "py": "text/x-python",
    "pyi": "text/x-python",
    "sh": "text/x-shellscript",
    "sql": "application/sql",
    "css": "text/css",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "ts": "text/x-typescript",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "jsonc": "application/json",
    "code-workspace": "application/json",
    "gz": "application/gzip",
    "bz2": "application/x-bzip2",
    "xz": "application/x-xz",
    "tar.bz2": "application/x-bzip2",
    "tbz2": "application/x-bzip2",
    "tar.xz": "application/x-xz",
    "txz": "application/x-xz",
    "npy": "application/x-npy",
    "npz": "application/x-npz",
    "mp4": "video/mp4",
    "m4v": "video/mp4",
    "m4a": "audio/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "mkv": "video/x-matroska",
    "avi": "video/x-msvideo",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "epub": "application/epub+zip",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "rtf": "application/rtf",
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint",
    "sqlite": "application/vnd.sqlite3",
    "sqlite3": "application/vnd.sqlite3",
    "db": "application/vnd.sqlite3",
    "ics": "text/calendar",
    "vcf": "text/vcard",
    "eml": "message/rfc822",
    "ttf": "font/ttf",
    "otf": "font/otf",
    "woff": "font/woff",
    "woff2": "font/woff2",
}

_TEXT_TYPES = frozenset(
    {
        "application/json",
        "application/geo+json",
        "application/x-ipynb+json",
        "application/x-ndjson",
        "application/xml",
        "application/gpx+xml",
        "application/vnd.google-earth.kml+xml",
        "application/xhtml+xml",
        "application/sql",
        "application/yaml",
        "application/toml",
        "application/rtf",
        "message/rfc822",
    }
)


MIME_ALIASES = {
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
"""Other names of the same media types, each pointing to the one above; the inspector has the same."""


def extension_of(name: str) -> str:
    """The longest known extension of a name, in small letters; else its last part, empty if there is none."""
    # A leading dot hides a file and does not begin an extension.
    parts = name.rsplit("/", 1)[-1].lower().lstrip(".").split(".")
    for count in (2, 1):
        suffix = ".".join(parts[-count:])
        if len(parts) > count and suffix in MIME_BY_EXTENSION:
            return suffix
    return parts[-1] if len(parts) > 1 else ""


def mime_of_name(name: str) -> str:
    """The media type that a file name promises; ``application/octet-stream`` if it promises none."""
    return MIME_BY_EXTENSION.get(extension_of(name), OCTET_STREAM)


def guess_mime(name: str) -> str:
    """The media type of a file by its name, also of a format that is not checked; the same on every machine."""
    extension = extension_of(name)
    if extension in MIME_BY_EXTENSION:
        return MIME_BY_EXTENSION[extension]
    mime, encoding = _OTHER_TYPES.guess_type(f"file.{extension}")
    return (mime if encoding is None else _MIME_BY_ENCODING.get(encoding)) or OCTET_STREAM


def is_derived_mime(mime: str, name: str) -> bool:
    """Whether a media type is what a program derives from a name by another table, and so asks for nothing more.

    It is the generic type, what Python's own table has for the name, or a type that no table here knows, such as
    those of the tables of some machines.
    """
    bare = mime.strip().lower()
    known = ({*MIME_BY_EXTENSION.values(), *MIME_ALIASES}, *_OTHER_TYPES.types_map_inv)
    is_known = any(bare in types for types in known)
    return bare == OCTET_STREAM or bare == _OTHER_TYPES.guess_type(name)[0] or not is_known


_INLINE_BINARIES = frozenset({"application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp"})


def is_mime(text: str) -> bool:
    """Whether a text is a media type without parameters, such as ``text/csv``."""
    return len(text) <= MIME_CHARS_MAX and _MIME.fullmatch(text) is not None


def canonical_mime(mime: str) -> str:
    """The one name of a media type that has several: in small letters, without parameters."""
    bare = mime.split(";", 1)[0].strip().lower()
    return MIME_ALIASES.get(bare, bare)


def is_text(mime: str) -> bool:
    """Whether a content block of this type carries text."""
    return mime.startswith("text/") or mime in _TEXT_TYPES


def is_inline_binary(mime: str) -> bool:
    """Whether a content block of this type carries base64: PDF, and the images that APIs of models take.

    Those refuse a whole request with a BMP, a TIFF or an SVG in it; a model learns of these by their digest.
    """
    return mime in _INLINE_BINARIES
