"""Writes the audit line of a call: from what was asked, what it ran with, and its answer. It decides nothing."""

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.network import NetworkUse
from proofbox.contracts.problems import Problem
from proofbox.contracts.provenance import AUDIT_FORMAT, AuditService
from proofbox.contracts.tool_call_request import SourceRow, ToolCallRequest
from proofbox.contracts.tool_call_response import ArtifactResult, ToolCallResponse, Usage
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.calls.observer import CallRecord, UsedInput, UsedReference
from proofbox.service.calls.port import AuditDraft, AuditedLine, CallKey, CallState
from proofbox.service.sandbox.limits import limit_names
from proofbox.service.timeline.block_writer import now_text

# What log collectors take as one line; a call with thousands of inputs has more, and its line is in the database.
LOGGED_CHARS_MAX = 16_000
_log = logging.getLogger("proofbox.audit")
_LIMITS = limit_names()


@dataclass(frozen=True, slots=True)
class AuditedCall:
    """What is known of a call before it ran.

    Attributes:
        key: its name; the principal in it has the id of the API key.
        request: the call as it came.
        payload_sha256: the hash of the request, see `registration.payload_sha256`.
        created: when it was accepted.
        request_id: the HTTP request; None if it is not known any more.
        traceparent: its span, if it is traced.
        rerun_of: the audit line of the call that is run again.
    """

    key: CallKey
    request: ToolCallRequest
    payload_sha256: str
    created: str
    request_id: str | None = None
    traceparent: str = ""
    rerun_of: str | None = None


def sha256_of(value: str | bytes) -> str:
    """SHA-256 in hex, of text as UTF-8."""
    raw = value.encode(errors="surrogatepass") if isinstance(value, str) else value
    return hashlib.sha256(raw).hexdigest()


def canonical_json(value: Any) -> str:
    """JSON with sorted keys, without spaces, in ASCII: the same text for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def source_sha256(row: SourceRow) -> str:
    """The hash of what is shown of a source."""
    path = row.file
    shown = {"sid": row.sid, "title": row.title, "url": row.url, "path": path.physical if path else None}
    return sha256_of(canonical_json(shown))


def build_draft(
    call: AuditedCall,
    record: CallRecord,
    service: AuditService,
    state: CallState,
    body: str,
    response: ToolCallResponse | None,
) -> AuditDraft:
    """The line but for its place in the chain: what `AuditLine` reads.

    It is made of plain values, because the models would take half a millisecond of every call; and in ASCII, so
    that the bytes that are hashed come back from every database and every log.

    Args:
        call: what was asked.
        record: what it ran with and made.
        service: which service answers.
        state: how it ended.
        body: the answer as it is stored.
        response: the same, of a call that is done; None for a problem.
    """
    raw, ended = body.encode(errors="surrogatepass"), now_text()
    sandbox = record.sandbox or (response.sandbox if response is not None else None)
    fields = {
        "format": AUDIT_FORMAT,
        "principal": _principal(call.key),
        "call": _call(call),
        "service": {"version": service.version, "boot_id": service.boot_id},
        "request": _request(call, record),
        "limits": None if record.limits is None else {name: getattr(record.limits, name) for name in _LIMITS},
        "sandbox": None if sandbox is None else sandbox.model_dump(mode="json", exclude_none=True),
        "randomness": "fresh",
        "references": [_reference(used) for used in record.references] or None,
        "inputs": [_input(used) for used in record.inputs],
        "missing": list(record.missing),
        "sources": [{"sid": row.sid, "sha256": source_sha256(row)} for row in record.cited],
        "outputs": _outputs(response.artifacts if response is not None else (), record.stored),
        "network": _network(call.request, record),
        "packages": None if record.packages is None else [package.model_dump() for package in record.packages],
        "gateway": None if record.gateway is None else record.gateway.model_dump(mode="json", exclude_none=True),
        "usage": (response.usage if response is not None else Usage()).model_dump(exclude_none=True),
        "outcome": {
            "state": state.value,
            "code": outcome_code(body, response),
            "ended": ended,
            "answer_sha256": sha256_of(raw),
            "answer_bytes": len(raw),
        },
    }
    return AuditDraft(ended, json.dumps(_known(fields), separators=(",", ":"), ensure_ascii=True))


def outcome_code(body: str, response: ToolCallResponse | None) -> str:
    """``ok``, or the code of the error or problem that a call was answered with."""
    if response is None:
        return str(Problem.model_validate_json(body).code)
    return "ok" if response.error is None else response.error.code


def span_attributes(code: str, response: ToolCallResponse | None) -> dict[str, str | bool]:
    """The attributes of the span of a call at its end."""
    if response is None:
        return {"proofbox.code": code}
    verdicts = ",".join(sorted({str(artifact.verdict) for artifact in response.artifacts}))
    known: dict[str, str | bool] = {
        "proofbox.code": code,
        "proofbox.ok": response.ok,
        "proofbox.verdicts": verdicts,
    }
    return known if response.sandbox is None else {**known, "proofbox.acquired": response.sandbox.acquired}


def log_audit_line(line: AuditedLine) -> None:
    """Writes a line into the log, once it is stored."""
    text = line.text
    if len(text) > LOGGED_CHARS_MAX:
        known = json.loads(text)
        text = json.dumps({**known, "inputs": len(known["inputs"]), "outputs": len(known["outputs"])})
    _log.info("%s", text, extra={"fields": {"audit_sha256": line.sha256}})


def _known(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _principal(key: CallKey) -> dict[str, Any]:
    who = key.scope.principal
    return _known(
        {
            "tenant": who.tenant,
            "project": who.project,
            "user_type": who.user_type,
            "user": who.user,
            "key_id": who.key_id,
        }
    )


def _call(call: AuditedCall) -> dict[str, Any]:
    return _known(
        {
            "tool_call_id": call.key.tool_call_id,
            "conversation_id": call.key.scope.conversation_id,
            "turn_id": call.request.turn_id,
            "tool_id": call.request.tool_id,
            "request_id": call.request_id,
            "traceparent": call.traceparent or None,
            "accepted": call.created,
            "rerun_of": call.rerun_of,
        }
    )


def _request(call: AuditedCall, record: CallRecord) -> dict[str, Any]:
    fields = {"sha256": call.payload_sha256, "params_sha256": sha256_of(canonical_json(call.request.params))}
    if call.request.code is None:
        return fields
    for used in record.references:
        if used.param == "code":
            return {**fields, "code_sha256": used.sha256, "code_bytes": used.size_bytes}
    code = call.request.code.encode(errors="surrogatepass")
    return {**fields, "code_sha256": sha256_of(code), "code_bytes": len(code)}


def _reference(used: UsedReference) -> dict[str, Any]:
    return _known(
        {
            "param": used.param,
            "path": used.path,
            "version": used.version,
            "sha256": used.sha256,
            "size_bytes": used.size_bytes,
        }
    )


def _input(used: UsedInput) -> dict[str, Any]:
    fields = {
        "path": used.path,
        "sha256": used.sha256,
        "size_bytes": used.size_bytes,
        "source": used.source,
        "asked": used.asked,
    }
    return fields if used.version is None else {**fields, "version": used.version}


def _outputs(results: Sequence[ArtifactResult], stored: Sequence[StoredArtifact]) -> list[dict[str, Any]]:
    left = {artifact.path.physical: artifact for artifact in stored}
    outputs = []
    for result in results:
        made = left.pop(result.physical_path, None)
        outputs.append(
            _known(
                {
                    "path": result.physical_path,
                    "verdict": str(result.verdict),
                    "visibility": result.visibility,
                    "version": _version(made),
                    "sha256": result.sha256,
                    "size_bytes": result.size_bytes,
                }
            )
        )
    # Stored, but in no answer: the call was cancelled, or it failed, after its files were hosted.
    return outputs + [
        _known(
            {
                "path": path,
                "verdict": "produced",
                "visibility": made.visibility,
                "version": _version(made),
                "sha256": made.sha256,
                "size_bytes": made.size_bytes,
            }
        )
        for path, made in left.items()
    ]


def _network(request: ToolCallRequest, record: CallRecord) -> dict[str, Any] | None:
    if request.network is None:
        return None
    use = record.network or NetworkUse()
    unknown = {"unknown": True} if record.is_lost else {}
    return {"allow": list(request.network.allow), **unknown, **use.model_dump(exclude_none=True)}


def _version(artifact: StoredArtifact | None) -> int | None:
    return None if artifact is None else artifact.version or None
