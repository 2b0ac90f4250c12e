"""Builds what the processes of a service share: the NATS link, the worker, and the jobs of the one that leads."""

from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from proofbox.service.access.quotas import Quotas
from proofbox.service.app.processes.difference_watch import DifferenceWatch
from proofbox.service.app.processes.equal_settings import facts_of
from proofbox.service.app.processes.readings import dispatch_readings
from proofbox.service.app.settings import Settings
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.call_runner import CallRunner, CallSettings
from proofbox.service.calls.port import CallStore
from proofbox.service.calls.service import Calls
from proofbox.service.concurrency import RepeatedJob
from proofbox.service.dispatch.bridge import ChangeBridge
from proofbox.service.dispatch.effects import QueuePlace
from proofbox.service.dispatch.figures import QueueCounts
from proofbox.service.dispatch.left import LeftCalls
from proofbox.service.dispatch.membership import Jobs, Membership
from proofbox.service.dispatch.nats_link import DispatchUnavailableError, NatsLink
from proofbox.service.dispatch.nats_settings import NatsSettings
from proofbox.service.dispatch.port import Lead
from proofbox.service.dispatch.remote import RemoteDispatch, RemoteParts
from proofbox.service.dispatch.sweep import QueueSweep
from proofbox.service.dispatch.turns import Turns, published_max
from proofbox.service.dispatch.worker import Worker, WorkerParts, WorkerSettings
from proofbox.service.observability.metrics_port import Meter, Reading
from proofbox.service.public_cause import public_cause
from proofbox.service.sandbox.engine import PooledEngine
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.claims import SqlDispatchStore
from proofbox.service.storage.dispatch.members import SqlMemberStore

_SPREAD = 0.2


@dataclass(frozen=True, slots=True)
class DispatchNeeds:
    """What the dispatch needs of the rest of the service.

    Attributes:
        database: the records of all stores.
        store: the calls.
        calls: the life cycle of calls.
        admission: the slots of this process.
        quotas: the shares of callers.
        engine: the sandbox engine.
        meter: counts calls that end here, and shows the queue.
        call_settings: the settings of calls.
        preparing: how many calls of this process wait for their packages.
    """

    database: Database
    store: CallStore
    calls: Calls
    admission: Admission
    quotas: Quotas
    engine: PooledEngine
    meter: Meter
    call_settings: CallSettings
    preparing: Callable[[], int] = lambda: 0


class Dispatching:
    """The parts of one process of a service of many.

    Args:
        settings: the settings.
        needs: the rest of the service.
    """

    def __init__(self, settings: Settings, needs: DispatchNeeds) -> None:
        boot_id = needs.call_settings.boot_id
        self._settings = settings
        self.boot_id = boot_id
        self.database = needs.database
        self._changes = needs.database.changes
        self._is_stopping = False
        self.counts = QueueCounts()
        self.link = NatsLink(_nats_settings(settings, boot_id), self.counts)
        self._engine = needs.engine
        dispatches = SqlDispatchStore(needs.database)
        self._quotas = needs.quotas
        self._turns = turns = Turns(self.link, dispatches, published_max(settings.running_max))
        lease_s = settings.dispatch_lease_s
        left = LeftCalls(dispatches, needs.store, needs.calls.stored, self.link, self.counts)
        self.members = SqlMemberStore(needs.database)
        self._facts = facts_of(settings, needs.call_settings.version)
        self.membership = Membership(self.members, boot_id, settings.role, lease_s, self._could_lead)
        self._watch = DifferenceWatch(self.members)
        self.sweep = QueueSweep(dispatches, left, self.link, self.membership, lease_s, turns)
        self._sweeping = RepeatedJob(
            self._sweep_all, self.sweep.pause_s, "calls without a worker stay open", spread=_SPREAD
        )
        self.membership.on_lead = self._sweeping.wake
        needs.meter.add_readings(self.readings)
        self.remote = RemoteDispatch(
            RemoteParts(
                self.link,
                dispatches,
                needs.store,
                needs.calls.runner,
                needs.calls.waiting,
                self._place_of,
                turns,
                settings.queue_s,
            )
        )
        needs.calls.dispatch = needs.calls.waiting.elsewhere = self.remote
        self.worker: Worker | None = None
        if settings.runs_calls:
            runner = CallRunner(needs.store, needs.call_settings, needs.meter, lambda: self._is_stopping)
            parts = WorkerParts(
                self.link,
                dispatches,
                needs.store,
                needs.calls.stored,
                runner,
                needs.admission,
                lambda: needs.engine.is_up,
                turns,
                left,
                self.counts,
                needs.preparing,
            )
            self.worker = Worker(
                parts,
                WorkerSettings(boot_id, lease_s, settings.dispatch_attempts_max, settings.running_max),
            )
            self.membership.on_report = self.worker.keeper.note_answer

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Connect, and follow calls; stop that at the end.

        Raises:
            NatsRefusedError: the NATS servers refuse this process.
        """
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.link.close)
            await self.link.open()
            self.remote.start()
            stack.push_async_callback(self.remote.stop)
            stack.push_async_callback(self._turns.stop)
            self._turns.start()
            stack.push_async_callback(self._sweeping.stop)
            self._sweeping.start()
            await stack.enter_async_context(ChangeBridge(self._changes, self.link).opened())
            yield

    async def start(self, begin: Jobs, end: Jobs) -> None:
        """Begin to run calls, and the jobs of the service if this process leads.

        Raises:
            StoreFailedError: the store failed.
        """
        await self.membership.start(begin, end)
        await self.members.describe(self.boot_id, self._facts)
        if self.worker is not None:
            self.worker.start()

    async def stop_work(self) -> None:
        """Pull no calls any more, and end those that run here."""
        self._is_stopping = True
        if self.worker is not None:
            await self.worker.stop(self._settings.shutdown_grace_s)

    async def undo_lost(self, artifacts: SqlArtifactStore) -> None:
        """Undo the saves of files that lost processes left.

        Raises:
            StoreFailedError: the store failed.
        """
        await artifacts.undo_lost(await self.members.living())

    def _place_of(self, caller: str) -> QueuePlace:
        settings, share = self._settings, self._quotas.share(caller)
        return QueuePlace(
            caller,
            published_max=published_max(settings.running_max),
            running_max=share.running_together,
            queued_max=share.queued,
            queue_max=settings.queue_max,
        )

    async def _sweep_all(self) -> None:
        await self.sweep.sweep()
        if self.membership.leads:
            await self._watch.look()

    def _could_lead(self) -> Collection[Lead]:
        return (Lead.JOBS, Lead.QUEUE) if self.link.is_up else (Lead.JOBS,)

    def readings(self) -> Iterable[Reading]:
        """The metrics of the queue, the workers and the link; see `dispatch_readings`."""
        return dispatch_readings(lambda: self.sweep.figures, self.counts, self.link)

    async def ping_worker(self) -> None:
        """Check the sandbox engine, and that calls begin.

        Raises:
            EngineUnavailableError: it does not answer, or this worker pauses.
        """
        await self._engine.ping()
        if self.worker is not None:
            self.worker.require_engine()

    async def find_away(self) -> dict[str, str]:
        """Find out what is away that accepted calls wait for: each part, and why."""
        if self.link.is_up:
            with suppress(DispatchUnavailableError):
                await self.link.check()
        why = self.link.why_away()
        return {} if why is None else {"nats": f"{public_cause(why)}; calls are accepted and wait"}


def _nats_settings(settings: Settings, boot_id: str) -> NatsSettings:
    certificate = None
    if settings.nats_certificate_file is not None and settings.nats_certificate_key_file is not None:
        certificate = settings.nats_certificate_file, settings.nats_certificate_key_file
    return NatsSettings(
        urls=tuple(settings.nats_urls.split(",")),
        prefix=settings.nats_prefix,
        name=f"proofbox-{settings.role}-{boot_id}",
        lease_s=settings.dispatch_lease_s,
        credentials_file=settings.nats_credentials_file,
        nkey_file=settings.nats_nkey_file,
        token=settings.nats_token.get_secret_value(),
        user=settings.nats_user,
        password=settings.nats_password.get_secret_value(),
        ca_file=settings.nats_ca_file,
        certificate=certificate,
    )
