"""Many calls while a worker, a broker and an API process are killed, and what became of each call."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg

from tests.support.scale.clients import Clients, SentCall
from tests.support.scale.cluster import LEASE_S, Cluster

GRACE_S = 2.0
"""After the lease: the time in which a call of a killed process has to have its end."""
_PATIENCE_S = 120.0
_AT_ONCE = 16
_STREAM = "proofbox_calls"


@dataclass(frozen=True)
class Plan:
    """What a storm consists of.

    Attributes:
        calls: how many are sent at the same time.
        sleep_s: how long each program waits.
        kills: which host is killed once so many programs have ended: host, or ``leader`` for the broker that leads
            the queue. A worker is killed while it runs a program.
    """

    calls: int = 200
    sleep_s: float = 1.0
    kills: tuple[tuple[int, str], ...] = ((30, "worker1"), (60, "leader"), (90, "api1"))


@dataclass(frozen=True)
class Kill:
    """A process that was ended with SIGKILL.

    Attributes:
        host: where it ran.
        at: when, on the monotonic clock, in seconds.
        running: the calls without an answer whose programs had begun then, anywhere.
        on_it: those of them that had begun on the killed process.
    """

    host: str
    at: float
    running: frozenset[str]
    on_it: frozenset[str]


@dataclass(frozen=True)
class CallRecord:
    """What became of one call.

    Attributes:
        call: its id.
        outcome: ``ok``, or the code of its error or problem.
        is_unknown: whether its answer says that the outcome is unknown.
        runs: how often its program began.
        workers: where.
        posts: how often its client sent it.
        took_s: from the first request to the answer.
        after_kill_s: of a call that ran when a process was killed: from that kill to the answer; the longest.
        was_on_killed: whether a worker was killed while it ran the call.
        faults: what is wrong with it; empty if nothing is.
    """

    call: str
    outcome: str
    is_unknown: bool
    runs: int
    workers: tuple[str, ...]
    posts: int
    took_s: float
    after_kill_s: float | None
    was_on_killed: bool
    faults: tuple[str, ...]


@dataclass(frozen=True)
class StormResult:
    """What became of all calls.

    Attributes:
        records: one for each call.
        kills: the processes that were killed.
        took_s: from the first request to the last answer.
        after_last_kill_s: from the last kill to the last answer.
        lease_s: the lease of calls.
    """

    records: list[CallRecord]
    kills: list[Kill]
    took_s: float
    after_last_kill_s: float
    lease_s: float = LEASE_S

    @property
    def outcomes(self) -> Counter[str]:
        """How many calls had each outcome."""
        return Counter(record.outcome for record in self.records)

    @property
    def faults(self) -> list[str]:
        """What is wrong, with the calls' ids; empty if each claim holds."""
        return [f"{record.call}: {fault}" for record in self.records for fault in record.faults]

    @property
    def slowest_after_kill_s(self) -> float:
        """The longest time from a kill to the answer of a call that ran then."""
        return max((record.after_kill_s or 0.0 for record in self.records), default=0.0)

    @property
    def run_by_killed(self) -> int:
        """How many calls killed workers ran."""
        return sum(record.was_on_killed for record in self.records)


@dataclass
class _Progress:
    cluster: Cluster
    calls: list[SentCall]
    kills: list[Kill] = field(default_factory=list)

    def kill(self, host: str) -> None:
        cluster = self.cluster
        stop: Callable[[], None] = (
            cluster.members[host].kill if host in cluster.members else (lambda: cluster.nats.kill(host))
        )
        at = time.monotonic()
        stop()
        begun = {sent.call for sent in self.calls if sent.ended is None} & cluster.counter.find_begun()
        self.kills.append(Kill(host, at, frozenset(begun), frozenset(begun & cluster.counter.find_begun(host))))


async def run_storm(cluster: Cluster, plan: Plan, name: str) -> StormResult:
    """Send all calls of a plan, kill what it names, and examine each call once all have their answers.

    Args:
        cluster: with all processes running.
        plan: what to do.
        name: begin of the ids of the calls.

    Raises:
        TimeoutError: a call has no answer in time, or the programs do not go on.
    """
    async with Clients(cluster) as clients:
        calls = [clients.build_call(f"{name}-{number}", plan.sleep_s) for number in range(plan.calls)]
        progress = _Progress(cluster, calls)
        before = sum(report.step == "ended" for report in cluster.counter.read())
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            group.create_task(clients.send_all(calls))
            group.create_task(_kill_in_turn(progress, plan, before))
        took_s = time.monotonic() - began
    living = [host for host, member in cluster.apis.items() if member.is_running]
    async with Clients(cluster, *living) as clients:
        records = await _examine(clients, living, progress)
    last = max((kill.at for kill in progress.kills), default=began)
    return StormResult(records, progress.kills, took_s, max(sent.ended or 0.0 for sent in calls) - last)


async def _kill_in_turn(progress: _Progress, plan: Plan, before: int) -> None:
    cluster = progress.cluster
    for count, host in plan.kills:
        await asyncio.to_thread(cluster.counter.wait_for, "ended", before + count, _PATIENCE_S)
        victim = await asyncio.to_thread(cluster.nats.find_leader, _STREAM) if host == "leader" else host
        if victim in cluster.workers:
            await asyncio.to_thread(cluster.counter.wait_until_running, victim, _PATIENCE_S)
        await asyncio.to_thread(progress.kill, victim)


async def _examine(clients: Clients, living: list[str], progress: _Progress) -> list[CallRecord]:
    """A record of each call, from all API processes that run and from the database."""
    lines = await asyncio.to_thread(_count_audit_lines, clients.cluster)
    free = asyncio.Semaphore(_AT_ONCE)

    async def one(sent: SentCall) -> CallRecord:
        async with free:
            faults = await find_faults(clients, living, sent)
        if lines[sent.call] != 1:
            faults.append(f"{lines[sent.call]} audit lines")
        return _build_record(progress, sent, faults)

    return await asyncio.gather(*(one(sent) for sent in progress.calls))


async def find_faults(clients: Clients, hosts: list[str], sent: SentCall) -> list[str]:
    """What is wrong with an ended call: other ends elsewhere, runs beyond the first, a success without its file."""
    faults = []
    for host in hosts:
        status = await clients.read_status(host, sent)
        if status["status"] not in {"done", "failed", "cancelled"}:
            faults.append(f"{status['status']} at {host} after its end")
        elif (status["response"] if sent.status == 200 else status["problem"]) != sent.answer:
            faults.append(f"another end at {host}: {str(status)[:300]}")
        repeated = await clients.repeat(host, sent)
        if repeated.json() != sent.answer:
            faults.append(f"another answer to a repetition at {host}: {repeated.text[:300]}")
    runs = clients.cluster.counter.count_runs()[sent.call]
    if runs > 1 and not sent.is_unknown:
        faults.append(f"its program began {runs} times, and the answer does not say that the outcome is unknown")
    if sent.is_ok:
        if runs == 0:
            faults.append("a success of a program that never began")
        if (found := await clients.read_file(hosts[0], sent)) != sent.call.encode():
            faults.append(f"a success with another file: {found[:100]!r}")
    return faults


def _count_audit_lines(cluster: Cluster) -> Counter[str]:
    with psycopg.connect(cluster.postgres.url(cluster.database)) as database:
        rows = database.execute(
            "SELECT calls.tool_call_id, count(*) FROM audit JOIN calls ON calls.id = audit.call GROUP BY 1"
        ).fetchall()
    return Counter(dict(rows))


def _build_record(progress: _Progress, sent: SentCall, faults: list[str]) -> CallRecord:
    reports = [report for report in progress.cluster.counter.read() if report.call == sent.call]
    began = [report.worker for report in reports if report.step == "began"]
    ended = sent.ended or 0.0
    after = max((ended - kill.at for kill in progress.kills if sent.call in kill.running), default=None)
    if after is not None and after > LEASE_S + GRACE_S:
        faults.append(f"its end came {after:.1f} s after a kill, more than {LEASE_S + GRACE_S:g} s")
    return CallRecord(
        sent.call,
        sent.outcome,
        sent.is_unknown,
        len(began),
        tuple(began),
        sent.posts,
        ended - sent.sent,
        after,
        any(sent.call in kill.on_it for kill in progress.kills),
        tuple(faults),
    )
