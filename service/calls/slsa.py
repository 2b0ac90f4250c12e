"""An audit line as others read provenance: an in-toto Statement (v1) with the SLSA Provenance predicate (v1).

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md, https://slsa.dev/spec/v1.0/provenance
"""

from typing import Any

from proofbox.contracts.provenance import AuditLine

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "urn:x-proofbox:tool-call:1"


def statement(line: AuditLine, sha256: str) -> dict[str, Any]:
    """The statement; unsigned. Its subjects are the files that came out, or the answer if there are none.

    Args:
        line: the audit line.
        sha256: the line's hash, which names the invocation.
    """
    answer = {"name": "answer", "digest": {"sha256": line.outcome.answer_sha256}}
    outputs = [
        {"name": output.path, "digest": {"sha256": output.sha256}, "annotations": {"verdict": output.verdict}}
        for output in line.outputs
        if output.sha256 is not None
    ]
    return {
        "_type": STATEMENT,
        "subject": outputs or [answer],
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    **line.call.model_dump(include={"tool_id", "tool_call_id", "conversation_id", "turn_id"}),
                    **line.request.model_dump(exclude_none=True),
                },
                "internalParameters": {
                    "limits": line.limits.model_dump(exclude_none=True) if line.limits else {},
                    "randomness": line.randomness,
                },
                "resolvedDependencies": _dependencies(line),
            },
            "runDetails": {
                "builder": _builder(line),
                "metadata": {
                    "invocationId": sha256,
                    "startedOn": line.call.accepted,
                    "finishedOn": line.outcome.ended,
                },
                "byproducts": [answer] if outputs else [],
            },
        },
    }


def _dependencies(line: AuditLine) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if line.sandbox is not None:
        algorithm, _, digest = line.sandbox.image_digest.partition(":")
        found.append({"name": "image", "digest": {algorithm: digest}})
    if line.request.code_sha256 is not None:
        found.append({"name": "code", "digest": {"sha256": line.request.code_sha256}})
    found += [{"name": named.path, "digest": {"sha256": named.sha256}} for named in line.references]
    for used in line.inputs:
        notes = {"source": used.source, "version": used.version}
        found.append(
            {
                "name": used.path,
                "digest": {"sha256": used.sha256},
                "annotations": {name: value for name, value in notes.items() if value is not None},
            }
        )
    return found + [
        {"name": f"so:sources_pool[{source.sid}]", "digest": {"sha256": source.sha256}} for source in line.sources
    ]


def _builder(line: AuditLine) -> dict[str, Any]:
    ran_on = f"{line.sandbox.engine}:{line.sandbox.runtime}" if line.sandbox else "nothing-ran"
    return {"id": f"urn:x-proofbox:builder:{ran_on}", "version": {"proofbox": line.service.version}}
