"""Which files an inspector needs a library for, by the last part of their names."""

LIBRARY_EXTENSIONS = frozenset((
    "avi", "bmp", "bz2", "db", "doc", "docx", "epub", "flac", "gif", "gpx", "gz", "htm", "html", "jpeg",
    "jpg", "kml", "m4a", "m4v", "mkv", "mov", "mp3", "mp4", "npy", "npz", "odp", "ods", "odt", "ogg", "otf",
    "parquet", "pdf", "png", "ppt", "pptx", "sqlite", "sqlite3", "svg", "tar", "tbz2", "tgz", "tif", "tiff",
    "ttf", "txz", "wav", "webm", "webp", "woff", "woff2", "xhtml", "xls", "xlsx", "xml", "xsd", "xz", "yaml",
    "yml", "zip",
))  # fmt: skip
"""Extensions of formats that a library opens; the inspector reads files of all others by itself."""


def needs_library(path: str) -> bool:
    """Whether a library opens a file, going by its name."""
    return path.rpartition(".")[2].lower() in LIBRARY_EXTENSIONS
