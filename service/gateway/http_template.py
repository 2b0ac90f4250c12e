"""The HTTP request of a call: `HttpExecution` and the input become method, URL, headers and body."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from proofbox.contracts.gateway.executions import HttpExecution
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.filling import MISSING, RefusedInputError, TemplateFiller, text_of
from proofbox.service.gateway.url_templates import parse_url

METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
"""Their body is the whole input if none is configured; the others send it as query."""
FORM = "application/x-www-form-urlencoded"
TEXT = "text/plain"
_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that is ready to be sent.

    Attributes:
        method: the method.
        url: the URL with its query, in ASCII except the host.
        host: its host.
        headers: names and values, in the order of the configuration; `Host` and lengths are not among them.
        body: the bytes; None: no body.
        template: the URL as the configuration has it, for the log.
    """

    method: str
    url: str
    host: str
    headers: list[tuple[str, str]]
    body: bytes | None
    template: str


def prepare_request(execution: HttpExecution, params: dict[str, Any], filler: TemplateFiller) -> PreparedRequest:
    """Fill all templates of a request.

    Args:
        execution: the configured request.
        params: the input of the call.
        filler: fills templates with the same input; its redactor then knows the secrets of the request.

    Raises:
        RefusedInputError: a value of the input cannot stand where the template puts it.
        UnknownEnvError: a secret has no value for this project and host.
    """
    url, host = filler.fill_url(execution.url)
    headers = filler.fill_headers(execution.headers, host)
    query = filler.fill_query(execution.query, host) if execution.query is not None else []
    has_body = "body" in execution.model_fields_set
    if not has_body and execution.method not in METHODS_WITH_BODY and _sends_input(execution):
        query = [(name, text_of(value)) for name, value in params.items()]
    if query:
        url += ("&" if "?" in url and url[-1] not in "?&" else "" if "?" in url else "?") + _form(query)
    body = None
    if has_body:
        value = filler.fill_json(execution.body, host)
        if value is not MISSING:
            body = _encode(value, headers)
    elif execution.method in METHODS_WITH_BODY:
        body = _encode(params, headers)
    return PreparedRequest(execution.method, url, host, headers, body, execution.url)


def content_type_of(headers: list[tuple[str, str]]) -> str:
    """The media type of ``Content-Type`` in lower case, without parameters; empty if the header is absent."""
    given = next((value for name, value in headers if name.lower() == "content-type"), "")
    return given.partition(";")[0].strip().lower()


def _sends_input(execution: HttpExecution) -> bool:
    return execution.query is None and not parse_url(execution.url).has_input


def _encode(value: Any, headers: list[tuple[str, str]]) -> bytes:
    """The bytes of a body; adds ``Content-Type`` if it is absent."""
    kind = content_type_of(headers)
    if not kind:
        headers.append(("Content-Type", _JSON))
    if kind == FORM:
        if not isinstance(value, dict):
            raise RefusedInputError("input", "the body is a form, which needs an object")
        return _form([(name, text_of(each)) for name, each in value.items()]).encode()
    if kind == TEXT:
        return text_of(value).encode(errors="replace")
    return compact_json(value).encode(errors="replace")


def _form(pairs: list[tuple[str, str]]) -> str:
    return urlencode(pairs, errors="replace")
