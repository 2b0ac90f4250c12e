"""The packages that a call asks for."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

PACKAGES_MAX = 20
_CHARS_MAX = 200
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?"
_CLAUSE = r"(?:==|!=|<=|>=|~=|<|>)[ ]?[0-9][A-Za-z0-9.!+*_-]{0,63}"
_FORM = (
    rf"(?P<name>{_NAME})[ ]?(?:\[(?P<extras>{_NAME}(?:,[ ]?{_NAME}){{0,9}})\])?[ ]?"
    rf"(?P<clauses>{_CLAUSE}(?:,[ ]?{_CLAUSE}){{0,9}})?"
)
_REQUIREMENT = re.compile(_FORM)
_SCHEMA = {"pattern": rf"^\s*{re.sub(r'[?]P<[a-z]+>', '?:', _FORM)}\s*$"}
_SEPARATORS = re.compile(r"[-_.]+")


def normal_name(name: str) -> str:
    """The name of a package as indexes write it: small letters, with dashes."""
    return _SEPARATORS.sub("-", name).lower()


def is_name(text: str) -> bool:
    """Whether a text is the name of a package, without extras and versions."""
    return re.fullmatch(_NAME, text) is not None


def _requirement(text: str) -> str:
    """Reads a requirement; returns it in its one spelling.

    Raises:
        ValueError: it is anything but a name, extras and versions.
    """
    found = _REQUIREMENT.fullmatch(text.strip())
    if found is None:
        raise ValueError(
            f"{text[:_CHARS_MAX]!a} is not a package; write a name, extras and versions, such as "
            "scikit-image==0.25.* or pandas[excel]>=2,<3, without URL, path, marker and option"
        )
    extras = sorted({normal_name(extra.strip()) for extra in (found["extras"] or "").split(",") if extra.strip()})
    clauses = sorted({clause.replace(" ", "") for clause in (found["clauses"] or "").split(",") if clause.strip()})
    return f"{normal_name(found['name'])}{'[' + ','.join(extras) + ']' if extras else ''}{','.join(clauses)}"


RequirementText = Annotated[
    str, Field(max_length=_CHARS_MAX, json_schema_extra=_SCHEMA), AfterValidator(_requirement)
]
"""A name with optional extras and versions: ``scikit-image==0.25.*``."""
