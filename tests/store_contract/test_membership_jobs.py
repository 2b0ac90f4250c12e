"""The jobs of the process that leads: begun and ended in turn, however slow, while it goes on to report."""

import asyncio

import pytest

from proofbox.service.dispatch.membership import Membership
from proofbox.service.dispatch.port import Lead
from proofbox.service.storage.dispatch.members import SqlMemberStore

LEASE_S = 1.8  # a report may take a third of it, which is more than a busy machine needs


class CountedMembers(SqlMemberStore):
    """Counts the reports."""

    count = 0
    on_beat = None

    async def beat(self, boot_id, role, lease_s, wants=tuple(Lead)):
        reported = await super().beat(boot_id, role, lease_s, wants)
        self.count += 1
        if self.on_beat is not None:
            await self.on_beat()
        return reported

    async def counted(self, count):
        """Waits for so many more reports."""
        wanted = self.count + count
        while self.count < wanted:  # noqa: ASYNC110 - as long as the database takes
            await asyncio.sleep(0.01)


class Jobs:
    """Jobs whose begin takes until the test says so."""

    def __init__(self):
        self.log = []
        self.begins, self.goes_on = asyncio.Event(), asyncio.Event()

    async def begin(self):
        self.log.append("begins")
        self.begins.set()
        await self.goes_on.wait()
        self.log.append("began")

    async def end(self):
        self.log.append("ended")


@pytest.fixture
async def members(opened_database, tmp_path, database_url):
    async with opened_database(tmp_path, database_url) as database:
        yield CountedMembers(database)


@pytest.mark.slow
async def test_a_slow_begin_is_not_disturbed_and_the_process_keeps_the_lead(members):
    jobs, membership = Jobs(), Membership(members, "one", "api", LEASE_S)
    await members.beat("other", "api", 60.0)
    await membership.start(jobs.begin, jobs.end)
    assert not membership.leads
    await members.leave("other")
    await jobs.begins.wait()
    await members.counted(4)  # longer than a lease
    assert jobs.log == ["begins"]
    jobs.goes_on.set()
    await membership.stop()
    assert jobs.log == ["begins", "began", "ended"]
    assert Lead.JOBS in (await members.beat("other", "api", 60.0)).leads


async def test_a_lead_that_is_lost_during_a_slow_begin_is_ended_after_it(members):
    jobs, membership = Jobs(), Membership(members, "one", "api", LEASE_S)
    starting = asyncio.create_task(membership.start(jobs.begin, jobs.end))
    await jobs.begins.wait()
    await members.leave("one")
    assert Lead.JOBS in (await members.beat("other", "api", 60.0)).leads
    await members.counted(2)
    jobs.goes_on.set()
    await starting
    assert jobs.log == ["begins", "began", "ended"]
    assert not membership.leads
    await membership.stop()
    assert jobs.log == ["begins", "began", "ended"]


async def test_a_report_that_is_under_way_does_not_outlive_the_process(members):
    jobs, membership = Jobs(), Membership(members, "one", "api", LEASE_S)
    jobs.goes_on.set()
    await membership.start(jobs.begin, jobs.end)
    reported, goes_on = asyncio.Event(), asyncio.Event()

    async def hold():
        reported.set()
        await goes_on.wait()

    members.on_beat = hold
    await reported.wait()
    stopping = asyncio.create_task(membership.stop())
    done, _ = await asyncio.wait([stopping], timeout=0.1)
    goes_on.set()
    await stopping
    assert not done
    assert jobs.log == ["begins", "began", "ended"]
    members.on_beat = None
    assert Lead.JOBS in (await members.beat("other", "api", 60.0)).leads


@pytest.mark.slow
async def test_a_process_leads_as_soon_as_the_lead_of_a_lost_one_ends(members):
    jobs, membership = Jobs(), Membership(members, "one", "api", 3_600.0)  # its next report is in twenty minutes
    jobs.goes_on.set()
    await members.beat("lost", "api", 3.0)  # longer than a busy machine needs to come to the next lines
    await membership.start(jobs.begin, jobs.end)
    assert not membership.leads
    await jobs.begins.wait()
    assert (membership.leads, membership.leads_queue) == (True, True)
    await membership.stop()


async def test_a_process_without_its_link_leads_the_jobs_and_not_the_queue(members):
    wants, told, heard = [Lead.JOBS], asyncio.Event(), []
    jobs, membership = Jobs(), Membership(members, "one", "api", LEASE_S, lambda: wants)
    jobs.goes_on.set()
    membership.on_lead, membership.on_report = told.set, heard.append
    await membership.start(jobs.begin, jobs.end)
    assert (membership.leads, membership.leads_queue, len(heard)) == (True, False, 1)
    told.clear()
    wants.append(Lead.QUEUE)
    await told.wait()
    assert membership.leads_queue
    await membership.stop()
    assert not membership.leads_queue
