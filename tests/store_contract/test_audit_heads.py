"""Signed heads of audit lines, on both databases: what was written anew, cut off or signed by another key shows."""

import asyncio
import hashlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import text

from proofbox.service.calls.signing import SigningKey
from proofbox.service.observability.log_format import START_LOGGER
from proofbox.service.storage.audit_head_files import HeadFiles
from proofbox.service.storage.audit_signing import HeadSigner
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.database import Database
from tests.store_contract.audited import answered
from tests.support.waiting import until

CHAIN = "'acme'/'books'"


@pytest.fixture
def files(database):
    return HeadFiles(database.data_dir / "audit-key.pem", database.data_dir / "audit-heads.jsonl")


@pytest.fixture
def signer_of(database, files):
    """A signer as a process of the service has it; each is another process's."""
    return lambda: HeadSigner(database, files, 3600)


@pytest.fixture
async def signer(signer_of):
    return signer_of()


@dataclass
class Forging:
    """What a forger, and the two who notice, use."""

    files: HeadFiles
    signer_of: Callable[[], HeadSigner]
    lines_of: Callable[..., Awaitable[None]]
    rewrite: Callable[[int], Awaitable[None]]
    command: Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
def forging(files, signer_of, lines_of, rewrite, command):
    return Forging(files, signer_of, lines_of, rewrite, command)


@pytest.fixture
def command(command):
    """As the other one, with the output as one text."""

    async def run(*arguments):
        status, lines = await command(*arguments)
        return status, "".join(f"{line}\n" for line in lines)

    return run


@pytest.fixture
def rewrite(database):
    """Writes the chain anew from a line on, with all hashes right, as one who has the whole database would."""

    async def rewritten(first):
        def work(connection):
            rows = connection.execute(text("SELECT seq, line FROM audit ORDER BY seq")).all()
            previous = None
            for seq, line in rows:
                if seq >= first:
                    forgery = {**json.loads(line), "said": f"forged {seq}", "previous": previous}
                    line = json.dumps(forgery, separators=(",", ":"))  # noqa: PLW2901
                previous = hashlib.sha256(line.encode()).hexdigest()
                row = {"seq": seq, "line": line, "sha": previous}
                connection.execute(text("UPDATE audit SET line = :line, sha256 = :sha WHERE seq = :seq"), row)

        await database.write(work)

    return rewritten


@pytest.fixture
def last_hash(database):
    """The hash of the last line."""
    query = text("SELECT sha256 FROM audit ORDER BY seq DESC LIMIT 1")
    return lambda: database.read(lambda connection: connection.execute(query).scalar_one())


@pytest.fixture
def lines_of(call_store, scope):
    """Answers so many calls."""

    async def added(*numbers, scope=scope):
        for number in numbers:
            await answered(call_store, scope, f"call-{number}")

    return added


def records(files):
    return [json.loads(line) for line, _ in files.lines()]


# ---- signed ----


async def test_the_first_round_makes_a_key_for_its_owner_alone_and_signs_all_chains(
    signer, files, lines_of, scope_of, command
):
    await lines_of(1, 2)
    await lines_of(1, scope=scope_of(tenant="zoo"))
    await signer.sign()
    assert files.key.stat().st_mode & 0o777 == 0o600
    assert [(record.get("tenant"), record.get("seq")) for record in records(files)] == [
        (None, None),
        ("acme", 2),
        ("zoo", 1),
    ]
    status, printed = await command("verify")
    assert status == 0
    assert f"{CHAIN}: 1 signed heads fit, the last of line 2; 0 lines after the last signed head" in printed
    assert f"the heads are signed with the key {SigningKey.from_pem(files.key.read_bytes()).id}" in printed


async def test_the_log_has_the_id_of_the_first_key_at_every_level(signer, files, lines_of, caplog):
    await lines_of(1)
    with caplog.at_level(logging.WARNING, "proofbox"), caplog.at_level(logging.INFO, START_LOGGER):
        await signer.sign()
    key = SigningKey.from_pem(files.key.read_bytes()).id
    assert [(line.name, key in line.getMessage()) for line in caplog.records] == [(START_LOGGER, True)]


async def test_a_round_without_new_lines_adds_no_record_and_the_next_life_goes_on_where_the_last_one_ended(
    signer, signer_of, files, lines_of, command
):
    await lines_of(1)
    for one in (signer, signer, signer_of()):
        await one.sign()
    assert [record.get("seq") for record in records(files)] == [None, 1]
    await lines_of(2, 3)
    await signer_of().sign()
    assert [record.get("seq") for record in records(files)] == [None, 1, 3]
    assert (await command("verify"))[0] == 0


async def test_a_started_signer_signs_what_is_left_when_it_is_stopped(signer, files, lines_of):
    signer.start()
    await lines_of(1, 2, 3)
    await signer.stop()
    assert records(files)[-1]["seq"] == 3


@pytest.mark.slow
async def test_a_signer_that_waits_for_another_process_stops_soon_and_goes_on_when_that_is_done(
    signer, signer_of, files, lines_of
):
    await lines_of(1)
    loop, holding = asyncio.get_running_loop(), ExitStack()
    holding.enter_context(files.locked())
    timer = loop.call_later(60, holding.close)
    signer.start()
    await asyncio.sleep(0.2)
    await signer.stop()
    assert loop.time() < timer.when()  # the lock was still held
    other = signer_of()
    waiting = asyncio.create_task(other.sign())
    await asyncio.sleep(0.2)
    assert not files.key.exists()
    timer.cancel()
    holding.close()
    await waiting
    assert (other.is_signing, records(files)[-1]["seq"]) == (True, 1)


async def test_signers_of_several_processes_share_one_file(
    database, database_url, files, scope_of, command, call_store
):
    beside = Database(database.data_dir, database_url)
    await beside.open_beside()
    try:
        signers = [HeadSigner(database, files, 0.001), HeadSigner(beside, files, 0.001)]
        for signer in signers:
            signer.start()
        stores = [call_store, SqlCallStore(beside)]
        scopes = [scope_of(tenant) for tenant in ("acme", "zoo")]
        for number in range(20):
            await asyncio.gather(
                *(answered(store, scope, f"{at}-{number}") for at, store in enumerate(stores) for scope in scopes)
            )
        for signer in signers:
            await signer.stop()
        assert [signer.is_signing for signer in signers] == [True, True]
    finally:
        await beside.close()
    status, printed = await command("verify")
    assert (status, printed.count("0 lines after the last signed head")) == (0, 2), printed


# ---- noticed ----


@pytest.mark.parametrize("first", [1, 2, 3])
async def test_a_chain_that_was_written_anew_shows_at_the_first_head_that_does_not_fit(
    signer, lines_of, command, rewrite, first
):
    for number in (1, 2, 3):
        await lines_of(number)
        await signer.sign()
    await rewrite(first)
    status, printed = await command("verify")
    assert status == 1
    assert re.search(f"{CHAIN}: line {first} is not as it was signed at .*: the chain was written anew", printed)


async def test_a_signature_never_covers_a_past_that_was_written_anew(forging, signer, caplog):
    await forging.lines_of(1, 2, 3)
    await signer.sign()
    await forging.rewrite(2)
    before = forging.files.heads.read_bytes()
    for one in (signer, forging.signer_of()):  # the life that saw it, and the next one
        await forging.lines_of(f"more-{id(one)}")
        with caplog.at_level(logging.ERROR, "proofbox.audit.heads"):
            await one.sign()
        assert f"{CHAIN}: line 3 is not as it was signed" in caplog.text
        caplog.clear()
        await one.sign()
        assert (one.is_signing, caplog.text, forging.files.heads.read_bytes()) == (False, "", before)
    status, printed = await forging.command("verify")
    assert status == 1
    assert f"{CHAIN}: line 3 is not as it was signed" in printed


async def test_a_line_that_was_changed_after_the_last_head_is_not_signed(signer, files, lines_of, change):
    await lines_of(1)
    await signer.sign()
    await lines_of(2, 3, 4)
    await change("UPDATE audit SET line = replace(line, 'call-3', 'call-9') WHERE seq = 3")
    await signer.sign()
    assert (signer.is_signing, records(files)[-1]["seq"]) == (False, 1)


@pytest.mark.parametrize("refilled", [0, 2, 4])
async def test_an_end_that_was_cut_off_shows_also_when_calls_go_on(
    signer, lines_of, command, change, files, refilled
):
    await lines_of(*range(1, 6))
    await signer.sign()
    await change("DELETE FROM audit WHERE seq > 2")
    await lines_of(*range(10, 10 + refilled))
    await signer.sign()
    assert (signer.is_signing, records(files)[-1]["seq"]) == (False, 5)
    status, printed = await command("verify")
    problem = "is not as it was signed" if refilled >= 3 else "is not there: the end of the chain was cut off"
    assert status == 1
    assert re.search(f"{CHAIN}: line 5 .*{problem}", printed)


async def test_a_chain_that_was_removed_whole_shows(signer, lines_of, command, change):
    await lines_of(1, 2)
    await signer.sign()
    for statement in ("DELETE FROM audit", "DELETE FROM chains"):
        await change(statement)
    status, printed = await command("verify")
    assert status == 1
    assert f"{CHAIN}: line 2 was signed at" in printed


async def test_what_is_wrong_with_one_chain_keeps_no_other_from_being_signed(
    signer, files, lines_of, scope_of, change
):
    other = scope_of(tenant="zoo")
    await lines_of(1, 2)
    await lines_of(1, scope=other)
    await signer.sign()
    await change("DELETE FROM audit WHERE seq = 2")
    await lines_of(2, scope=other)
    await signer.sign()
    assert (signer.is_signing, records(files)[-1]["tenant"], records(files)[-1]["seq"]) == (False, "zoo", 2)


@pytest.mark.parametrize("lives", [1, 2])
async def test_a_key_that_was_replaced_signs_nothing_and_shows(forging, signer, lives, caplog):
    await forging.lines_of(1)
    await signer.sign()
    old = records(forging.files)[0]["key"]
    fresh = SigningKey.generate()
    forging.files.write_key(fresh)
    await forging.lines_of(2)
    for _ in range(lives):
        await forging.signer_of().sign()
    problem = (
        f"audit-key.pem holds the key {fresh.id}, the heads are signed with the key {old}: the key was replaced"
    )
    assert problem in caplog.text
    status, printed = await forging.command("verify")
    assert (status, len(records(forging.files))) == (1, 2)
    assert problem in printed


async def test_a_key_that_is_missing_is_not_made_anew(signer, signer_of, files, lines_of, command):
    await lines_of(1)
    await signer.sign()
    files.key.unlink()
    again = signer_of()
    await again.sign()
    assert (again.is_signing, files.key.exists()) == (False, False)
    status, printed = await command("verify")
    assert status == 1
    assert "audit-key.pem is missing" in printed


@pytest.mark.parametrize("gone", [("key", "heads"), ("heads",)])
async def test_key_and_heads_that_were_removed_show_by_the_key_that_the_database_names(forging, signer, gone):
    await forging.lines_of(1, 2)
    await signer.sign()
    for name in gone:
        getattr(forging.files, name).unlink()
    await forging.rewrite(1)
    again = forging.signer_of()
    await again.sign()
    status, printed = await forging.command("verify")
    assert (status, again.is_signing) == (1, False)
    assert "the key and the heads were removed or replaced" in printed


def forged(record, key):
    text = json.dumps({name: value for name, value in record.items() if name != "signature"}, separators=(",", ":"))
    return f'{text[:-1]},"signature":"{key.sign(text)}"}}'


@pytest.mark.parametrize("how", ["by another key", "signature taken over", "a key of its own introduced"])
async def test_records_that_the_key_did_not_sign_are_refused_by_who_signs_and_by_who_verifies(
    forging, signer, last_hash, how
):
    await forging.lines_of(1, 2)
    await signer.sign()
    await forging.rewrite(2)
    *before, last = [line for line, _ in forging.files.lines()]
    record, key = json.loads(last), SigningKey.generate()
    record["sha256"] = await last_hash()
    if how == "by another key":
        lines = [*before, forged({**record, "key": key.id}, key)]
    elif how == "signature taken over":
        lines = [*before, json.dumps(record, separators=(",", ":"))]
    else:
        names = ("format", "n", "previous", "time")
        introduced = forged({**{name: record[name] for name in names}, "public": key.public, "key": key.id}, key)
        previous = hashlib.sha256(introduced.encode()).hexdigest()
        head = forged({**record, "n": record["n"] + 1, "previous": previous, "key": key.id}, key)
        lines = [*before, introduced, head]
    forging.files.heads.write_text("".join(f"{line}\n" for line in lines))
    await forging.lines_of(3)
    for one in (signer, forging.signer_of()):
        await one.sign()
        assert not one.is_signing
    status, printed = await forging.command("verify")
    assert status == 1
    assert re.search("audit-heads.jsonl: record 2 .*(replaced|changed)", printed)


async def test_a_record_of_no_key_is_refused_by_who_signs_and_by_who_verifies(signer, files, lines_of, command):
    record = {"format": "proofbox-audit-head-1", "n": 1, "previous": None, "time": "", "tenant": "acme"}
    record |= {"project": "books", "seq": 1, "sha256": "", "key": "", "signature": ""}
    files.heads.write_text(f"{json.dumps(record, separators=(',', ':'))}\n")
    await lines_of(1)
    await signer.sign()
    status, printed = await command("verify")
    assert (status, signer.is_signing, files.key.exists()) == (1, False, False)
    assert "audit-heads.jsonl: record 1 is signed by the key , the signing key was none" in printed


async def test_an_unforeseen_error_is_logged_once_and_ends_no_rounds(database, files, lines_of, caplog):
    await lines_of(1)
    signer = HeadSigner(database, HeadFiles(Path("no\0name"), files.heads), 0.01)
    signer.start()

    def told():
        return [line.getMessage() for line in caplog.records if line.name == "proofbox.audit.heads"]

    await until(lambda: len(told()) == 2)
    await asyncio.sleep(0.1)  # ten rounds more
    assert not signer.is_signing
    await signer.stop()
    assert len(told()) == 2
    assert told()[1].startswith("audit heads are not signed: an unforeseen error, ValueError: ")


@pytest.mark.parametrize("number", [1, 2])
async def test_records_that_were_taken_out_show(signer, files, lines_of, command, number):
    for name in (1, 2, 3):
        await lines_of(name)
        await signer.sign()
    lines = [line for line, _ in files.lines()]
    del lines[number]
    files.heads.write_text("".join(f"{line}\n" for line in lines))
    status, printed = await command("verify")
    assert status == 1
    assert f"record {number + 2} does not follow record {number}: records are missing" in printed


async def test_heads_that_were_shortened_while_the_service_runs_are_not_continued(signer, files, lines_of):
    for name in (1, 2):
        await lines_of(name)
        await signer.sign()
    lines = [line for line, _ in files.lines()]
    files.heads.write_text("".join(f"{line}\n" for line in lines[:-1]))
    await lines_of(3)
    for _ in range(2):
        await signer.sign()
        assert (signer.is_signing, len(records(files))) == (False, 2)


async def test_a_copy_of_the_heads_finds_what_the_shortened_file_does_not(
    signer, files, lines_of, command, change, tmp_path
):
    for name in (1, 2, 3):
        await lines_of(name)
        await signer.sign()
    copy = tmp_path / "copy.jsonl"
    lines = [line for line, _ in files.lines()]
    copy.write_bytes(files.heads.read_bytes())
    files.heads.write_text("".join(f"{line}\n" for line in lines[:-1]))
    await change("DELETE FROM audit WHERE seq = 3")
    assert (await command("verify"))[0] == 0
    status, printed = await command("verify", "--heads", copy)
    assert status == 1
    assert f"{CHAIN}: line 3 was signed at" in printed


async def test_heads_that_begin_with_another_key_than_was_noted_show(signer, files, lines_of, command):
    await lines_of(1)
    await signer.sign()
    noted = records(files)[0]["key"]
    assert (await command("verify", "--key", noted))[0] == 0
    status, printed = await command("verify", "--key", "0" * 16)
    assert status == 1
    assert f"the heads begin with the key {noted}, not with {'0' * 16}" in printed


# ---- crashes ----


async def test_lines_behind_the_last_head_of_a_killed_service_are_counted_and_signed_by_the_next_life(
    database, database_url, files, signer_of, command
):
    program = [sys.executable, "-m", "tests.store_contract.dying_signer"]
    arguments = [str(database.data_dir), database_url.get_secret_value()]
    ran = await asyncio.to_thread(
        subprocess.run, [*program, *arguments], check=False, cwd=Path(__file__).parents[2]
    )
    assert ran.returncode == -signal.SIGKILL
    status, printed = await command("verify")
    assert status == 0
    assert f"{CHAIN}: 1 signed heads fit, the last of line 2; 3 lines after the last signed head" in printed
    await signer_of().sign()
    assert records(files)[-1]["seq"] == 5
    assert (await command("verify"))[0] == 0


async def test_a_record_that_a_crash_cut_short_is_passed_over_and_written_again(
    signer, signer_of, files, lines_of, command
):
    for name in (1, 2):
        await lines_of(name)
        await signer.sign()
    whole = files.heads.read_bytes()
    os.truncate(files.heads, len(whole) - 30)
    status, printed = await command("verify")
    assert status == 0
    assert "the last of line 1; 1 lines after the last signed head" in printed
    await signer_of().sign()
    assert [record.get("seq") for record in records(files)] == [None, 1, 2]
    assert (await command("verify"))[0] == 0


# ---- keys ----


async def test_a_rotated_key_is_signed_by_the_old_one_whose_heads_stay_valid(
    signer, files, lines_of, command, database
):
    await lines_of(1)
    await signer.sign()
    old = records(files)[0]["key"]
    status, printed = await command("rotate-key")
    fresh = printed.strip()
    assert (status, fresh == old) == (0, False)
    assert (records(files)[-1]["key"], files.key.stat().st_mode & 0o777) == (old, 0o600)
    await lines_of(2)
    await signer.sign()  # the service that runs goes on with the new one
    assert (signer.is_signing, records(files)[-1]["key"]) == (True, fresh)
    status, printed = await command("verify", "--key", old)
    assert status == 0
    assert f"signed with the key {old}, then {fresh}" in printed
    names = text("SELECT count(*) FROM audit_keys")
    assert await database.read(lambda connection: connection.execute(names).scalar_one()) == 2


async def test_a_rotation_that_a_crash_cut_short_goes_on_with_the_key_that_was_introduced(
    signer, signer_of, files, lines_of, command
):
    await lines_of(1)
    await signer.sign()
    old = files.key.read_bytes()
    await command("rotate-key")
    files.key.rename(files.key.with_name("audit-key.pem.next"))
    files.key.write_bytes(old)
    files.key.chmod(0o600)
    await lines_of(2)
    again = signer_of()
    await again.sign()
    assert (again.is_signing, records(files)[-1]["seq"]) == (True, 2)
    assert (await command("verify"))[0] == 0


@pytest.mark.parametrize("is_signed_between", [False, True])
async def test_rotations_that_were_cut_short_one_after_the_other_lose_no_key(
    signer, signer_of, files, lines_of, command, is_signed_between
):
    await lines_of(1)
    await signer.sign()
    old = files.key.read_bytes()
    await command("rotate-key")
    in_use = files.key.read_bytes()
    files.key.rename(files.key.with_name("audit-key.pem.next"))
    files.key.write_bytes(old)
    files.key.chmod(0o600)
    if is_signed_between:
        await signer_of().sign()
        assert files.key.read_bytes() == in_use
    with pytest.raises(TypeError):  # a time that is none ends it where the fresh key is written and not introduced
        files.rotate(object())
    assert files.key.read_bytes() == in_use
    await lines_of(2)
    again = signer_of()
    await again.sign()
    assert (again.is_signing, records(files)[-1]["seq"]) == (True, 2)
    assert (await command("rotate-key"))[0] == 0
    assert (await command("verify"))[0] == 0


async def test_a_key_that_others_can_read_signs_nothing(signer, signer_of, files, lines_of, caplog):
    await signer.sign()
    files.key.chmod(0o640)
    await lines_of(1)
    again = signer_of()
    await again.sign()
    assert not again.is_signing
    assert "audit-key.pem can be read by others; chmod 600 it, and rotate the key" in caplog.text


async def test_a_key_of_the_operators_own_is_used_where_there_are_no_heads_yet(signer, files, lines_of, command):
    key = SigningKey.generate()
    files.write_key(key)
    await lines_of(1)
    await signer.sign()
    assert [record["key"] for record in records(files)] == [key.id, key.id]
    assert (await command("verify"))[0] == 0


async def test_a_lost_key_is_put_aside_when_the_service_is_stopped_and_another_begins(
    database, files, lines_of, command, signer
):
    await lines_of(1)
    await signer.sign()
    files.key.unlink()
    assert (await command("begin-anew"))[0] == 2  # while the service runs
    await database.close()
    assert (await command("begin-anew"))[0] == 0
    assert len(list(files.heads.parent.glob("audit-heads.jsonl.*"))) == 1
    await database.open()
    again = HeadSigner(database, files, 3600)
    await again.sign()
    assert again.is_signing
    assert (await command("verify"))[0] == 0


# ---- exported ----


async def test_exported_heads_are_those_of_the_exported_lines_and_verify_without_the_service(
    signer, files, call_store, command, scope_of, tmp_path
):
    for number in range(1, 4):
        for tenant in ("acme", "zoo"):
            ended = f"2026-07-0{number}T00:00:00.000Z"
            await answered(call_store, scope_of(tenant), f"call-{number}", ended=ended)
        await signer.sign()
    _, printed = await command("export", "--heads", "--tenant", "zoo", "--since", "2026-07-02")
    file = tmp_path / "lines.jsonl"
    file.write_text(printed)
    exported = [json.loads(line) for line in printed.splitlines()]
    assert [(line.get("seq"), line.get("tenant")) for line in exported if line.get("format")] == [
        (None, None),
        (2, "zoo"),
        (3, "zoo"),
    ]
    assert '"acme"' not in printed  # with its quotes: the signatures are random
    key = records(files)[0]["key"]
    status, verified = await command("verify", "--file", file, "--key", key)
    assert status == 0
    assert "'zoo'/'books': 2 signed heads fit, the last of line 3; 0 lines after" in verified
    lines = printed.splitlines()
    file.write_text("\n".join(line for line in lines if '"seq":3,"previous"' not in line) + "\n")
    status, verified = await command("verify", "--file", file, "--key", key)
    assert status == 1
    assert "line 3 was signed at" in verified
    file.write_text(printed.replace('"seq":3,"sha256":"', '"seq":3,"sha256":"0'))
    status, verified = await command("verify", "--file", file)
    assert status == 1
    assert "does not fit its signature" in verified
