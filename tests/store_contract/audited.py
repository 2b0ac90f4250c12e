"""Calls with an answer and an audit line, as tests of the lines make them."""

import hashlib
import json

from proofbox.service.calls.port import AuditDraft, CallKey, CallState, NewCall

ENDED = "2026-07-04T13:18:14.000Z"


def draft(scope, said="x", ended=ENDED, answer="answer"):
    who = {"tenant": scope.principal.tenant, "project": scope.principal.project}
    outcome = {"answer_sha256": hashlib.sha256(answer.encode()).hexdigest()}
    line = {"principal": who, "said": said, "outcome": outcome}
    return AuditDraft(ended, json.dumps(line, separators=(",", ":")))


async def answered(store, scope, name, **fields):
    """A call with its answer and its line."""
    call = NewCall(CallKey(scope, name), "sha", "{}", "boot", None)
    await store.claim(call)
    return await store.finish(call.key, CallState.DONE, "answer", audit=draft(scope, name, **fields))
