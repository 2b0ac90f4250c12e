"""Installs the packages of calls: resolved, downloaded, unpacked and stored as overlays that sandboxes read."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from proofbox.contracts.packages.installed import InstalledPackage
from proofbox.contracts.packages.requirements import normal_name
from proofbox.service.calls.admission import Admission
from proofbox.service.errors import (
    EngineUnavailableError,
    PackageIndexError,
    StoreFailedError,
    StoreFullError,
    build_store_error,
)
from proofbox.service.packages.bytecode import BytecodeCompiler
from proofbox.service.packages.downloads import Downloads
from proofbox.service.packages.lock import Lock, LockedWheel
from proofbox.service.packages.overlays import Overlays
from proofbox.service.packages.port import InstalledPackages, InstallObserver, NoInstallObserver
from proofbox.service.packages.refusal import PackageRefusedError
from proofbox.service.packages.resolutions import Resolutions
from proofbox.service.packages.resolver import Resolver
from proofbox.service.packages.target import Target
from proofbox.service.packages.thread_work import finish_in_thread
from proofbox.service.packages.wheel_files import Room, unpack

log = logging.getLogger("proofbox.packages")

_NAMED_MAX = 8


class _LateError(PackageIndexError):
    """An installation took longer than one may."""


@dataclass(frozen=True, slots=True)
class InstallLimits:
    """What installing the packages of one call may use.

    Attributes:
        time_s: wall clock of one installation as a whole, and the longest wait for a place.
        bytes_max: of the unpacked packages; the downloads may have as many.
        files_max: files and folders of the unpacked packages.
    """

    time_s: float
    bytes_max: int
    files_max: int


@dataclass(frozen=True, slots=True)
class InstallerParts:
    """What an installer uses.

    Attributes:
        resolver: finds wheels.
        downloads: downloads them.
        overlays: has what is installed.
        resolutions: has what was found before.
        places: bounds what is installed at the same time, with a line for each caller.
        target: returns what packages have to fit; None if the image has not answered.
        bytecode: adds the bytecode of modules; None: packages have none.
    """

    resolver: Resolver
    downloads: Downloads
    overlays: Overlays
    resolutions: Resolutions
    places: Admission
    target: Callable[[], Coroutine[None, None, Target | None]]
    bytecode: BytecodeCompiler | None = None


@dataclass(frozen=True, slots=True)
class _Work:
    """An installation under way.

    Attributes:
        folder: an empty folder of its own.
        owner: the caller that it began for.
        limit: ends it when its time is over.
    """

    folder: Path
    owner: str
    limit: asyncio.Timeout


_Install = Callable[[_Work], Coroutine[None, None, Lock]]


@dataclass(slots=True)
class PackageInstaller:
    """Installs packages for calls; the same ones once, however many calls ask for them at the same time.

    Attributes:
        parts: what it uses.
        limits: what one installation may use.
        allowed: the names that calls may ask for; empty for all. What these need themselves is not asked for.
        observer: gets what is done.
    """

    parts: InstallerParts
    limits: InstallLimits
    allowed: Sequence[str] = ()
    observer: InstallObserver = field(default_factory=NoInstallObserver)
    preparing: int = 0
    """Calls that wait for their packages now."""
    _tasks: dict[str, asyncio.Task[Lock]] = field(default_factory=dict)

    def find_mistakes(self, requirements: Sequence[str]) -> list[tuple[int, str]]:
        """See `Packages.find_mistakes`."""
        found: list[tuple[int, str]] = []
        names: set[str] = set()
        shown = ", ".join(self.allowed[:_NAMED_MAX])
        allowed = set(map(normal_name, self.allowed))
        for number, text in enumerate(requirements):
            try:
                name = normal_name(Requirement(text).name)
            except InvalidRequirement:
                found.append((number, f"{text} has no version that can be; write name>=1,<2 or name==1.2.*"))
                continue
            if name in names:
                found.append((number, f"{name} is asked for twice; write its versions in one entry, name>=1,<2"))
            elif allowed and name not in allowed:
                found.append((number, f"{name} is not allowed by the operator ({shown}); leave the entry out"))
            names.add(name)
        return found

    def open(self) -> None:
        """See `Packages.open`."""
        try:
            self.parts.overlays.open()
        except OSError as exc:
            raise StoreFailedError(
                f"the folder of packages cannot be used: {exc}; set PROOFBOX_PACKAGE_DIR to one that is writable"
            ) from exc

    async def close(self) -> None:
        """See `Packages.close`."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.parts.overlays.close()

    @asynccontextmanager
    async def use(
        self, requirements: Sequence[str], owner: str, pinned: Sequence[InstalledPackage] | None = None
    ) -> AsyncIterator[InstalledPackages]:
        """See `Packages.use`."""
        with self._counted():
            target = await self.parts.target()
        if target is None:
            raise EngineUnavailableError("the sandbox image has not named its Python yet; call again")
        asked = {normal_name(found.name): found.specifier for found in map(Requirement, requirements)}
        unchanged = target.unchanged(asked)
        present = tuple(f"{name} {unchanged[name]}" for name in sorted(asked) if name in unchanged)
        for _ in range(2):  # what is there may be removed between its installation and its use
            with self._counted():
                lock = await self._lock(requirements, unchanged, target, owner, pinned)
            names = [wheel.name for wheel in lock.wheels]
            if not names:
                yield InstalledPackages("", (), present)
                return
            with self.parts.overlays.hold(lock.digest(target.image_digest)) as folder:
                if folder is not None:
                    replaces = bool(target.replaced(names))
                    yield InstalledPackages(folder, tuple(lock.installed), present, replaces)
                    return
        raise StoreFullError(
            "the disk has no room for the packages of all calls at the same time; call again later"
        )

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.preparing += 1
        try:
            yield
        finally:
            self.preparing -= 1

    async def _lock(
        self,
        requirements: Sequence[str],
        unchanged: dict[str, str],
        target: Target,
        owner: str,
        pinned: Sequence[InstalledPackage] | None,
    ) -> Lock:
        """What is to be used, and is installed now."""
        overlays, resolutions = self.parts.overlays, self.parts.resolutions

        def present(lock: Lock | None) -> Lock | None:
            is_there = lock is not None and (not lock.wheels or overlays.has(lock.digest(target.image_digest)))
            return lock if is_there else None

        if pinned is not None:
            again = Lock.of_installed(pinned)
            return await self._once(
                again.digest(target.image_digest),
                owner,
                lambda: present(again),
                lambda work: self._install(again, target, work, is_found=False),
            )
        key = resolutions.key(requirements, target)

        async def resolve(work: _Work) -> Lock:
            known = resolutions.get(key)
            if known is not None:
                of_known = replace(work, folder=work.folder / "known")
                with contextlib.suppress(PackageRefusedError):  # gone from the index: another version then
                    return await self._install(known, target, of_known, is_found=False)
            folder = _made(work.folder / "resolving")
            found = await self.parts.resolver.resolve(requirements, unchanged, target, folder)
            lock = await self._install(found, target, work, is_found=True)
            await resolutions.put(key, lock)
            return lock

        return await self._once(key, owner, lambda: present(resolutions.get(key)), resolve)

    async def _once(
        self,
        key: str,
        owner: str,
        present: Callable[[], Lock | None],
        install: _Install,
    ) -> Lock:
        """What is there, or will be by what is under way, or by what begins here.

        Each caller waits in its own line, and holds a place of its own while it waits for the installation of
        another. One that began goes on if its callers are cancelled, and has its place until its end.
        """
        if (lock := present()) is not None:
            self.observer.packages_found()
            return lock
        with contextlib.ExitStack() as place:
            deadline = time.monotonic() + self.limits.time_s
            place.enter_context(await self.parts.places.enter(deadline, lambda _: None, owner))
            if (lock := present()) is not None:
                self.observer.packages_found()
                return lock
            task = self._tasks.get(key)
            if task is not None:
                with contextlib.suppress(_LateError):  # it began earlier than this caller, which has time left
                    return await asyncio.shield(task)
                task = self._tasks.get(key)
            if task is None:
                task = self._begin(key, owner, install, place.pop_all())
            return await asyncio.shield(task)

    def _begin(self, key: str, owner: str, install: _Install, place: contextlib.ExitStack) -> asyncio.Task[Lock]:
        task = asyncio.create_task(self._in_place(owner, install))
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))
        task.add_done_callback(lambda _: place.close())
        task.add_done_callback(_retrieve)
        return task

    async def _in_place(self, owner: str, install: _Install) -> Lock:
        """Installs within the time of one installation."""
        self.parts.overlays.require_room()
        began, time_s, ok = time.monotonic(), self.limits.time_s, False
        try:
            async with asyncio.timeout(time_s) as limit, self.parts.overlays.work_folder() as folder:
                lock = await install(_Work(folder, owner, limit))
                ok = True
        except TimeoutError as exc:
            raise _LateError(f"packages: installing them took more than {time_s:g} s; call again later") from exc
        except OSError as exc:
            log.exception("packages cannot be installed")
            message = f"packages: they cannot be stored ({exc.strerror}); call again later"
            raise build_store_error(exc, full=message, failed=message) from exc
        finally:
            self.observer.packages_installed(ok=ok, seconds=time.monotonic() - began)
        log.info("installed %d packages in %.1f s", len(lock.wheels), time.monotonic() - began)
        return lock

    async def _install(self, lock: Lock, target: Target, work: _Work, *, is_found: bool) -> Lock:
        """Downloads, unpacks and compiles wheels, and makes an overlay of them; returns them with their hashes."""
        folder = _made(work.folder)
        if not lock.wheels:
            return lock
        if not is_found:
            lock = await self.parts.resolver.find(lock, target, _made(folder / "finding"))
        wheels = await self.parts.downloads.fetch(lock.wheels, _made(folder / "wheels"), self.limits.time_s)
        made = _made(folder / "overlay")
        room = Room(self.limits.bytes_max, self.limits.files_max, threading.Event())
        await finish_in_thread(lambda: _unpack(wheels, made, room), room.is_stopped.set)
        lock = Lock(tuple(wheel for wheel, _ in wheels))
        if self.parts.bytecode is not None:
            work.limit.reschedule(None)  # compiling has bounds of its own, and what it lacks costs no call
            async with self.parts.overlays.shown(made) as shown:
                compiled = await self.parts.bytecode.add_to(shown, target.python, work.owner)
            log.info("compiled %d modules", compiled)
        await self.parts.overlays.add(lock.digest(target.image_digest), made)
        return lock


def _unpack(wheels: Sequence[tuple[LockedWheel, Path]], into: Path, room: Room) -> None:
    for wheel, path in wheels:
        unpack(path, wheel, into, room)
        path.unlink()


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _retrieve(task: asyncio.Task[Lock]) -> None:
    """Nobody may wait for it any more; then its exception is not an error of the event loop."""
    if not task.cancelled():
        task.exception()
