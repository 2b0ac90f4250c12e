"""The request on stdin, parsed into types that cannot be wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from model import Limits


class MalformedRequest(Exception):  # noqa: N818 - named for what it is
    """The caller sent something that is not a request; its text is what is wrong."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One promised file.

    Attributes:
        id: The caller's own name for it, given back unchanged.
        path: Relative to the request's root.
        checks: The contract's checks; those that are null are left out.
    """

    id: int | str
    path: str
    checks: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """All files of one call and the bounds for each of them.

    Attributes:
        root: The folder that their paths start from.
        limits: The bounds.
        files: The files.
    """

    root: str
    limits: Limits
    files: list[Entry]


def read_request(data: bytes) -> Request:
    """Parse a request.

    Raises:
        MalformedRequest: It is not JSON, a field is missing, or a value has the wrong type.
    """
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise MalformedRequest(f"the request is not JSON: {error}") from error
    if not isinstance(body, dict) or not isinstance(body.get("root"), str):
        raise MalformedRequest("the request must be an object with a root")
    files = body.get("files")
    if not isinstance(files, list):
        raise MalformedRequest("files must be a list")
    return Request(body["root"], _limits(body), [_entry(item) for item in files])


def _limits(body: dict[str, Any]) -> Limits:
    given = {limit.name: body[limit.name] for limit in fields(Limits) if limit.name in body}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise MalformedRequest(f"{name} must be a number above 0")
    return Limits(**given)


def _entry(item: Any) -> Entry:
    if not isinstance(item, dict) or not isinstance(item.get("path"), str):
        raise MalformedRequest("each file must be an object with a path")
    if not isinstance(item.get("id"), int | str):
        raise MalformedRequest("each file must have an id")
    checks = item.get("checks") or {}
    if not isinstance(checks, dict):
        raise MalformedRequest("checks must be an object")
    return Entry(item["id"], item["path"], {k: v for k, v in checks.items() if v is not None})
