"""Responses in the OpenAPI document: schemas by reference, problems by code, examples of the contracts."""

import json
from collections import defaultdict
from importlib.resources import files
from typing import Any

from pydantic import BaseModel

from proofbox.contracts.problems import Problem
from proofbox.service.access_errors import (
    MissingPermissionError,
    NotAuthenticatedError,
    OriginRefusedError,
    WrongTenantError,
)
from proofbox.service.api.responses import JSON, PROBLEM_JSON
from proofbox.service.errors import RateLimitedError, ServiceError

_REQUEST_ID = {
    "X-Request-ID": {
        "description": "Names the request in the service's log; the request's own header if it is sane.",
        "schema": {"type": "string"},
    }
}
_RETRY_AFTER = {
    "Retry-After": {
        "description": "When to try again, in seconds; only if it is known.",
        "schema": {"type": "integer", "minimum": 0},
    }
}
# What every route with a caller can answer before it is asked.
_OF_THE_GUARD: tuple[type[ServiceError], ...] = (
    NotAuthenticatedError,
    MissingPermissionError,
    WrongTenantError,
    OriginRefusedError,
    RateLimitedError,
)


def reference(model: type[BaseModel]) -> dict[str, str]:
    """The schema of a model, as a reference to the document's components."""
    return {"$ref": f"#/components/schemas/{model.__name__}"}


def header(description: str, **schema: Any) -> dict[str, Any]:
    """Describe a header of a response; its type is text unless ``schema`` sets another one."""
    return {"description": description, "schema": schema or {"type": "string"}}


def examples(name: str) -> dict[str, Any]:
    """The valid examples of a model of the contracts (``tool_call_request``), by their case; may be empty."""
    folder = files("proofbox.contracts") / "examples"
    if not folder.is_dir():
        return {}
    found = {}
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        model, _, case = file.name.removesuffix(".json").partition(".")
        if model == name and not case.startswith("invalid."):
            found[case] = {"value": json.loads(file.read_bytes())}
    return found


def json_content(model: type[BaseModel], example_name: str | None = None) -> dict[str, Any]:
    """A JSON body of a model, with the contracts' examples of it."""
    media: dict[str, Any] = {"schema": reference(model)}
    if example_name is not None and (found := examples(example_name)):
        media["examples"] = found
    return {JSON: media}


def json_answer(
    description: str,
    model: type[BaseModel],
    example_name: str | None = None,
    headers: dict[str, Any] | None = None,
    links: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """An answer with a JSON body, and what can be asked next (`link`)."""
    return answer(description, json_content(model, example_name), headers) | ({"links": links} if links else {})


def link(operation_id: str, **parameters: str) -> dict[str, Any]:
    """What can be asked next, with runtime expressions (``$request.body#/turn_id``) for its parameters."""
    return {"operationId": operation_id, "parameters": parameters}


def answer(
    description: str, content: dict[str, Any] | None = None, headers: dict[str, Any] | None = None
) -> dict[str, Any]:
    """An answer with a body of any kind, or none."""
    response: dict[str, Any] = {"description": description, "headers": {**_REQUEST_ID, **(headers or {})}}
    if content is not None:
        response["content"] = content
    return response


def problems(*kinds: type[ServiceError], for_anybody: bool = False) -> dict[int | str, dict[str, Any]]:
    """The problem documents that a route answers, by status; each names its codes and when they come.

    Args:
        kinds: the errors of the route itself.
        for_anybody: whether the route asks for no key.
    """
    by_status: dict[int, list[type[ServiceError]]] = defaultdict(list)
    everywhere: tuple[type[ServiceError], ...] = () if for_anybody else _OF_THE_GUARD
    described: tuple[type[ServiceError], ...] = (*kinds, *everywhere, ServiceError)
    for kind in described:
        by_status[kind.status].append(kind)
    return {
        status: answer(
            " ".join(f"`{kind.code}`: {_first_sentence(kind)}" for kind in sharing),
            {PROBLEM_JSON: {"schema": reference(Problem)}},
            _RETRY_AFTER if any(kind.retryable for kind in sharing) else None,
        )
        for status, sharing in sorted(by_status.items())
    }


def _first_sentence(kind: type[ServiceError]) -> str:
    if kind is ServiceError:
        return "The service failed in a way that it did not foresee."
    return (kind.__doc__ or "").strip().partition("\n")[0]
