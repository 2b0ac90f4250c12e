"""What a file looks like by its first bytes, in words: for the sentence of a file that is something else."""

from __future__ import annotations

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "a PDF"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"BM", "a BMP image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"(\xb5/\xfd", "zstd data"),
    (b"PAR1", "a Parquet table"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old or password-protected Office file"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x7fELF", "an ELF program"),
)
_TEXT_SHOWN_CHARS = 40
_BYTES_SHOWN = 8
_WEBP_HEAD = slice(8, 12)


def looks_like(head: bytes) -> str:
    """Return a clause such as ``it is a PNG image``, ``it starts with '<html>'`` or ``it is empty``."""
    if not head:
        return "it is empty"
    if head[:4] == b"RIFF" and head[_WEBP_HEAD] == b"WEBP":
        return "it is a WebP image"
    if any(head.startswith(magic) and _is_more_than_letters(magic, head) for magic, _ in _MAGIC):
        name = next(name for magic, name in _MAGIC if head.startswith(magic))
        return f"it is {name}"
    text = _as_text(head)
    if text:
        return f"it starts with '{text}'"
    return f"it starts with the bytes {head[:_BYTES_SHOWN].hex(' ')}"


def _is_more_than_letters(magic: bytes, head: bytes) -> bool:
    """A magic of letters alone (``BM``) also starts plain words, which hold no byte outside of text."""
    return not (magic.isalnum() and _as_text(head) is not None)


def _as_text(head: bytes) -> str | None:
    """Return the first words of a text, or None if the bytes are no text; a cut last character is forgiven."""
    if b"\x00" in head:
        return None
    text = head.decode("utf-8", errors="replace")
    if "\ufffd" in text[:-1]:
        return None
    return " ".join(text.split())[:_TEXT_SHOWN_CHARS].rstrip("\ufffd")
