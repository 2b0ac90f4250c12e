"""Requests of version 1 as the variant ``http``."""

import re
from typing import Any

from proofbox.service.gateway.imports.notes import PartNotes, drop_keys
from proofbox.service.gateway.imports.old_templates import convert_template

_KNOWN = frozenset({"url", "method", "headers", "queryParams", "body", "timeout"})
_HOST = re.compile(r"^[a-z][a-z0-9+.-]*://([^/?#]*)", re.IGNORECASE)
_CREDENTIAL = re.compile(r"authorization|api-?_?key|token|secret|password|credential", re.IGNORECASE)
_BETWEEN_PARAMETERS = re.compile(r"[?&#]")
_WITHOUT_BODY = ("GET", "HEAD")
_SECRET_ADVICE = "let the operator add it to PROOFBOX_GATEWAY_ENV and use ${env.X}"  # noqa: S105 - advice, not one


def convert_request(execution: dict[str, Any], notes: PartNotes) -> dict[str, Any]:
    """Convert the ``execution`` of a request; what needs a look is in the notes."""
    drop_keys(execution, _KNOWN, {}, notes)
    url = execution.get("url")
    method = str(execution.get("method") or "GET").upper()
    made: dict[str, Any] = {"url": convert_template(url), "method": method}
    _check_host(url, notes)
    if (headers := execution.get("headers")) is not None:
        made["headers"] = convert_template(headers)
        _check_headers(headers, notes)
    if (query := execution.get("queryParams")) is not None:
        made["query"] = convert_template(query)
        notes.change("queryParams is query")
        if isinstance(query, dict):
            _check_literals("queryParams", query, notes)
    if isinstance(url, str):
        _check_literals("url", _parameters_of(url), notes)
    has_body = execution.get("body") is not None
    if has_body and method in _WITHOUT_BODY:
        notes.change(f"body is dropped: {method} sends none")
    elif has_body:
        made["body"] = convert_template(execution["body"])
    if "timeout" in execution:
        made["timeout"] = execution["timeout"]
    if "query" not in made and "body" not in made and method in (*_WITHOUT_BODY, "DELETE") and "{{" not in str(url):
        made["query"] = {}
        notes.change(f"query is {{}}: without it, {method} would send the input as query")
    return made


def _check_host(url: Any, notes: PartNotes) -> None:
    if not isinstance(url, str):
        notes.doubt("execution.url is not a text")
        return
    host = _HOST.match(url)
    if url.lstrip().startswith("{{") or (host is not None and "{{" in host[1]):
        notes.doubt("the host of execution.url is a placeholder; write it, so that no input decides where to ask")


def _parameters_of(url: str) -> dict[str, str]:
    """The parameters in the query of a URL, in a time linear in its length: nobody has checked it yet."""
    pairs = (part.partition("=") for part in _BETWEEN_PARAMETERS.split(url)[1:])
    return {name: value for name, _, value in pairs if name}


def _check_headers(headers: Any, notes: PartNotes) -> None:
    if not isinstance(headers, dict):
        return
    _check_literals("headers", headers, notes)
    for name, value in headers.items():
        if str(name).lower() == "authorization" and isinstance(value, str) and "{{" in value:
            notes.doubt(f"headers.{name} is a credential of the input; {_SECRET_ADVICE}")


def _check_literals(place: str, values: dict[Any, Any], notes: PartNotes) -> None:
    for name, value in values.items():
        is_literal = isinstance(value, str) and value and "{{" not in value and "${env." not in value
        if is_literal and _CREDENTIAL.search(str(name)):
            notes.doubt(f"{place}.{str(name)[:64]} looks like a literal credential; {_SECRET_ADVICE}")
