"""ZIP archives: the first level only. An archive within it is a member like any other, and is not opened."""

from __future__ import annotations

from model import Problem, Subject
from parsing.zip_members import open_zip


def inspect(subject: Subject) -> None:
    """Judge the members (``facts.members``); blank if none of them holds a byte."""
    with open_zip(subject) as archive:
        members = archive.infolist()
    subject.facts["members"] = len(members)
    if subject.must_not_be_blank() and not any(member.file_size for member in members):
        raise Problem("is blank: no member holds a byte")
