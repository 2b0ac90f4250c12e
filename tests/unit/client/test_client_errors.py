"""Errors of clients as objects: they go to other processes."""

import pickle

import pytest

from proofbox.client import (
    ArgumentError,
    CallCancelledError,
    CallFailedError,
    CallLostError,
    Client,
    DamagedDownloadError,
    ProofboxError,
    RateLimitedError,
    StillRunningError,
    UnexpectedResponseError,
    UnreachableError,
)
from tests.support.client_answers import problem, response

ERRORS = [
    ProofboxError("a message"),
    ArgumentError("files", "is wrong"),
    UnreachableError("http://h", "no answer"),
    RateLimitedError(problem("rate_limited", 429), 7.0),
    CallCancelledError(problem("cancelled", 409)),
    CallLostError(problem("unknown_call", 404), None, "t1", "c1"),
    UnexpectedResponseError("http://h", 502, "no Proofbox"),
    StillRunningError("t1", "c1", 2.5),
    CallFailedError(response(ok=False)),
    DamagedDownloadError("other bytes"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_can_be_pickled(error: ProofboxError) -> None:
    error.add_note("a note")
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), str(copied), copied.args) == (type(error), str(error), error.args)
    assert vars(copied) == vars(error)


def test_an_error_of_a_call_that_still_runs_is_pickled_without_its_connections() -> None:
    error = StillRunningError("t1", "c1", 1)
    with Client("http://h") as client:
        error.handle = client.handle("t1", "c1")
        copied = pickle.loads(pickle.dumps(error))
    assert (copied.call_id, copied.conversation, copied.handle) == ("t1", "c1", None)
