"""Exit codes, the one form of errors, and names of files that a service sends."""

import pytest

from proofbox.cli.shared.exit_codes import CommandError, ExitCode, usage_error
from proofbox.cli.shared.failures import describe_error
from proofbox.cli.shared.outcomes import CallNames, Outcome, as_command_error, exit_code_of, safe_name
from proofbox.cli.shared.terminal import visible
from proofbox.contracts.codes import ContractCode, RuntimeCode, ToolCode, VerdictCode
from proofbox.contracts.tool_call_response import EnvelopeError, ToolCallResponse
from proofbox.service.app.settings import Settings
from proofbox.service.errors import EngineUnavailableError, StoreFailedError
from proofbox.service.storage.error_translation import InUseError


def envelope(code):
    return EnvelopeError(code=str(code), message="m", where="run", managed=True)


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        (RuntimeCode.TIMEOUT, 124),
        (RuntimeCode.CANCELLED, 130),
        (RuntimeCode.NONZERO_EXIT, 4),
        (RuntimeCode.OUT_OF_MEMORY, 4),
        (RuntimeCode.OUTPUT_LIMIT, 4),
        (RuntimeCode.DISK_LIMIT, 4),
        (RuntimeCode.PROCESS_LIMIT, 4),
        (RuntimeCode.KILLED, 4),
        (RuntimeCode.EXECUTION_FAILED, 3),
        (RuntimeCode.SANDBOX_FAILED, 1),
        (VerdictCode.INVALID, 3),
        (VerdictCode.EMPTY_FILE, 3),
        (VerdictCode.SYMLINK_BLOCKED, 3),
        (ContractCode.MISSING_CODE, 5),
        (ContractCode.PRE_EXEC_MISSING_PATHS, 5),
        (ToolCode.HUNK_MISMATCH, 1),
        ("layout_failed", 1),
    ],
)
def test_each_error_of_an_answer_has_an_exit_code(code, exit_code):
    assert exit_code_of(envelope(code)) == exit_code


def test_no_code_of_a_run_is_without_a_meaning():
    assert {exit_code_of(envelope(code)) for code in RuntimeCode} == {
        ExitCode.TIMEOUT,
        ExitCode.INTERRUPTED,
        ExitCode.PROGRAM_FAILED,
        ExitCode.CONTRACT_UNMET,
        ExitCode.ERROR,
    }
    assert exit_code_of(None) is ExitCode.OK


def test_the_error_of_an_answer_has_the_form_of_every_error():
    response = ToolCallResponse(ok=False, error=envelope(RuntimeCode.NONZERO_EXIT), report="r", blocks=[])
    value = Outcome(CallNames("call_1", "c", "turn_1"), response).as_json()
    assert value["error"] == {
        "code": "nonzero_exit",
        "message": "m",
        "retryable": False,
        "hint": "the report has the last lines of the program",
    }
    assert (value["ok"], value["call_id"], value["files"]) == (False, "call_1", [])
    assert as_command_error(envelope(RuntimeCode.SANDBOX_FAILED)).retryable
    ok = ToolCallResponse(ok=True, report="r", blocks=[])
    assert "error" not in Outcome(CallNames("call_1", "c", "turn_1"), ok).as_json()


def test_an_error_is_one_sentence_with_the_way_out():
    error = usage_error("wrong", field="--in", hint="do that")
    assert error.as_text() == "--in: wrong; do that"
    assert usage_error("--in is wrong", field="--in").as_text() == "--in is wrong"
    assert CommandError("m", field="f", retryable=True).as_json() == {
        "error": {"code": "error", "message": "m", "field": "f", "retryable": True, "hint": ""}
    }


def test_errors_of_the_service_and_the_system_are_sentences(tmp_path):
    engine = describe_error(EngineUnavailableError("the engine does not answer"))
    assert (engine.code, engine.exit_code, engine.retryable) == ("engine_unavailable", ExitCode.USAGE, True)
    assert engine.as_text() == "the engine does not answer; 'proofbox doctor' checks this machine"
    assert describe_error(StoreFailedError("locked")).as_text() == "locked"
    assert "'proofbox mcp'" in describe_error(InUseError("the store is in use")).hint
    gone = tmp_path / "gone"
    with pytest.raises(FileNotFoundError) as raised:
        gone.read_text()
    assert describe_error(raised.value).as_text() == f"{gone}: no such file"
    unexpected = describe_error(RuntimeError("x"))
    assert (unexpected.code, unexpected.exit_code) == ("internal", ExitCode.ERROR)


def test_every_wrong_setting_is_named():
    with pytest.raises(ValueError, match="port") as raised:
        Settings(port=-1, pool_size=-1)
    error = describe_error(raised.value)
    assert (error.code, error.exit_code) == ("invalid_setting", ExitCode.USAGE)
    assert error.message.splitlines() == [
        "2 mistakes in the configuration:",
        "  PROOFBOX_PORT: must be at least 0; raise it",
        "  PROOFBOX_POOL_SIZE: must be at least 0; raise it",
    ]
    with pytest.raises(ValueError, match="S3_BUCKET") as raised:
        Settings(s3_prefix="a")
    assert describe_error(raised.value).message == (
        "PROOFBOX_S3_PREFIX is set and PROOFBOX_S3_BUCKET is not: set both or neither"
    )


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("fi:turn_1.files/a b.csv", "a b.csv"),
        ("fi:turn_1.files/charts/a.png", "charts/a.png"),
        ("fi:turn_1.user.attachments/data.csv", "data.csv"),
    ],
)
def test_a_file_is_saved_by_its_path_below_files(path, name):
    assert str(safe_name(path)) == name


@pytest.mark.parametrize("path", ["fi:turn_1.files/../a", "fi:turn_1.files//etc/passwd", "fi:turn_1.files/", "a/"])
def test_a_name_that_would_leave_the_folder_is_refused(path):
    with pytest.raises(CommandError) as raised:
        safe_name(path)
    assert raised.value.code == "unsafe_path"


def test_a_program_does_not_control_the_terminal():
    assert visible("a\x1b[2J\x07\tb\r\nc\u202e é") == "a\\x1b[2J\\x07\tb\nc\\x202e é"
    assert visible("plain, \U0001f469\u200d\U0001f52c") == "plain, \U0001f469\u200d\U0001f52c"
    assert (visible("10%\r20%"), visible("10%\r20%", "\r")) == ("10%\\x0d20%", "10%\r20%")
