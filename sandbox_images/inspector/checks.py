"""The contract's checks that are a comparison of a measured figure with a promised one.

Checks that need the content itself (``not_blank``, ``json_schema``) belong to the families.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from formats import CHECKS_BY_FAMILY, CHECKS_JUDGED_ELSEWHERE, canonical_mime
from model import Subject, Unmet, counted, quoted

_NAMES_SHOWN = 5


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "mime": (lambda value: isinstance(value, str), "a media type"),
    "min_pages": (_is_count, "a whole number"),
    "max_pages": (_is_count, "a whole number"),
    "min_rows": (_is_count, "a whole number"),
    "min_width": (_is_count, "a whole number"),
    "min_height": (_is_count, "a whole number"),
    "columns": (_is_names, "a list of names"),
    "json_schema": (lambda value: isinstance(value, dict | bool), "a JSON Schema"),
    "not_blank": (lambda value: isinstance(value, bool), "true or false"),
    "encoding": (lambda value: isinstance(value, str), "the name of an encoding"),
    "password": (lambda value: isinstance(value, str), "a text"),
}
"""Every check judged here: what its value must be, as a test and in words."""


def refuse_what_cannot_be_checked(subject: Subject) -> None:
    """Raise the problem of a check that is unknown, ill-typed or makes no sense for the file's format."""
    answerable = CHECKS_BY_FAMILY[subject.format.family]
    for check, value in subject.checks.items():
        if check in CHECKS_JUDGED_ELSEWHERE:
            continue
        if check not in _KINDS:
            raise Unmet(f"{quoted(check)} is not a check that a file can be held to")
        fits, kind = _KINDS[check]
        if not fits(value):
            raise Unmet(f"{check} cannot be checked: its value must be {kind}")
        if check not in answerable:
            kind = f"on a .{subject.extension} file" if subject.extension else "on a file without extension"
            raise Unmet(f"{check} cannot be checked {kind}")


def hold_to_contract(subject: Subject) -> None:
    """Compare what was measured with what was promised; raises the first ``Unmet``."""
    _hold_mime(subject)
    _hold_pages(subject)
    _hold_rows(subject)
    _hold_columns(subject)
    _hold_size(subject)


def _hold_mime(subject: Subject) -> None:
    wanted = subject.checks.get("mime")
    if wanted is not None and canonical_mime(wanted) != subject.format.mime:
        raise Unmet(f"is {subject.format.mime}, the contract asks for {quoted(wanted)}")


def _hold_pages(subject: Subject) -> None:
    pages = subject.facts.get("pages")
    if pages is None:
        return
    has = f"has {counted(pages, 'slide' if subject.format.family == 'office.powerpoint' else 'page')}"
    if pages < subject.checks.get("min_pages", 0):
        raise Unmet(f"{has}, the contract asks for at least {subject.checks['min_pages']:,}")
    if pages > subject.checks.get("max_pages", pages):
        raise Unmet(f"{has}, the contract allows at most {subject.checks['max_pages']:,}")


def _hold_rows(subject: Subject) -> None:
    wanted = subject.checks.get("min_rows", 0)
    rows = subject.facts.get("rows", 0)
    if rows < wanted:
        raise Unmet(f"has {counted(rows, 'row')} of data, the contract asks for at least {wanted:,}")


def _hold_columns(subject: Subject) -> None:
    found = {name.strip() for name in subject.columns or ()}
    missing = [name for name in subject.checks.get("columns", ()) if name.strip() not in found]
    if missing:
        lacks = f"lacks the column{'s' if len(missing) > 1 else ''} {_listed(missing)}"
        raise Unmet(f"{lacks}; it has {_listed(subject.columns or []) or 'none'}")


def _hold_size(subject: Subject) -> None:
    for side, noun in (("width", "wide"), ("height", "high")):
        wanted = subject.checks.get(f"min_{side}")
        measured = subject.facts.get(side)
        if wanted is None:
            continue
        if measured is None:
            raise Unmet(f"states no {side}, the contract asks for at least {wanted:,} px")
        if measured < wanted:
            raise Unmet(f"is {measured:,} px {noun}, the contract asks for at least {wanted:,} px")


def _listed(names: list[str]) -> str:
    shown = ", ".join(quoted(name) for name in names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN:,} more"
