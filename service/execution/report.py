"""The report of an exec call, as a model reads it: what failed, which files, what the program printed."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from proofbox.contracts.artifacts import ContractError
from proofbox.contracts.codes import RuntimeCode, VerdictCode
from proofbox.contracts.tool_call_response import EnvelopeError
from proofbox.service.execution.printed_log import printed_log, printed_value
from proofbox.service.jobs.failures import RuntimeFailure
from proofbox.service.jobs.verdicts import Verdict, produced_once
from proofbox.service.visible_text import list_first, visible_line

LISTED_MAX = 100
UNPROMISED_LISTED_MAX = 50
CHANGES_LISTED_MAX = 20
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
        unstored: how many of them were too many to be stored one by one.
        lasts: later calls have those in their working directory.
        log: what the program printed, both streams in their order.
        explored: the call promised no file.
        whole_log: where all that it printed is, with the words for that; None if the call has no turn.
        shown: physical paths of the files with what it showed.
        last_value: the text of the value of its last line.
        notes: what else happened that the model should know, a sentence each.
        removed: physical paths of files of the turn that the program removed.
        in_other_turns: what it changed in folders of other turns, where nothing is stored.
        hints: what to write in place of what went wrong, a sentence each.
    """

    failure: RuntimeFailure | None
    verdicts: list[Verdict]
    unpromised: list[Unpromised]
    unpromised_total: int
    log: str
    unstored: int = 0
    lasts: bool = False
    explored: bool = False
    whole_log: str | None = None
    shown: list[str] = field(default_factory=list)
    last_value: str | None = None
    notes: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    in_other_turns: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)


def missing_paths(verdicts: list[Verdict]) -> list[str]:
    """The physical paths of promised files that were not produced at all."""
    return [v.path.physical for v in verdicts if v.code is VerdictCode.MISSING_FILE]


def run_error(report: RunReport) -> EnvelopeError | None:
    """The one error of a call, by severity: the run, then missing files, then files that are not right."""
    failure = report.failure or _missing_failure(report.verdicts)
    if failure is not None:
        return EnvelopeError(code=failure.code, message=_bound_message(failure.message), where="run", managed=True)
    for verdict in report.verdicts:
        if not verdict.produced:
            message = f"{verdict.path.physical}: {verdict.message}"
            return EnvelopeError(code=verdict.code, message=_bound_message(message), where="check", managed=True)
    return None


def report_text(report: RunReport) -> str:
    """The report, as Markdown text."""
    failure = report.failure or _missing_failure(report.verdicts)
    first = f"Runtime error: {failure.code} — {failure.message}" if failure else "Runtime error: none"
    return "\n".join([visible_line(first), *_lines(report)])


def answer_text(report: RunReport, *, has_run: bool) -> str:
    """The same for a model that sees only this: it begins with what matters, and has each thing once.

    Args:
        report: the report.
        has_run: whether the program began.
    """
    failure = report.failure or _missing_failure(report.verdicts)
    first = [] if any(not v.produced for v in report.verdicts) else ["OK"]
    if failure is not None:
        names_code = failure.message.lower().startswith(failure.code.replace("_", " "))
        first = [f"Runtime error: {failure.message if names_code else f'{failure.code} — {failure.message}'}"]
    lines = [*map(visible_line, first), *_lines(report)]
    is_silent = has_run and not report.log.strip() and report.last_value is None
    return "\n".join([*lines, "The program printed nothing."] if is_silent else lines)


def _lines(report: RunReport) -> list[str]:
    """The report below its first line."""
    failure = report.failure or _missing_failure(report.verdicts)
    failed = [v for v in report.verdicts if not v.produced]
    produced = produced_once(report.verdicts)
    lines: list[str] = []
    if failed:
        lines.append("File errors:")
        lines += _bound_lines([f"- {v.path.physical}: {_bound_message(v.message or '')}" for v in failed])
    if produced:
        lines.append("Succeeded:" if failure or failed else "Produced files:")
        lines += _bound_lines([f"- {v.path.physical}" for v in produced])
    if report.shown:
        lines.append(f"Shown: {', '.join(report.shown)}")
    if report.unpromised:
        lines.append(_unpromised_line(report))
    if report.removed:
        lines.append(f"Deleted: {list_first(report.removed, CHANGES_LISTED_MAX)}")
    if report.in_other_turns:
        not_stored = list_first(report.in_other_turns, CHANGES_LISTED_MAX)
        lines.append(f"Not stored: {not_stored} (folder of another turn; write to files/)")
    lines += [f"Note: {note}" for note in report.notes]
    lines += [f"Hint: {hint}" for hint in report.hints]
    lines = [visible_line(line) for line in lines]
    if report.last_value is not None:
        value = printed_value(report.last_value, explored=report.explored)
        lines.append(f"Last value:\n{value}" if "\n" in value else f"Last value: {value}")
    if report.log and (log := _shown_log(report, keeps_end=bool(failure or failed))):
        lines += ["Program log (tail):", log]
    return lines


def _shown_log(report: RunReport, *, keeps_end: bool) -> str:
    return printed_log(report.log, keeps_end=keeps_end, explored=report.explored, whole=report.whole_log)


def refusal_text(error: ContractError, hints: Sequence[str] = ()) -> str:
    """The report of a call that was refused before anything ran."""
    lines = [f"Runtime error: {error.code} — {error.message}", "Nothing was run."]
    lines += [f"Hint: {hint}" for hint in hints]
    return "\n".join(visible_line(line) for line in lines)


def _missing_failure(verdicts: list[Verdict]) -> RuntimeFailure | None:
    missing = missing_paths(verdicts)
    if not missing:
        return None
    more = f" and {len(missing) - LISTED_MAX} more" if len(missing) > LISTED_MAX else ""
    return RuntimeFailure(
        RuntimeCode.EXECUTION_FAILED, f"Missing output files: {', '.join(missing[:LISTED_MAX])}{more}"
    )


def _bound_lines(lines: list[str]) -> list[str]:
    if len(lines) <= LISTED_MAX:
        return lines
    return [*lines[:LISTED_MAX], f"- … and {len(lines) - LISTED_MAX} more"]


def _unpromised_line(report: RunReport) -> str:
    shown = [
        f"{extra.shown} ({extra.note})" if extra.note else extra.shown
        for extra in report.unpromised[:UNPROMISED_LISTED_MAX]
    ]
    more = report.unpromised_total - len(shown)
    heading = "Files written (internal)" if report.explored else "Not in the contract"
    line = f"{heading}: {', '.join(shown)}" + (f" and {more} more" if more > 0 else "")
    if report.unstored <= 0:
        return line
    where = "only in the working directory of later calls, where no other tool sees them"
    return f"{line}, {report.unstored} of them {where if report.lasts else 'not kept'}"


def _bound_message(message: str) -> str:
    text = visible_line(message)
    return text if len(text) <= _MESSAGE_CHARS_MAX else text[: _MESSAGE_CHARS_MAX - 1] + "…"
