"""The report of an exec call, as a model reads it: what failed, which files, the end of the log."""

from dataclasses import dataclass

from contracts.artifacts import ContractError
from contracts.codes import RuntimeCode, VerdictCode
from contracts.tool_calls import EnvelopeError
from service.core.outcomes import RuntimeFailure
from service.core.verdicts import Verdict, produced_once

LOG_CHARS_MAX = 4_000
LISTED_MAX = 100
UNPROMISED_LISTED_MAX = 50
_MESSAGE_CHARS_MAX = 400


@dataclass(frozen=True, slots=True)
class Unpromised:
    """A file that the contract does not name.

    Attributes:
        shown: its physical path, or an escaped name that the protocol refuses.
        note: why it was not kept; None if it was.
    """

    shown: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class RunReport:
    """What is reported of a run.

    Attributes:
        failure: why the run failed, if it did.
        verdicts: one for each promised file.
        unpromised: files that the contract does not name.
        unpromised_total: how many there are, listed or not.
        log_tail: the end of the program's output.
    """

    failure: RuntimeFailure | None
    verdicts: list[Verdict]
    unpromised: list[Unpromised]
    unpromised_total: int
    log_tail: bytes


def missing_paths(verdicts: list[Verdict]) -> list[str]:
    """The physical paths of promised files that were not produced at all."""
    return [v.path.physical for v in verdicts if v.code is VerdictCode.MISSING_FILE]


def run_error(report: RunReport) -> EnvelopeError | None:
    """The one error of a call, by severity: the run, then missing files, then files that are not right."""
    failure = report.failure or _missing_failure(report.verdicts)
    if failure is not None:
        return EnvelopeError(code=failure.code, message=_bounded(failure.message), where="run", managed=True)
    for verdict in report.verdicts:
        if not verdict.produced:
            message = f"{verdict.path.physical}: {verdict.message}"
            return EnvelopeError(code=verdict.code, message=_bounded(message), where="check", managed=True)
    return None


def report_text(report: RunReport) -> str:
    """The report, as Markdown text."""
    failure = report.failure or _missing_failure(report.verdicts)
    failed = [v for v in report.verdicts if not v.produced]
    produced = produced_once(report.verdicts)
    lines = [f"Runtime error: {failure.code} — {failure.message}" if failure else "Runtime error: none"]
    if failed:
        lines.append("File errors:")
        lines += _listed([f"- {v.path.physical}: {_bounded(v.message or '')}" for v in failed])
    if produced:
        lines.append("Succeeded:" if failure or failed else "Produced files:")
        lines += _listed([f"- {v.path.physical}" for v in produced])
    if report.unpromised:
        lines.append(_unpromised_line(report))
    if report.failure is not None and (log := _log(report.log_tail)):
        lines += ["Program log (tail):", log]
    return "\n".join(lines)


def refusal_text(error: ContractError) -> str:
    """The report of a call that was refused before anything ran."""
    return f"Runtime error: {error.code} — {error.message}\nNothing was run."


def _missing_failure(verdicts: list[Verdict]) -> RuntimeFailure | None:
    missing = missing_paths(verdicts)
    if not missing:
        return None
    more = f" and {len(missing) - LISTED_MAX} more" if len(missing) > LISTED_MAX else ""
    return RuntimeFailure(
        RuntimeCode.EXECUTION_FAILED, f"Missing output files: {', '.join(missing[:LISTED_MAX])}{more}"
    )


def _listed(lines: list[str]) -> list[str]:
    if len(lines) <= LISTED_MAX:
        return lines
    return [*lines[:LISTED_MAX], f"- … and {len(lines) - LISTED_MAX} more"]


def _unpromised_line(report: RunReport) -> str:
    shown = [
        f"{extra.shown} ({extra.note})" if extra.note else extra.shown
        for extra in report.unpromised[:UNPROMISED_LISTED_MAX]
    ]
    more = report.unpromised_total - len(shown)
    return f"Not in the contract: {', '.join(shown)}" + (f" and {more} more" if more > 0 else "")


def _log(tail: bytes) -> str:
    """The last characters of the log; what no terminal shows as text is replaced."""
    text = tail.decode("utf-8", errors="replace").replace("\r\n", "\n")
    text = "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text.rstrip()[-LOG_CHARS_MAX:]


def _bounded(message: str) -> str:
    return message if len(message) <= _MESSAGE_CHARS_MAX else message[: _MESSAGE_CHARS_MAX - 1] + "…"
