"""YAML documents: read event by event, so that neither a tag nor an alias makes anything out of them."""

from __future__ import annotations

import yaml
from model import Problem, Subject, one_line, quoted
from parsing.text_stream import whole_text

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MESSAGE_CHARS_MAX = 160
_DEPTH_MAX = 500
_TEMPLATE_MARKS = ("{{", "{%")
"""A file with these may be a template of Helm, Jinja or GitHub, which is YAML only when it is filled in."""


def inspect(subject: Subject) -> None:
    """Parse every document; tags are let pass, whatever they are. Blank if no scalar holds anything."""
    text = whole_text(subject)
    try:
        blank = not _holds_something(text)
    except yaml.YAMLError as error:
        if any(mark in text for mark in _TEMPLATE_MARKS):
            return
        raise Problem(f"is not YAML: {_in_words(error)}") from error
    if blank and subject.must_not_be_blank():
        raise Problem("is blank: it holds no value")


def _holds_something(text: str) -> bool:
    holds, depth = False, 0
    anchors: set[str] = set()
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.DocumentStartEvent):
            anchors.clear()
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                raise Problem(f"is not YAML: the alias {quoted(str(event.anchor))} has no anchor before it")
        elif isinstance(event, yaml.NodeEvent):
            if event.anchor is not None:
                anchors.add(event.anchor)
            if isinstance(event, yaml.ScalarEvent):
                holds = holds or bool(event.value.strip())
            else:
                depth += 1
                if depth > _DEPTH_MAX:
                    raise Problem("could not be opened as YAML: it is nested too deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return holds


def _in_words(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    where = "" if mark is None else f" at line {mark.line + 1:,} column {mark.column + 1:,}"
    return one_line(problem, _MESSAGE_CHARS_MAX) + where
