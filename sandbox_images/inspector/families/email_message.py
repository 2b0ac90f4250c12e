"""E-mail messages (RFC 5322): a header block with at least one field that every mail has."""

from __future__ import annotations

from email.parser import BytesHeaderParser

from model import Problem, Subject

_HEADER_BYTES_MAX = 262_144
_FIELDS = ("From", "To", "Date", "Subject", "Message-ID")


def inspect(subject: Subject) -> None:
    """Parse the header; blank if nothing follows it."""
    data = subject.file.read(_HEADER_BYTES_MAX)
    if b"\x00" in data:
        raise subject.wrong_format()
    header = BytesHeaderParser().parsebytes(data)
    if header.defects or not any(field in header for field in _FIELDS):
        raise subject.wrong_format()
    body = str(header.get_payload()) + subject.file.read(1).decode("latin-1")
    if subject.must_not_be_blank() and not body.strip():
        raise Problem("is blank: nothing follows its header")
