"""``proofbox audit`` and ``proofbox rerun``: reading what is kept of calls, and running one of them again."""

import hashlib
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path

from service.app.bootstrap import build, running
from service.app.settings import Settings
from service.calls.audit_chain import AuditCheck
from service.storage.audit_export import KeptLine, audit_lines


def export(settings: Settings, *, since: str, tenant: str | None, project: str | None) -> int:
    """Prints audit lines, byte for byte, one a line."""
    with audit_lines(settings.data_dir, settings.database_url, since) as lines:
        for line in lines:
            if tenant in (None, line.tenant) and project in (None, line.project):
                sys.stdout.write(line.text + "\n")
    return 0


def verify(settings: Settings, *, file: Path | None, expected: Iterable[str], answers: bool) -> int:
    """Checks all chains, or those of an exported file; 0 if they are whole, else 1, and the first broken line.

    Args:
        settings: where the database is.
        file: lines that were exported; None: those of the database.
        expected: hashes of lines that have to be there, as they were noted elsewhere.
        answers: whether the stored answers are checked against their lines too.
    """
    check = AuditCheck(from_the_first=file is None, wanted=set(expected))
    if file is not None:
        with file.open(encoding="ascii", errors="replace", newline="\n") as lines:
            for text in lines:
                check.take(text.removesuffix("\n"))
    else:
        with audit_lines(settings.data_dir, settings.database_url, answers=answers) as kept:
            for line in kept:
                check.take(line.text, (line.tenant, line.project), (line.seq, line.sha256))
                if answers and (problem := _answer_problem(line)) is not None:
                    state = check.chains[line.tenant, line.project]
                    state.problem = state.problem or problem
    for (tenant, project), state in check.chains.items():
        name = f"{tenant!a}/{project!a}"
        if state.problem is not None:
            sys.stdout.write(f"{name}: line {state.seq} {state.problem}\n")
        else:
            sys.stdout.write(f"{name}: lines {state.first} to {state.seq} are whole; the last is {state.sha256}\n")
    for missing in sorted(check.wanted):
        sys.stdout.write(f"line {missing} is not there\n")
    if not check.chains:
        sys.stdout.write("there are no audit lines\n")
    return 1 if check.wanted or any(state.problem for state in check.chains.values()) else 0


def _answer_problem(line: KeptLine) -> str | None:
    if line.answer is None:
        return None
    sha256 = hashlib.sha256(line.answer.encode(errors="surrogatepass")).hexdigest()
    return None if f'"answer_sha256":"{sha256}"' in line.text else "is of an answer that was changed after it"


async def rerun(settings: Settings, *, tool_call_id: str, conversation_id: str | None) -> int:
    """Runs a stored call again and prints what is the same; 0 if all of it is, else 1.

    Raises:
        ServiceError: there is no such call, it cannot be run again, or the service runs and has the data folder.
    """
    service = build(settings)
    async with running(service):
        request_id = uuid.uuid4().hex
        report = await service.provenance.rerun(service.principal, tool_call_id, conversation_id, request_id)
    sys.stdout.write(report.model_dump_json(indent=2) + "\n")
    return 0 if report.identical else 1
