"""Audit lines on both databases: in the transaction of the answer, a chain for each project, and checked."""

import asyncio
import hashlib
import json
from itertools import pairwise

import pytest

from proofbox.cli import main
from proofbox.cli.local.audit_actions import Noted, verify
from proofbox.service.app.settings import Settings
from proofbox.service.calls.audit.audit_chain import AuditCheck
from proofbox.service.calls.port import CallKey, CallState, NewCall
from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.audit import SqlAuditStore
from proofbox.service.storage.audit_export import audit_lines
from tests.store_contract.audited import answered, draft

UNSIGNED = "no head is signed: a chain that was written anew does not show"


@pytest.fixture
def audit_store(database):
    return SqlAuditStore(database)


@pytest.fixture
def kept(database, database_url):
    """All lines, read as the command line does it."""

    def read(**options):
        with audit_lines(database.data_dir, database_url, **options) as lines:
            return list(lines)

    return read


# ---- written ----


async def test_an_answer_and_its_line_are_stored_together(call_store, audit_store, scope):
    stored = await answered(call_store, scope, "call-1")
    assert stored.audited == await audit_store.of_call(stored.key)
    said = json.loads(stored.audited.text)
    assert (said["seq"], said["previous"], said["said"]) == (1, None, "call-1")
    assert stored.audited.sha256 == hashlib.sha256(stored.audited.text.encode()).hexdigest()


async def test_without_its_line_no_answer_is_stored(call_store, change, scope):
    await change("ALTER TABLE audit RENAME TO away")
    with pytest.raises(StoreFailedError):
        await answered(call_store, scope, "call-1")
    await change("ALTER TABLE away RENAME TO audit")
    [call] = await call_store.find(scope.principal, "call-1")
    assert (call.state, call.answer) == (CallState.OPEN, None)


async def test_a_second_answer_adds_no_line(call_store, kept, scope):
    first = await answered(call_store, scope, "call-1")
    again = await call_store.finish(first.key, CallState.FAILED, "other", audit=draft(scope, "other"))
    assert (again.audited, len(kept())) == (first.audited, 1)


async def test_calls_that_end_at_once_are_one_chain_for_each_project(call_store, kept, scope_of):
    scopes = [
        scope_of(tenant, project, user=user, conversation=conversation)
        for tenant in ("acme", "other")
        for project in ("books", "films")
        for user in ("ann", "bob")
        for conversation in ("conv-1", "conv-2")
    ]
    await asyncio.gather(*(answered(call_store, scope, f"call-{n}") for scope in scopes for n in range(4)))
    chains = {}
    for line in kept():
        chains.setdefault((line.tenant, line.project), []).append(line)
    assert {name: len(lines) for name, lines in chains.items()} == {
        (tenant, project): 16 for tenant in ("acme", "other") for project in ("books", "films")
    }
    for lines in chains.values():
        assert [line.seq for line in lines] == list(range(1, 17))
        assert [json.loads(two.text)["previous"] == one.sha256 for one, two in pairwise(lines)] == [True] * 15


async def test_a_line_of_no_stored_call_stands_in_the_same_chain(call_store, audit_store, scope, kept):
    await answered(call_store, scope, "call-1")
    added = await audit_store.add(scope.principal, draft(scope, "rerun"))
    assert [line.text for line in kept()][1] == added.text
    assert json.loads(added.text)["seq"] == 2


async def test_the_line_of_a_call_is_seen_by_its_own_principal_only(call_store, audit_store, scope, others):
    await answered(call_store, scope, "call-1")
    assert [await audit_store.of_call(CallKey(other, "call-1")) for other in others] == [None] * len(others)


async def test_an_open_call_has_no_line(call_store, audit_store, scope):
    await call_store.claim(NewCall(CallKey(scope, "call-1"), "sha", "{}", "boot", None))
    assert await audit_store.of_call(CallKey(scope, "call-1")) is None


async def test_a_line_outlives_its_call(call_store, change, kept, scope):
    await answered(call_store, scope, "call-1")
    await change("DELETE FROM calls")
    assert [json.loads(line.text)["said"] for line in kept()] == ["call-1"]


# ---- checked, exported ----


async def test_whole_chains_verify_beside_a_service_that_runs(call_store, command, scope, scope_of, kept):
    for name in ("call-1", "call-2"):
        await answered(call_store, scope, name)
    await answered(call_store, scope_of(tenant="zoo"), "call-1")
    last = [line.sha256 for line in kept()]
    assert await command("verify", "--answers") == (
        0,
        [
            f"'acme'/'books': lines 1 to 2 are whole; the last is {last[1]}",
            f"'zoo'/'books': lines 1 to 1 are whole; the last is {last[2]}",
            UNSIGNED,
        ],
    )


async def test_no_lines_at_all_are_said_to_be_none(command):
    assert await command("verify") == (0, ["there are no audit lines", UNSIGNED])


@pytest.mark.parametrize(
    "broken",
    [
        ("UPDATE audit SET line = replace(line, 'call-3', 'call-9') WHERE seq = 3", 3, "is not as it was written"),
        ("DELETE FROM audit WHERE seq = 3", 4, "does not follow line 2"),
        ("DELETE FROM audit WHERE seq = 1", 2, "does not follow line 0"),
        ("UPDATE audit SET seq = 9 WHERE seq = 3", 4, "does not follow line 2"),
        ("UPDATE audit SET sha256 = 'x' WHERE seq = 3", 3, "is not as it was written"),
        ("UPDATE audit SET line = '[' WHERE seq = 3", 3, "is no audit line of this project"),
        ("UPDATE chains SET tenant = 'other'", 1, "is no audit line of this project"),
    ],
)
async def test_the_first_broken_line_is_shown(call_store, command, change, scope, broken):
    statement, line, problem = broken
    for number in range(1, 6):
        await answered(call_store, scope, f"call-{number}")
    await change(statement)
    status, [said, _] = await command("verify")
    assert status == 1
    assert f": line {line} {problem}" in said


async def test_a_line_that_was_changed_with_its_hash_shows_at_the_next_one(
    call_store, command, change, kept, scope
):
    for number in range(1, 4):
        await answered(call_store, scope, f"call-{number}")
    forged = kept()[1].text.replace("call-2", "call-9")
    await change(
        "UPDATE audit SET line = :line, sha256 = :sha WHERE seq = 2",
        line=forged,
        sha=hashlib.sha256(forged.encode()).hexdigest(),
    )
    assert (await command("verify"))[1] == [
        "'acme'/'books': line 3 does not name the line before it: one of the two was changed",
        UNSIGNED,
    ]


async def test_lines_that_were_cut_off_at_the_end_show_by_a_hash_that_was_noted(call_store, command, change, scope):
    lines = [(await answered(call_store, scope, f"call-{number}")).audited for number in range(1, 4)]
    noted = lines[-1].sha256
    assert (await command("verify", "--expect", noted))[0] == 0
    await change("DELETE FROM audit WHERE seq = 3")
    assert (await command("verify"))[0] == 0
    status, said = await command("verify", "--expect", noted)
    assert (status, said[-1]) == (1, f"line {noted} is not there")


async def test_an_answer_that_was_changed_later_shows(call_store, command, change, scope):
    for number in range(1, 4):
        await answered(call_store, scope, f"call-{number}")
    await change("UPDATE calls SET answer = 'forged' WHERE tool_call_id = 'call-2'")
    assert (await command("verify"))[0] == 0
    assert await command("verify", "--answers") == (
        1,
        ["'acme'/'books': line 2 is of an answer that was changed after it", UNSIGNED],
    )


async def test_exported_lines_are_byte_for_byte_and_verify_on_their_own(
    call_store, command, kept, scope_of, tmp_path
):
    for tenant in ("acme", "zoo"):
        for number in range(1, 4):
            ended = f"2026-07-0{number}T00:00:00.000Z"
            await answered(call_store, scope_of(tenant=tenant), f"call-{number}", ended=ended)
    status, lines = await command("export", "--since", "2026-07-02")
    assert (status, lines) == (0, [line.text for line in kept() if line.seq > 1])
    file = tmp_path / "lines.jsonl"
    file.write_text("\n".join(lines) + "\n")
    assert (await command("verify", "--file", file))[0] == 0
    file.write_text("\n".join([lines[0], lines[1].replace("call-3", "call-9"), *lines[2:]]) + "\n")
    noted = [line.sha256 for line in kept()][2]
    status, said = await command("verify", "--file", file, "--expect", noted)
    assert (status, said[-1]) == (1, f"line {noted} is not there")
    only = (await command("export", "--tenant", "zoo"))[1]
    assert {json.loads(line)["principal"]["tenant"] for line in only} == {"zoo"}


def test_a_folder_without_a_database_says_so(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("PROOFBOX_DATA_DIR", str(tmp_path))
    assert main(["audit", "verify"]) == 2
    assert "the folder has no database of the service" in capsys.readouterr().err


def test_lines_of_a_file_that_are_none_break_the_chain(tmp_path, capsys):
    file = tmp_path / "lines.jsonl"
    file.write_text('[[[["\n\n')
    assert verify(Settings(), file=file, noted=Noted(), answers=False) == 1
    assert "has no number" in capsys.readouterr().out


def test_a_chain_of_a_file_may_begin_anywhere_and_has_no_gap_after():
    check = AuditCheck(from_the_first=False)
    who = {"tenant": "a", "project": "b"}
    one = json.dumps({"seq": 7, "previous": "f" * 64, "principal": who})
    two = json.dumps({"seq": 9, "previous": hashlib.sha256(one.encode()).hexdigest(), "principal": who})
    check.take(one)
    assert (check.chains["a", "b"].first, check.chains["a", "b"].problem) == (7, None)
    check.take(two)
    assert check.chains["a", "b"].problem == "does not follow line 7: lines are missing, or are not in order"
