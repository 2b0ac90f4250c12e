"""Media types by file name, and how each is carried in a content block."""

_OOXML = "application/vnd.openxmlformats-officedocument."
OCTET_STREAM = "application/octet-stream"

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
    "sh": "text/x-shellscript",
    "sql": "application/sql",
    "css": "text/css",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "ts": "text/x-typescript",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
}

_TEXT_TYPES = frozenset(
    {
        "application/json",
        "application/geo+json",
        "application/x-ipynb+json",
        "application/x-ndjson",
        "application/xml",
        "application/sql",
        "application/yaml",
        "application/toml",
    }
)


def mime_of_name(name: str) -> str:
    """The media type that a file name promises; ``application/octet-stream`` if it promises none."""
    # A dot in front hides a file, it begins no extension.
    parts = name.rsplit("/", 1)[-1].lower().lstrip(".").split(".")
    for count in (2, 1):
        suffix = ".".join(parts[-count:])
        if len(parts) > count and suffix in MIME_BY_EXTENSION:
            return MIME_BY_EXTENSION[suffix]
    return OCTET_STREAM


def is_text(mime: str) -> bool:
    """Whether a content block of this type carries text."""
    return mime.startswith("text/") or mime in _TEXT_TYPES


def is_inline_binary(mime: str) -> bool:
    """Whether a content block of this type carries base64: PDF and images only."""
    return mime == "application/pdf" or mime.startswith("image/")
