"""Processes of a service whose settings differ: the log of the one that leads and `proofbox doctor` name them."""

import asyncio
import logging

import pytest

from proofbox.cli.checks.processes import check_processes
from proofbox.service.dispatch.differences import Member, ProcessFacts
from proofbox.service.storage.dispatch.members import SqlMemberStore
from tests.support.dispatching import opened_process

EXPIRED_S = -1.0


async def test_what_processes_report_is_stored_once_and_forgotten_with_them(database):
    members, facts = SqlMemberStore(database), ProcessFacts("2", {"wall_s": "abc"})
    await members.describe("a", facts)  # which is not known yet
    await members.beat("b", "api", 100, ())
    await members.beat("a", "worker", 100, ())
    await members.describe("a", facts)
    await members.beat("a", "worker", 100, ())
    assert await members.members() == [Member("a", "worker", facts), Member("b", "api", ProcessFacts())]
    await members.beat("b", "api", EXPIRED_S, ())
    assert [member.boot_id for member in await members.members()] == ["a"]
    await members.leave("a")
    assert await members.members() == []


@pytest.mark.slow
async def test_a_process_with_other_settings_is_named_in_the_log_and_by_doctor(place, caplog):
    caplog.set_level(logging.WARNING)

    async def doctor(**more):
        findings = await asyncio.to_thread(lambda: list(check_processes(place.settings("worker", **more))))
        return [(finding.status, finding.detail) for finding in findings]

    async with opened_process(place, "api"):
        assert await doctor() == [("ok", "1 api; one release, and the same settings")]
        assert await doctor(retention_days=1) == [
            ("warn", "PROOFBOX_RETENTION_DAYS: differs at doctor (this command)")
        ]
        async with opened_process(place, "worker", wall_s=7), opened_process(place, "worker"):
            while "the processes of this service differ" not in caplog.text:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.02)
            [told] = [record.getMessage() for record in caplog.records if "differ" in record.getMessage()]
            assert told.startswith("the processes of this service differ: PROOFBOX_WALL_S: differs at worker ")
            assert told.count("boot-") == 1
            [(status, detail)] = await doctor()
            assert (status, detail.rpartition("boot-")[0]) == ("warn", "PROOFBOX_WALL_S: differs at worker ")
