"""``proofbox audit`` and ``proofbox rerun``: reading the audit lines of calls, and running one of them again."""

import hashlib
import json
import sys
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.settings import Settings
from proofbox.service.calls.audit.audit_chain import AuditCheck, ChainState
from proofbox.service.calls.audit.audit_heads import HeadRecords, SignedHeads, is_record
from proofbox.service.storage.audit_export import ExportedLine, audit_lines, signing_keys
from proofbox.service.storage.audit_head_files import HeadFiles
from proofbox.service.storage.audit_signing import forget_keys
from proofbox.service.storage.database import Database
from proofbox.service.timeline.block_writer import now_text


@dataclass(frozen=True, slots=True)
class Noted:
    """What was noted or copied elsewhere, to hold the chains against.

    Attributes:
        lines: hashes of lines that have to be there.
        keys: ids of keys, one of which the heads have to begin with.
        heads: a copy of the file of heads, in place of the service's own.
    """

    lines: Iterable[str] = ()
    keys: Iterable[str] = ()
    heads: Path | None = None


def export(settings: Settings, *, since: str, tenant: str | None, project: str | None, heads: bool) -> int:
    """Print audit lines, byte for byte, one a line; then the signed heads among them, if requested."""
    _, path = settings.audit_files
    records = list(_records(path)) if heads else []  # before the lines: a head is signed after its line
    first: dict[tuple[str, str], int] = {}
    with audit_lines(settings.data_dir, settings.database_url, since) as lines:
        for line in lines:
            if tenant in (None, line.tenant) and project in (None, line.project):
                first.setdefault((line.tenant, line.project), line.seq)
                sys.stdout.write(line.text + "\n")
    read = HeadRecords()
    for record in records:
        head = read.take(record, is_checked=False)
        if head is None or head.seq >= first.get((head.tenant, head.project), head.seq + 1):
            sys.stdout.write(record + "\n")
    return 0


def verify(settings: Settings, *, file: Path | None, noted: Noted, answers: bool, is_json: bool = False) -> int:
    """Check all chains, or those of an exported file; 0 if they are whole, else 1, and the first broken line.

    Args:
        settings: where the database and the signed heads are.
        file: lines and heads that were exported; None: those of the service.
        noted: what was noted elsewhere.
        answers: whether the stored answers are checked against their lines too.
        is_json: whether the findings are printed as one JSON value.
    """
    check = AuditCheck(from_the_first=file is None, wanted=set(noted.lines))
    if file is not None:
        check.heads.records.has_gaps = True
        problems = _take_file(check, file)
    else:
        problems = _take_stored(check, settings, noted.heads, answers=answers)
    check.end()
    begins = next(iter(check.heads.records.keys), None)
    if (keys := sorted(noted.keys)) and begins not in keys:
        problems.append(f"the heads begin with the key {begins or 'of nobody'}, not with {' or '.join(keys)}")
    problems += [f"line {missing} is not there" for missing in sorted(check.wanted)]
    is_whole = not problems and not any(state.problem for state in check.chains.values())
    if is_json:
        findings = {"ok": is_whole, "chains": _chains_as_json(check), "problems": problems}
        sys.stdout.write(json.dumps(findings) + "\n")
    else:
        _print_findings(check)
        for problem in problems:
            sys.stdout.write(f"{problem}\n")
    return 0 if is_whole else 1


def _chains_as_json(check: AuditCheck) -> list[dict[str, object]]:
    return [
        {
            "tenant": tenant,
            "project": project,
            "first": state.first,
            "last": state.seq,
            "sha256": state.sha256,
            "problem": state.problem,
        }
        for (tenant, project), state in check.chains.items()
    ]


def _take_file(check: AuditCheck, file: Path) -> list[str]:
    for wants_records in (True, False):
        with file.open(encoding="ascii", errors="replace", newline="\n") as lines:
            for line in lines:
                text = line.removesuffix("\n")
                if is_record(text) and wants_records:
                    check.heads.take(text)
                elif not is_record(text) and not wants_records:
                    check.take(text)
    return [] if check.heads.problem is None else [f"the signed heads: {check.heads.problem}"]


def _take_stored(check: AuditCheck, settings: Settings, copy: Path | None, *, answers: bool) -> list[str]:
    files = HeadFiles(*settings.audit_files)
    # In this order: the service adds a line, then its head, and a key to the records, then to the database.
    known = signing_keys(settings.data_dir, settings.database_url)
    there = set() if copy else _publics(files)
    for record in _records(copy or files.heads):
        check.heads.take(record)
    problems = [] if check.heads.problem is None else [f"{(copy or files.heads).name}: {check.heads.problem}"]
    if copy is None and not problems:
        problems += _key_problems(files, check.heads.records, known, there | _publics(files))
    with audit_lines(settings.data_dir, settings.database_url, answers=answers) as stored:
        for line in stored:
            check.take(line.text, (line.tenant, line.project), (line.seq, line.sha256))
            if answers and (problem := _answer_problem(line)) is not None:
                state = check.chains[line.tenant, line.project]
                state.problem = state.problem or problem
    return problems


def _publics(files: HeadFiles) -> set[str]:
    return set(files.publics())


def _records(path: Path) -> Iterator[str]:
    """Return the records of a file; none if it does not exist."""
    if path.exists():
        yield from (line for line, _ in HeadFiles(path, path).lines())


def _key_problems(files: HeadFiles, records: HeadRecords, known: frozenset[str], there: set[str]) -> list[str]:
    """What is wrong with the key file and with the keys that the database names."""
    problems = []
    newest = records.keys.get(records.signer)
    if strangers := known - set(records.keys.values()):
        problems.append(files.strange(strangers))
    if newest is not None and not there:
        problems.append(files.missing(records.signer))
    elif newest is not None and newest not in there:
        problems.append(files.replaced(min(there), newest))
    return problems


def _print_findings(check: AuditCheck) -> None:
    """Print what was found of each chain, and who signed."""
    for chain, state in check.chains.items():
        name = "/".join(f"{part!a}" for part in chain)
        if state.problem is not None:
            sys.stdout.write(f"{name}: line {state.seq} {state.problem}\n")
        else:
            whole = f"lines {state.first} to {state.seq} are whole; the last is {state.sha256}"
            sys.stdout.write(f"{name}: {whole}\n")
            if check.heads.records.keys:
                sys.stdout.write(f"{name}: {_sign_state(check.heads, chain, state)}\n")
    if not check.chains:
        sys.stdout.write("there are no audit lines\n")
    if keys := list(check.heads.records.keys):
        sys.stdout.write(f"the heads are signed with the key {', then '.join(keys)}\n")
    else:
        sys.stdout.write("no head is signed: a chain that was written anew does not show\n")


def _sign_state(heads: SignedHeads, chain: tuple[str, str], state: ChainState) -> str:
    last = heads.last(chain)
    after = state.seq - (last.seq if last is not None else state.first - 1)
    if last is None:
        return f"no signed head yet; {after} lines after the last signed head"
    of = sum(seq >= state.first for seq in heads.of[chain])
    return f"{of} signed heads fit, the last of line {last.seq}; {after} lines after the last signed head"


def _answer_problem(line: ExportedLine) -> str | None:
    if line.answer is None:
        return None
    sha256 = hashlib.sha256(line.answer.encode(errors="surrogatepass")).hexdigest()
    return None if f'"answer_sha256":"{sha256}"' in line.text else "is of an answer that was changed after it"


def rotate_key(settings: Settings, *, is_json: bool = False) -> int:
    """Sign heads with another key from now on, also while the service runs.

    Raises:
        ServiceError: the key does not exist, a record is not as it was signed, or a file cannot be read or written.
    """
    old, fresh = HeadFiles(*settings.audit_files).rotate(now_text())
    if is_json:
        sys.stdout.write(json.dumps({"key": fresh, "signed_by": old}) + "\n")
        return 0
    sys.stderr.write(
        f"The key {old} has signed the key {fresh}, which signs from now on. What {old} signed stays.\n"
    )
    sys.stdout.write(fresh + "\n")
    return 0


async def begin_anew(settings: Settings, *, is_json: bool = False) -> int:
    """Put the key and the heads aside; the next start of the service makes others. The service may not run.

    Raises:
        ServiceError: the database cannot be opened, or a file cannot be renamed.
    """
    database = Database(settings.data_dir, settings.database_url, settings.database_timeout_s)
    await database.open()
    try:
        moved = HeadFiles(*settings.audit_files).put_aside()
        await database.write(forget_keys)
    finally:
        await database.close()
    if is_json:
        sys.stdout.write(json.dumps({"moved": [str(path) for path in moved]}) + "\n")
        return 0
    for path in moved:
        sys.stdout.write(f"{path}\n")
    return 0


async def rerun(
    settings: Settings, *, tool_call_id: str, conversation_id: str | None, is_json: bool = False
) -> int:
    """Run a stored call again and prints what is the same; 0 if all of it is, else 1.

    Raises:
        ServiceError: the call does not exist, cannot be run again, or the service runs and uses the data folder.
    """
    service = build(settings)
    async with running(service):
        request_id = uuid.uuid4().hex
        report = await service.provenance.rerun(service.principal, tool_call_id, conversation_id, request_id)
    sys.stdout.write(report.model_dump_json(indent=None if is_json else 2) + "\n")
    return 0 if report.identical else 1
