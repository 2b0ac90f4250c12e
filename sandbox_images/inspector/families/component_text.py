"""Calendars and address cards (RFC 5545, RFC 6350): the components that begin must end, the outer ones be right."""

from __future__ import annotations

from model import Problem, Subject, quoted
from parsing.text_stream import whole_text

_OUTER = {"ics": "VCALENDAR", "vcf": "VCARD"}


def inspect(subject: Subject) -> None:
    """Read the lines that begin and end components; blank if there is nothing in the outer ones."""
    outer = _OUTER[subject.extension]
    lines = [line.strip() for line in whole_text(subject).removeprefix("\ufeff").splitlines()]
    lines = [line for line in lines if line]
    if not lines or lines[0].upper() != f"BEGIN:{outer}":
        raise subject.wrong_format()
    opened: list[str] = []
    for line in lines:
        word, _, name = line.upper().partition(":")
        if word == "BEGIN":
            opened.append(name)
        elif word == "END" and (not opened or opened.pop() != name):
            raise Problem(f"is damaged: {quoted(line)} ends what has not begun")
    if opened:
        raise Problem(f"is cut off: {quoted(f'END:{opened[-1]}')} is missing")
    shows = ("BEGIN:VEVENT", "BEGIN:VTODO", "BEGIN:VJOURNAL", "FN", "N:", "N;")
    if subject.must_not_be_blank() and not any(line.upper().startswith(shows) for line in lines):
        raise Problem("is blank: nothing is entered in it")
