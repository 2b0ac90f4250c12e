"""XML: well-formed, without entities; blank if the root holds neither text, attribute nor child."""

from __future__ import annotations

from model import Problem, Subject
from parsing.xml_safety import parse_xml


def inspect(subject: Subject) -> None:
    """Parse the document."""
    root = parse_xml(subject)
    if subject.must_not_be_blank() and not (len(root) or root.attrib or (root.text or "").strip()):
        raise Problem("is blank: its root element holds nothing")
