"""Answers: the result of a run as LibreChat's client reads it."""

import re
import signal
from typing import Any

from proofbox.contracts.artifacts import GLOB_MATCHES_MAX
from proofbox.contracts.codes import RuntimeCode, VerdictCode
from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_response import ArtifactResult, ToolCallResponse
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.execution.report import UNPROMISED_LISTED_MAX
from proofbox.service.facades.librechat.files import is_output
from proofbox.service.facades.librechat.ids import RUN_TURN, file_id
from proofbox.service.facades.librechat.runs import WORKING_FOLDER, EndedRun, RunInput

_FILES = f"{RUN_TURN}/{Namespace.FILES}/"
_FAILED = 1
# What LibreChat's client shows of a program with tools; others it replaces by a general sentence.
_MESSAGES: dict[str, tuple[str, str]] = {
    RuntimeCode.TIMEOUT: ("TO", "Time limit exceeded"),
    RuntimeCode.OUT_OF_MEMORY: ("RE", "Out of memory"),
    RuntimeCode.OUTPUT_LIMIT: ("OL", "stdout length exceeded"),
}
# Of more files than a call stores the report has the number, beyond those that it lists.
_MORE = re.compile(r"^Not in the contract: .* and (\d{1,9}) more(?:,|$)", re.MULTILINE)
# An empty file is a file, and a deleted one is listed elsewhere.
_NOT_SHOWN = frozenset({VerdictCode.PRODUCED, VerdictCode.EMPTY_FILE, VerdictCode.MISSING_FILE})


def ran(response: ToolCallResponse) -> bool:
    """Whether the program ran: its text or an argument may have been refused before."""
    return response.sandbox is not None


def succeeded(response: ToolCallResponse) -> bool:
    """Whether the program ran and ended well; a file that fails a check is no failure of the program."""
    return response.error is None or response.error.where == "check"


def build_output(ended: EndedRun) -> dict[str, Any]:
    """Return what the program printed, its files, and which inputs it deleted."""
    response, delivery = ended.response, _delivery(ended)
    deleted = _deleted(response)
    output: dict[str, Any] = {
        "session_id": ended.session,
        "stdout": _stdout(response),
        "stderr": _stderr(response),
        "files": _files(ended, set(deleted)),
    }
    if deleted:
        output["deleted_files"] = deleted
    if delivery is not None:
        output["artifact_delivery"] = delivery
    return output


def build_answer(ended: EndedRun) -> dict[str, Any]:
    """Return the answer to ``POST /exec``."""
    response = ended.response
    error, usage = response.error, response.usage
    status, message = (None, None) if error is None else _MESSAGES.get(error.code, (None, None))
    return {
        **build_output(ended),
        "code": usage.exit_code if ran(response) else _FAILED,
        "signal": _signal_name(usage.signal),
        "status": status,
        "message": message,
        "wall_time": round(response.timings_ms.run),
    }


def failure_message(response: ToolCallResponse) -> str:
    """Return why a program failed, in the words that LibreChat's client knows."""
    error = response.error
    if error is not None and error.code in _MESSAGES:
        return _MESSAGES[error.code][1]
    code = response.usage.exit_code if ran(response) else _FAILED
    return f"Sandbox exited with code {'unknown' if code is None else code}"


def _signal_name(number: int | None) -> str | None:
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _stdout(response: ToolCallResponse) -> str:
    """What the program wrote, and under which names what it showed is saved."""
    text = response.output.stdout
    lines = [f"The plot was saved as {WORKING_FOLDER}/{_rel(entry)}\n" for entry in response.shown]
    return "".join([text, "\n" if lines and text and not text.endswith("\n") else "", *lines])


def _stderr(response: ToolCallResponse) -> str:
    """What the program wrote, and what it cannot know: why it was ended, and which files do not open."""
    lines = []
    if response.error is not None and response.error.code != RuntimeCode.NONZERO_EXIT:
        lines += [response.error.message] if not succeeded(response) else []
    lines += [
        f"{_rel(entry)}: {entry.message}"
        for entry in response.artifacts
        if entry.verdict not in _NOT_SHOWN and entry.message and is_output(_rel(entry)) and _rel(entry) != "**"
    ]
    text = response.output.stderr
    if not lines:
        return text
    return "\n".join([text.rstrip("\n"), *lines] if text.strip() else lines) + "\n"


def _rel(entry: ArtifactResult) -> str:
    return entry.physical_path.removeprefix(_FILES)


def _files(ended: EndedRun, deleted: set[str]) -> list[dict[str, Any]]:
    """The outputs, then the inputs that are as they were: a client goes on with those."""
    inputs = {given.path: given for given in ended.inputs}
    made, unchanged = [], dict(inputs)
    for artifact in ended.outputs:
        given = inputs.get(artifact.path)
        if not is_output(artifact.path.rel) or (given is not None and _is_same(given, artifact)):
            continue
        unchanged.pop(artifact.path, None)
        made.append(_output(ended.session, artifact, given))
    return made + [_inherited(given) for path, given in unchanged.items() if path.rel not in deleted]


def _is_same(given: RunInput, artifact: StoredArtifact) -> bool:
    return given.file.is_read_only or given.file.artifact.sha256 == artifact.sha256


def _output(session: str, artifact: StoredArtifact, given: RunInput | None) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": file_id(session, artifact.path),
        "name": artifact.path.rel,
        "storage_session_id": session,
        "kind": "user",
    }
    if "/" in artifact.path.rel:
        shown["path"] = artifact.path.rel
    if given is not None:
        shown["modified_from"] = {"id": given.file.id, "storage_session_id": given.file.session}
    return shown


def _inherited(given: RunInput) -> dict[str, Any]:
    return {
        "id": given.file.id,
        "name": given.path.rel,
        "storage_session_id": given.file.session,
        "inherited": True,
        **given.owner.fields(),
    }


def _deleted(response: ToolCallResponse) -> list[str]:
    """The inputs that the program deleted."""
    removed: list[str] = []
    for block in response.blocks:
        removed += (block.meta or {}).get("removed", ())
    return [FilePath.from_physical(path).rel for path in removed if path.startswith(_FILES)]


def _delivery(ended: EndedRun) -> dict[str, Any] | None:
    """How many files were not stored, if any."""
    failed = sum(
        entry.sha256 is None and entry.verdict is VerdictCode.TOO_LARGE for entry in ended.response.artifacts
    )
    if more := _MORE.search(ended.response.report):
        failed += max(0, GLOB_MATCHES_MAX + UNPROMISED_LISTED_MAX + int(more[1]) - len(ended.outputs))
    if not failed:
        return None
    delivered = len([each for each in ended.outputs if is_output(each.path.rel)])
    return {
        "code": "artifact_delivery_failed",
        "status": "partial" if delivered else "failed",
        "attempted": delivered + failed,
        "delivered": delivered,
        "failed": failed,
    }
