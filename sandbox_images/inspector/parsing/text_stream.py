"""Reads a file as the text that it must be: UTF-8, or the encoding of the contract, without NUL, piece by piece."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from model import Problem, Subject, quoted

_CHUNK_BYTES = 1_048_576
_UTF_8 = "utf-8"
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
HOW_TO_NAME_ANOTHER = "; if another encoding is meant, give it as the check encoding"


class UndecodableError(Problem):
    """A byte is not of the encoding.

    Attributes:
        is_legacy: Whether the bytes outside of ASCII are no UTF-8 for the most part: a text in an older encoding.
    """

    def __init__(self, sentence: str, *, is_legacy: bool = False) -> None:
        super().__init__(sentence)
        self.is_legacy = is_legacy


def encoding_of(subject: Subject) -> str:
    """Return the encoding that the contract names, or the one of a UTF-16 byte order mark, or UTF-8."""
    wanted = subject.checks.get("encoding")
    if isinstance(wanted, str):
        return wanted
    return "utf-16" if subject.head(2) in _UTF_16_MARKS else _UTF_8


def text_chunks(subject: Subject, encoding: str = _UTF_8, hint: str = "") -> Iterator[str]:
    """Yield the decoded text; a UTF-8 byte order mark at the start is left in.

    Args:
        subject: The file, read from its start.
        encoding: The name of a codec.
        hint: What the sentence of a byte that does not belong there ends with.

    Raises:
        Problem: A NUL character, or a byte that is not of the encoding, with its offset.
    """
    decoder, kind = _decoder(encoding)
    subject.file.seek(0)
    offset, has_been_ascii = 0, True
    while chunk := subject.file.read(_CHUNK_BYTES):
        if encoding == _UTF_8 and (nul := chunk.find(b"\x00")) >= 0:
            raise Problem(f"is not text: it has a NUL byte at offset {offset + nul:,}")
        pending = decoder.getstate()[0]
        try:
            text = decoder.decode(chunk)
        except UnicodeDecodeError as error:
            where = offset - len(pending) + error.start
            sentence = f"is not {kind}: the byte at offset {where:,} does not belong there{hint}"
            is_legacy = encoding == _UTF_8 and has_been_ascii and _is_legacy(pending + chunk)
            raise UndecodableError(sentence, is_legacy=is_legacy) from error
        if "\x00" in text:
            raise Problem("is not text: it has a NUL character")
        has_been_ascii = has_been_ascii and chunk.isascii()
        yield text
        offset += len(chunk)
    if decoder.getstate()[0]:
        raise UndecodableError(f"is not {kind}: its last character is cut off{hint}")


def whole_text(subject: Subject) -> str:
    """Return all of the text, which must be UTF-8; raises as ``text_chunks`` does."""
    return "".join(text_chunks(subject))


def _decoder(encoding: str) -> tuple[codecs.IncrementalDecoder, str]:
    """Return a decoder, and what its encoding is called in a sentence."""
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
    except LookupError as error:
        raise Problem(f"cannot be checked: the encoding {quoted(encoding)} is not known") from error
    return decoder, "UTF-8" if encoding == _UTF_8 else f"{quoted(encoding)} text"


def _is_legacy(data: bytes) -> bool:
    """Return whether more bytes are no UTF-8 than characters outside of ASCII are: one that is broken has few."""
    text = data.decode(_UTF_8, "surrogateescape")
    beyond_ascii = [char for char in text if char > "\x7f"]
    strays = sum("\udc80" <= char <= "\udcff" for char in beyond_ascii)
    return strays > len(beyond_ascii) - strays
