# ruff: noqa: ARG001 - schemathesis passes arguments by these names
"""What schemathesis checks beside its own checks, and which requests it makes that reach a sandbox.

Loaded by the program `schemathesis` (SCHEMATHESIS_HOOKS); no module of a test imports it.
"""

import itertools
import os
from typing import Any

import schemathesis
from schemathesis.core.failures import Failure
from schemathesis.openapi.checks import (
    AllowHeaderMismatch,
    JsonSchemaError,
    RejectedPositiveData,
    UnsupportedMethodResponse,
)

from proofbox.contracts.codes import ContractCode

RUNS_MAX = int(os.environ.get("PROOFBOX_TEST_FUZZ_RUNS", "20"))
"""How many programs are run: each takes a container."""
SECRETS = tuple(filter(None, os.environ.get("PROOFBOX_TEST_FUZZ_SECRETS", "").split("\n")))
"""What no problem and no report may hold: folders of the machine."""
TRACES = ("Traceback (most recent call", "site-packages", 'File "/', "sqlalchemy", "pydantic_core", "0x7f")
PROBLEM_FIELDS = {"type", "title", "status", "detail", "code", "request_id", "retryable", "where"}

PROGRAMS = {
    "exec_tools.execute_code_python": (
        "open('a.txt', 'w').write('x')",
        "import os; os.symlink('/etc/passwd', 'a.txt')",
        "raise SystemExit(3)",
        "print('\\x1b[31m' * 1000); open('files/a.txt', 'wb').write(b'\\xff\\x00')",
        "while True: pass",
    ),
    "exec_tools.execute_code_bash": ("echo x > a.txt", "kill -9 $$", "yes | head -c 1000000; mkfifo a.txt"),
    "exec_tools.execute_code_node": ("require('fs').writeFileSync('a.txt', 'x')", "process.abort()", "for (;;);"),
}
RULES = {
    "unsafe_path",
    "limit_not_allowed",
    "network_not_allowed",
    "packages_not_allowed",
    "asset_refused",
    "sid_conflict",
}
"""Codes of refusals by rules that no schema can say."""
VALIDATORS = {"value_error", "media_type", "json_invalid", "base64_decode"}
"""Codes of mistakes in fields of an invalid request that no schema can say."""
LISTED_FURTHER = {*map(str, ContractCode), "unknown_tool"}
"""Codes of mistakes that a refusal lists after its own, though alone they are answered with 200 and 404."""
_runs = itertools.count()


class LeakyAnswerError(AssertionError):
    """An answer tells of the machine behind it."""


@schemathesis.hook
def map_case(context: Any, case: Any) -> Any:
    """Some calls that the schema allows name a real tool and have a real program."""
    body, meta = case.body, case.meta
    valid = meta is not None and meta.generation.mode.is_positive
    if case.operation.label == "POST /v1/tool-calls" and valid and isinstance(body, dict):
        at = next(_runs)
        if at < RUNS_MAX:
            rows = [(tool, code) for tool, codes in PROGRAMS.items() for code in codes]
            tool, code = rows[at % len(rows)]
            contract = [{"filename": "a.txt", "description": "a text"}]
            named = {"tool_id": tool, "code": code, "params": {"contract": contract}, "limits": {"wall_s": 1}}
            case.body = body | named | {"turn_id": "turn_1", "assets": [], "sources_pool": []}
    return case


@schemathesis.hook
def filter_failure(context: Any, failure: Failure, case: Any, response: Any) -> bool:
    """Whether a failure is one: some refusals follow rules that no schema can say."""
    if isinstance(failure, JsonSchemaError) and _media_type(response) == "text/event-stream":
        return False  # told as text, as the document says; schemathesis holds each event against the schema
    if (
        isinstance(failure, UnsupportedMethodResponse | AllowHeaderMismatch)
        and "/v1/links/" in response.request.url
    ):
        return False  # a link is signed for its method: with another one it is a forged link, 403
    if not isinstance(failure, RejectedPositiveData):
        return True
    return not _follows_a_rule(response.json())


def _follows_a_rule(problem: dict[str, Any]) -> bool:
    """Whether a request was refused for what no schema can say, and so is each further mistake that is listed.

    A mistake of another kind could have been read in the schema, so the schema lacks it.
    """
    itself = {"field": problem["where"], "code": problem["code"]}
    first, *further = problem.get("errors", [itself])
    return _has(first, VALIDATORS | ({problem["code"]} & RULES)) and all(
        _has(error, VALIDATORS | RULES | LISTED_FURTHER) for error in further
    )


def _has(error: dict[str, str], codes: set[str]) -> bool:
    """Whether a mistake has one of these codes; what params have to be stands in the catalogue of the tools."""
    return error["code"] in codes or error["field"].startswith("params")


@schemathesis.check
def every_error_is_a_problem_document(ctx: Any, response: Any, case: Any) -> None:
    """RFC 9457, of our own fields, with the status and the request's id that the headers say."""
    if response.status_code < 400:
        return
    assert _media_type(response) == "application/problem+json"
    problem = response.json()
    assert set(problem) - {"errors"} == PROBLEM_FIELDS
    assert problem["status"] == response.status_code
    assert problem["request_id"] == response.headers["x-request-id"][0]
    assert problem["code"] != "internal", problem


@schemathesis.check
def no_answer_tells_of_the_machine(ctx: Any, response: Any, case: Any) -> None:
    """No trace and no folder in a problem, nor in what a model reads of an answer."""
    text = response.content.decode(errors="replace")
    if response.status_code < 400:
        is_answer = case.operation.label == "POST /v1/tool-calls" and response.status_code == 200
        # What the program printed is its own.
        text = response.json()["report"].partition("Program log (tail):\n")[0] if is_answer else ""
    found = [said for said in (*TRACES, *SECRETS) if said in text and said not in str(case.body)]
    if found:
        raise LeakyAnswerError(f"the answer holds {found}")


def _media_type(response: Any) -> str:
    return str(response.headers["content-type"][0]).partition(";")[0]
