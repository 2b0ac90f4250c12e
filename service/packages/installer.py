"""Installs the packages of calls: resolved, downloaded, unpacked and stored as overlays that sandboxes read."""

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from proofbox.contracts.operations import AllowedPackages
from proofbox.contracts.packages.installed import InstalledPackage
from proofbox.contracts.packages.requirements import normal_name
from proofbox.service.access.quotas import PackageAllowance
from proofbox.service.errors import (
    EngineUnavailableError,
    PackageIndexError,
    StoreFailedError,
    StoreFullError,
    build_store_error,
)
from proofbox.service.identity import Principal
from proofbox.service.packages.bytecode import BytecodeCompiler
from proofbox.service.packages.downloads import Downloads
from proofbox.service.packages.limits import InstallLimits
from proofbox.service.packages.lock import Lock, LockedWheel
from proofbox.service.packages.overlays import Overlays, Reservation
from proofbox.service.packages.places import InstallPlaces
from proofbox.service.packages.port import InstalledPackages, InstallObserver, NoInstallObserver
from proofbox.service.packages.refusal import PackageRefusedError
from proofbox.service.packages.resolutions import Resolutions
from proofbox.service.packages.resolver import Resolver
from proofbox.service.packages.target import Target
from proofbox.service.packages.thread_work import finish_in_thread
from proofbox.service.packages.wheel_files import Room, UnpackedSize, measure, unpack

log = logging.getLogger("proofbox.packages")

_NAMED_MAX = 8


class _LateError(PackageIndexError):
    """An installation took longer than one may."""


@dataclass(frozen=True, slots=True)
class InstallerParts:
    """What an installer uses.

    Attributes:
        resolver: finds wheels.
        downloads: downloads them.
        overlays: has what is installed.
        resolutions: has what was found before.
        places: bounds what is installed at the same time; tenants share them, and callers within a tenant.
        target: returns what packages have to fit; None if the image has not answered.
        bytecode: adds the bytecode of modules; None: packages have none.
    """

    resolver: Resolver
    downloads: Downloads
    overlays: Overlays
    resolutions: Resolutions
    places: InstallPlaces
    target: Callable[[], Coroutine[None, None, Target | None]]
    bytecode: BytecodeCompiler | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one call asks for.

    Attributes:
        requirements: names, extras and versions.
        principal: who asks.
        limits: what installing them may use.
        pinned: what has to be installed in place of what the index has now.
    """

    requirements: Sequence[str]
    principal: Principal
    limits: InstallLimits
    pinned: Sequence[InstalledPackage] | None


@dataclass(frozen=True, slots=True)
class _Work:
    """An installation under way.

    Attributes:
        folder: an empty folder of its own.
        asked: of the call that it began for.
        timeout: ends it when its time is over.
    """

    folder: Path
    asked: _Asked
    timeout: asyncio.Timeout


_Install = Callable[[_Work], Coroutine[None, None, Lock]]
_Key = tuple[str, InstallLimits]
"""What is installed, and within which limits: a call never waits for an installation with less."""


@dataclass(slots=True)
class PackageInstaller:
    """Installs packages for calls; the same ones once, however many calls ask for them at the same time.

    Attributes:
        parts: what it uses.
        limits: what one installation may use.
        allowed: the names that calls may ask for; empty for all. What these need themselves is not asked for.
        of_caller: returns what a caller may have, within limits and names of the operator.
        observer: gets what is done.
    """

    parts: InstallerParts
    limits: InstallLimits
    allowed: Sequence[str] = ()
    of_caller: Callable[[str], PackageAllowance] = lambda _: PackageAllowance()
    observer: InstallObserver = field(default_factory=NoInstallObserver)
    preparing: int = 0
    """Calls that wait for their packages now."""
    _tasks: dict[_Key, asyncio.Task[Lock]] = field(default_factory=dict)

    def find_mistakes(self, requirements: Sequence[str], caller: str) -> list[tuple[int, str]]:
        """See `Packages.find_mistakes`."""
        found: list[tuple[int, str]] = []
        names: set[str] = set()
        allowed = [("by the operator", self.allowed)] if self.allowed else []
        if (of_key := self.of_caller(caller).names) is not None:
            allowed.append(("for this API key", of_key))
        for number, text in enumerate(requirements):
            try:
                name = normal_name(Requirement(text).name)
            except InvalidRequirement:
                found.append((number, f"{text} has no version that can be; write name>=1,<2 or name==1.2.*"))
                continue
            lists = [(by, of) for by, of in allowed if name not in map(normal_name, of)]
            if name in names:
                found.append((number, f"{name} is asked for twice; write its versions in one entry, name>=1,<2"))
            elif lists:
                by, of = lists[0]
                shown = ", ".join(of[:_NAMED_MAX]) or "none"
                found.append(
                    (
                        number,
                        f"{name} is not allowed {by} ({shown}); leave the entry out, or ask the operator for it",
                    )
                )
            names.add(name)
        return found

    def describe(self, caller: str) -> AllowedPackages:
        """See `Packages.describe`."""
        lists = [self.allowed or None, self.of_caller(caller).names]
        named = [set(map(normal_name, names)) for names in lists if names is not None]
        return AllowedPackages(names=sorted(set.intersection(*named)) if named else None)

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
        self,
        requirements: Sequence[str],
        principal: Principal,
        pinned: Sequence[InstalledPackage] | None = None,
    ) -> AsyncIterator[InstalledPackages]:
        """See `Packages.use`."""
        with self._counted():
            target = await self.parts.target()
        if target is None:
            raise EngineUnavailableError("the sandbox image has not named its Python yet; call again")
        limits = self.limits.narrowed(self.of_caller(principal.caller))
        asked = _Asked(requirements, principal, limits, pinned)
        versions = {normal_name(found.name): found.specifier for found in map(Requirement, requirements)}
        unchanged = target.unchanged(versions)
        present = tuple(f"{name} {unchanged[name]}" for name in sorted(versions) if name in unchanged)
        for _ in range(2):  # what is there may be removed between its installation and its use
            with self._counted():
                lock = await self._lock(asked, unchanged, target)
            names = [wheel.name for wheel in lock.wheels]
            if not names:
                yield InstalledPackages("", (), present)
                return
            limits.require_count(len(names))  # also where a caller that may have more has installed them
            digest = lock.digest(target.image_digest)
            limits.require_bytes(self.parts.overlays.unpacked_bytes(digest))
            with self.parts.overlays.hold(digest) as folder:
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

    async def _lock(self, asked: _Asked, unchanged: dict[str, str], target: Target) -> Lock:
        """What is to be used, and is installed now."""
        overlays, resolutions = self.parts.overlays, self.parts.resolutions

        def present(lock: Lock | None) -> Lock | None:
            is_there = lock is not None and (not lock.wheels or overlays.has(lock.digest(target.image_digest)))
            return lock if is_there else None

        if asked.pinned is not None:
            again = Lock.of_installed(asked.pinned)
            return await self._once(
                again.digest(target.image_digest),
                asked,
                lambda: present(again),
                lambda work: self._install(again, target, work, is_found=False),
            )
        key = resolutions.key(asked.requirements, target)

        async def resolve(work: _Work) -> Lock:
            known = resolutions.get(key)
            if known is not None:
                of_known = replace(work, folder=work.folder / "known")
                with contextlib.suppress(PackageRefusedError):  # gone from the index: another version then
                    return await self._install(known, target, of_known, is_found=False)
            folder = _made(work.folder / "resolving")
            found = await self.parts.resolver.resolve(asked.requirements, unchanged, target, folder)
            await finish_in_thread(partial(shutil.rmtree, folder))  # its metadata may be large
            lock = await self._install(found, target, work, is_found=True)
            await resolutions.put(key, lock)
            return lock

        return await self._once(key, asked, lambda: present(resolutions.get(key)), resolve)

    async def _once(self, name: str, asked: _Asked, present: Callable[[], Lock | None], install: _Install) -> Lock:
        """What is there, or will be by what is under way, or by what begins here.

        Each caller waits in its own line, and holds a place of its own while it waits for the installation of
        another. One that began goes on if its callers are cancelled, and has its place until its end.
        """
        if (lock := present()) is not None:
            self.observer.packages_found()
            return lock
        with contextlib.ExitStack() as place:
            deadline = time.monotonic() + asked.limits.time_s
            place.enter_context(await self.parts.places.enter(deadline, asked.principal))
            if (lock := present()) is not None:
                self.observer.packages_found()
                return lock
            key = name, asked.limits
            task = self._tasks.get(key)
            if task is not None:
                with contextlib.suppress(_LateError):  # it began earlier than this caller, which has time left
                    return await asyncio.shield(task)
                task = self._tasks.get(key)
            if task is None:
                task = self._begin(key, asked, install, place.pop_all())
            return await asyncio.shield(task)

    def _begin(
        self, key: _Key, asked: _Asked, install: _Install, place: contextlib.ExitStack
    ) -> asyncio.Task[Lock]:
        task = asyncio.create_task(self._in_place(asked, install))
        self._tasks[key] = task
        task.add_done_callback(lambda _: self._tasks.pop(key, None))
        task.add_done_callback(lambda _: place.close())
        task.add_done_callback(_retrieve)
        return task

    async def _in_place(self, asked: _Asked, install: _Install) -> Lock:
        """Installs within the time of one installation."""
        self.parts.overlays.require_room()
        began, time_s, ok = time.monotonic(), asked.limits.time_s, False
        try:
            async with asyncio.timeout(time_s) as timeout, self.parts.overlays.work_folder() as folder:
                lock = await install(_Work(folder, asked, timeout))
                ok = True
        except TimeoutError as exc:
            raise _LateError(
                f"packages: installing them took more than {time_s:g} s (package_install_s of the API key, or "
                "PROOFBOX_PACKAGE_INSTALL_S); call again later"
            ) from exc
        except OSError as exc:
            log.exception("packages cannot be installed")
            message = f"packages: they cannot be stored ({exc.strerror}); call again later"
            raise build_store_error(exc, full=message, failed=message) from exc
        finally:
            self.observer.packages_installed(ok=ok, seconds=time.monotonic() - began)
        log.info("installed %d packages in %.1f s", len(lock.wheels), time.monotonic() - began)
        return lock

    async def _install(self, lock: Lock, target: Target, work: _Work, *, is_found: bool) -> Lock:
        """Downloads, unpacks and compiles wheels, and makes an overlay of them; returns them with their hashes.

        What is written is reserved before: what the index announces, or the limit where it does not; then what the
        tables of the wheels state.
        """
        folder, limits, overlays = _made(work.folder), work.asked.limits, self.parts.overlays
        if not lock.wheels:
            return lock
        limits.require_count(len(lock.wheels))
        if not is_found:
            lock = await self.parts.resolver.find(lock, target, _made(folder / "finding"))
        async with overlays.reserve(min(_download_bytes(lock, limits), overlays.bytes_max)) as reserved:
            wheels = await self.parts.downloads.fetch(lock.wheels, _made(folder / "wheels"), limits)
            size = await asyncio.to_thread(_measure, wheels, Room(limits.bytes_max, limits.files_max))
            downloaded = sum(wheel.size_bytes or 0 for wheel, _ in wheels)
            await overlays.resize(reserved, downloaded + size.disk_bytes, downloaded)
            made = _made(folder / "overlay")
            room = Room(limits.bytes_max, limits.files_max)
            await finish_in_thread(lambda: _unpack(wheels, made, room), room.is_stopped.set)
            await overlays.resize(reserved, size.disk_bytes, size.disk_bytes)
            lock = Lock(tuple(wheel for wheel, _ in wheels))
            if self.parts.bytecode is not None:
                work.timeout.reschedule(None)  # compiling has bounds of its own, and what it lacks costs no call
                await self._compile(self.parts.bytecode, made, (reserved, size), (target, work))
            await overlays.add(lock.digest(target.image_digest), made, size.bytes_total, reserved)
        return lock

    async def _compile(
        self,
        bytecode: BytecodeCompiler,
        made: Path,
        room: tuple[Reservation, UnpackedSize],
        of: tuple[Target, _Work],
    ) -> None:
        """Adds bytecode, if the disk has room for it."""
        (reserved, size), (target, work) = room, of
        try:
            await self.parts.overlays.resize(reserved, size.disk_bytes + size.bytecode_disk_bytes, size.disk_bytes)
        except StoreFullError as exc:
            log.warning("packages are used without bytecode: %s", exc)
            return
        async with self.parts.overlays.shown(made) as shown:
            owner = work.asked.principal.caller
            compiled = await bytecode.add_to(shown, target.python, owner, size.bytecode_bytes_max)
        log.info("compiled %d modules", compiled)


def _download_bytes(lock: Lock, limits: InstallLimits) -> int:
    """What the wheels of a lock take: the limit, if the index does not announce the size of each."""
    sizes = [wheel.size_bytes for wheel in lock.wheels if wheel.size_bytes]
    return sum(sizes) if len(sizes) == len(lock.wheels) else limits.bytes_max


def _measure(wheels: Sequence[tuple[LockedWheel, Path]], room: Room) -> UnpackedSize:
    return sum((measure(path, wheel, room) for wheel, path in wheels), UnpackedSize())


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
