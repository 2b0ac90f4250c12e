"""Answers of a scripted service that clients read."""

import json
from typing import Any

from proofbox.contracts.events import OutputEvent, StartedEvent
from proofbox.contracts.problems import FieldError, Problem
from proofbox.contracts.tool_call_response import (
    ArtifactResult,
    Attachment,
    CallStatus,
    ProgramOutput,
    ToolCallResponse,
)
from tests.support.scripted_service import Scripted

SHA = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # of nothing
JSON = {"Content-Type": "application/json"}


def response(**fields: Any) -> ToolCallResponse:
    return ToolCallResponse(**{"ok": True, "report": "Runtime error: none", "blocks": [], **fields})


def with_files(*names: str, sha256: str = SHA) -> ToolCallResponse:
    artifacts = [
        ArtifactResult(
            logical_path=f"fi:turn_1.files/{name}",
            physical_path=f"turn_1/files/{name}",
            mime="text/plain",
            visibility="external",
            verdict="produced",
            size_bytes=3,
            sha256=sha256,
        )
        for name in names
    ]
    return response(artifacts=artifacts, output=ProgramOutput(stdout="out", stderr="err", combined="outerr"))


def answer(model: Any = None, **fields: Any) -> Scripted:
    """An answer with a model as JSON."""
    model = response() if model is None else model
    return Scripted(**{"body": model.model_dump_json().encode(), "headers": JSON, **fields})


def accepted(status: str = "running") -> Scripted:
    return answer(CallStatus(tool_call_id="t1", conversation_id="c1", status=status, created="now"), status=202)


def attachment(name: str = "a.csv") -> Scripted:
    path = f"turn_1/attachments/{name}"
    logical = f"fi:turn_1.user.attachments/{name}"
    stored = Attachment(logical_path=logical, physical_path=path, sid=1, sha256=SHA, size_bytes=0, mime="text/csv")
    return answer(stored, status=201)


def problem(code: str, status: int, *, retryable: bool = False, **fields: Any) -> Problem:
    return Problem(
        title="Problem",
        status=status,
        detail=f"detail of {code}",
        code=code,
        request_id="r1",
        retryable=retryable,
        where="test",
        **fields,
    )


def refusal(
    code: str, status: int, *, retryable: bool = False, field: str | None = None, **headers: str
) -> Scripted:
    """A problem document; ``retry_after="3"`` becomes a header."""
    errors = [FieldError(field=field, code="wrong", message="is wrong")] if field else None
    body = problem(code, status, retryable=retryable, errors=errors).model_dump_json(exclude_none=True)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Scripted(status, body.encode(), {"Content-Type": "application/problem+json", **names})


def event(number: int, name: str, data: Any) -> bytes:
    text = data if isinstance(data, str) else data.model_dump_json()
    return f"id: {number}\nevent: {name}\ndata: {text}\n\n".encode()


def started(number: int = 1) -> bytes:
    return event(number, "started", StartedEvent(acquired="warm"))


def printed(number: int, text: str) -> bytes:
    return event(number, "stdout", OutputEvent(text=text))


def ended(number: int, model: ToolCallResponse | None = None) -> bytes:
    return event(number, "result", model or response())


def failed(number: int, code: str, status: int, *, retryable: bool = False) -> bytes:
    return event(number, "error", json.dumps(problem(code, status, retryable=retryable).model_dump(mode="json")))


def stream(*pieces: bytes, **fields: Any) -> Scripted:
    """A stream of events."""
    return Scripted(pieces=pieces, headers={"Content-Type": "text/event-stream"}, **fields)
