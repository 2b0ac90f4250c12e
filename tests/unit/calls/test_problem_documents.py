"""Every error of the service as a problem document, and nothing of an unforeseen one."""

import inspect
from http import HTTPStatus

import pytest

from proofbox.contracts.codes import ProblemCode
from proofbox.contracts.problems import FieldError
from proofbox.service import access_errors, errors, gateway_errors
from proofbox.service.calls.problem import problem_of
from proofbox.service.errors import (
    CallerError,
    ConversationBusyError,
    InvalidRequestError,
    OurError,
    RequestTimeoutError,
    ServiceError,
)

KINDS = [
    kind
    for module in (errors, access_errors, gateway_errors)
    for _, kind in inspect.getmembers(module, inspect.isclass)
    if kind.__module__ == module.__name__ and kind not in (ServiceError, CallerError, OurError)
]

RETRYABLE = {kind for kind in KINDS if issubclass(kind, OurError)} - {gateway_errors.GatewayNotInstalledError}
RETRYABLE |= {RequestTimeoutError, ConversationBusyError}

TREES = f"{errors.__doc__}\n{access_errors.__doc__}\n{gateway_errors.__doc__}\n"


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_says_its_code_status_and_place(kind):
    told = problem_of(kind("the field x is 5, 4 are allowed"), "req-1")
    assert told.model_dump(exclude_none=True) == {
        "type": "about:blank",
        "title": HTTPStatus(kind.status).phrase,
        "status": kind.status,
        "detail": "the field x is 5, 4 are allowed",
        "code": kind.code,
        "request_id": "req-1",
        "retryable": kind in RETRYABLE,
        "where": kind.where,
    }
    assert (400 <= kind.status < 500) or issubclass(kind, OurError)


def test_every_error_has_a_code_and_a_place_of_its_own_and_stands_in_the_tree():
    general = [kind for kind in KINDS if kind.__base__ not in KINDS]
    assert len({kind.code for kind in general}) == len(general)
    assert {kind.code for kind in KINDS} == set(ProblemCode) - {
        ProblemCode.INTERNAL,
        ProblemCode.NOT_FOUND,
        ProblemCode.METHOD_NOT_ALLOWED,
    }
    assert [kind.__name__ for kind in KINDS if kind.where == "service"] == []
    assert [kind.__name__ for kind in KINDS if f"─ {kind.__name__}\n" not in TREES] == []


def test_the_refused_fields_are_told():
    fields = [FieldError(field="a", code="b", message="c")]
    assert problem_of(InvalidRequestError("a: c", errors=fields), "req-1").errors == fields


@pytest.mark.parametrize("exc", [RuntimeError("/secret/path"), KeyError("password"), ServiceError("x")])
def test_the_text_of_an_unforeseen_failure_stays_in_the_log(exc):
    told = problem_of(exc, "req-1")
    assert (told.status, told.code, told.request_id) == (500, "internal", "req-1")
    if not isinstance(exc, ServiceError):
        assert told.detail == "the service failed in a way it did not foresee; its log has the request id"
        assert told.retryable
