"""Resolves requirements against the operator's index with uv, which runs no code of any package here.

It gets no configuration, cache, tool or variable of the user, and a folder that is removed afterwards. It reads the
metadata of wheels only: what has none is refused, and nothing is built. Like the downloads, it uses no proxy and
trusts the authorities of the machine and those of the operator.
"""

import asyncio
import contextlib
import errno
import os
import resource
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from proofbox.contracts.codes import ContractCode
from proofbox.service.errors import PackageIndexError
from proofbox.service.packages.lock import Lock, LockedWheel
from proofbox.service.packages.refusal import PackageRefusedError
from proofbox.service.packages.resolver_output import refuse_resolution
from proofbox.service.packages.target import Target

_LOOK_EVERY_S = 0.2
_STDERR_BYTES_MAX = 64 * 1024
_OUTPUT_BYTES_MAX = 16 * 1024 * 1024
_THREADS = "2"
_NICE = 10
_KILLED_FIRST = "1000"
# Waits until its bounds are set, and becomes the resolver: uv runs no instruction without them.
_BOUNDED_FIRST = ("/bin/sh", "-c", 'read -r _; exec "$@" </dev/null', "sh")
_UV_STATUSES = (0, 1, 2)  # done, no solution, an error that it explains; all others are not of its making
_NO_MEMORY = f"(os error {errno.ENOMEM})"  # as Rust prints an error of the system, whatever words uv has for it


@dataclass(frozen=True, slots=True)
class Index:
    """The operator's package index.

    Attributes:
        url: its root, as ``https://pypi.org/simple``; without credentials.
        credentials: ``user:password``; empty for none.
    """

    url: str
    credentials: str = ""

    @property
    def url_with_credentials(self) -> str:
        """What a client asks."""
        if not self.credentials:
            return self.url
        parts = urlsplit(self.url)
        user, _, password = self.credentials.partition(":")
        netloc = f"{quote(user, safe='')}:{quote(password, safe='')}@{parts.netloc}"
        return urlunsplit(parts._replace(netloc=netloc))


@dataclass(frozen=True, slots=True)
class ResolverLimits:
    """What one resolution may use.

    Attributes:
        time_s: wall clock.
        metadata_bytes_max: what is downloaded for it: metadata, and wheels whose metadata the index has not apart.
        packages_max: how many packages may come out of it.
        memory_bytes: address space of the resolver.
    """

    time_s: float
    metadata_bytes_max: int
    packages_max: int
    memory_bytes: int = 2 * 1024 * 1024 * 1024


class Resolver:
    """Finds the wheels for requirements. Stateless.

    Args:
        index: where packages come from.
        limits: what one resolution may use.
        roots: returns the certificates of the authorities that it trusts, as PEM; it may read files.
    """

    def __init__(self, index: Index, limits: ResolverLimits, roots: Callable[[], str]) -> None:
        self._index = index
        self._limits = limits
        self._roots = roots

    async def resolve(
        self, requirements: Sequence[str], unchanged: Mapping[str, str], target: Target, folder: Path
    ) -> Lock:
        """The wheels to install beside the libraries of the image.

        Args:
            requirements: names, extras and versions.
            unchanged: version by name of the libraries of the image that stay as they are.
            target: what the wheels have to fit.
            folder: an empty folder to work in, below one of its own file system.

        Raises:
            PackageRefusedError: the call has to ask for others.
            PackageIndexError: the index does not answer.
        """
        constraints = [f"{name}=={version}" for name, version in unchanged.items()]
        locked = await self._locked(requirements, constraints, target, folder)
        added = [package for package in locked if unchanged.get(package["name"]) != package.get("version")]
        self._refuse_many(len(added))
        tags = {tag: rank for rank, tag in enumerate(target.tags())}
        return Lock(tuple(_best_wheel(package, tags) for package in added))

    async def find(self, lock: Lock, target: Target, folder: Path) -> Lock:
        """The same wheels as before, with the places where the index has them now.

        Raises:
            PackageRefusedError: the index has one of them no more, or with other bytes, or the image changed.
            PackageIndexError: the index does not answer.
        """
        self._refuse_many(len(lock.wheels))
        _refuse_foreign(lock, target)
        pins = [f"{wheel.name}=={wheel.version}" for wheel in lock.wheels]
        locked = {package["name"]: package for package in await self._locked(pins, [], target, folder, "--no-deps")}
        found = []
        for wheel in lock.wheels:
            rows = {_filename(row): row for row in locked.get(wheel.name, {}).get("wheels", ())}
            row = rows.get(wheel.filename)
            sha256 = "" if row is None else row.get("hashes", {}).get("sha256", "")
            if row is None or sha256 not in {"", wheel.sha256}:
                raise PackageRefusedError(
                    ContractCode.PACKAGE_NOT_FOUND,
                    f"the index no longer has {wheel.filename} as it was (SHA-256 {wheel.sha256})",
                )
            size = row.get("size")
            found.append(LockedWheel(wheel.name, wheel.version, wheel.filename, row["url"], wheel.sha256, size))
        return Lock(tuple(found))

    def _refuse_many(self, count: int) -> None:
        if count > self._limits.packages_max:
            raise PackageRefusedError(
                ContractCode.PACKAGES_TOO_LARGE,
                f"{count} packages would be installed, {self._limits.packages_max} may; ask for fewer",
            )

    async def _locked(
        self, requirements: Sequence[str], constraints: Sequence[str], target: Target, folder: Path, *options: str
    ) -> list[dict[str, Any]]:
        output = folder / "pylock.toml"
        (folder / "home").mkdir()
        (folder / "asked.in").write_text("\n".join(requirements) + "\n", "utf-8")
        (folder / "image.txt").write_text("\n".join(constraints) + "\n", "utf-8")
        command = [
            _uv(), "pip", "compile", "asked.in", "--constraint", "image.txt", "--format", "pylock.toml",
            "--output-file", str(output), "--python", sys.executable, "--python-version", target.python,
            "--python-platform", target.resolver_platform, "--no-build", "--no-config", "--no-python-downloads",
            "--keyring-provider", "disabled", "--no-header", "--no-annotate", "--no-progress", "--color", "never",
            *options,
        ]  # fmt: skip
        status, stderr = await self._run(command, folder)
        if status not in _UV_STATUSES or (status != 0 and _NO_MEMORY in stderr):
            raise PackageRefusedError(
                ContractCode.PACKAGES_TOO_LARGE,
                "finding versions took more memory or disk than it may; ask for fewer packages or exact versions",
            )
        if status != 0:
            raise refuse_resolution(stderr.replace(str(folder), ""), self._index.url, target)
        if output.stat().st_size > _OUTPUT_BYTES_MAX:
            raise PackageRefusedError(ContractCode.PACKAGES_TOO_LARGE, "the list of wheels is too long")
        locked = await asyncio.to_thread(lambda: tomllib.loads(output.read_text("utf-8")))
        packages: list[dict[str, Any]] = locked.get("packages", [])
        return sorted(packages, key=lambda package: str(package["name"]))

    async def _run(self, command: list[str], folder: Path) -> tuple[int, str]:
        environment = {
            "PATH": str(folder / "no-commands"),
            "HOME": str(folder / "home"),
            "TMPDIR": str(folder),
            "UV_CACHE_DIR": str(folder / "cache"),
            "UV_DEFAULT_INDEX": self._index.url_with_credentials,
            "UV_HTTP_TIMEOUT": str(max(1, int(self._limits.time_s / 4))),
            "UV_HTTP_RETRIES": "1",
            "RAYON_NUM_THREADS": _THREADS,
            "TOKIO_WORKER_THREADS": _THREADS,
        }
        if roots := await asyncio.to_thread(self._roots):
            (folder / "roots.pem").write_text(roots, "ascii")
            environment["SSL_CERT_FILE"] = str(folder / "roots.pem")
        with (folder / "stderr").open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                *_BOUNDED_FIRST,
                *command,
                cwd=folder,
                env=environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        try:
            with contextlib.suppress(ProcessLookupError):  # the system killed it already
                self._bound(process.pid)
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.close()
            await self._watch(process, folder)
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        with (folder / "stderr").open("rb") as written:
            return process.returncode or 0, written.read(_STDERR_BYTES_MAX).decode(errors="replace")

    def _bound(self, pid: int) -> None:
        """Bounds files and memory of the resolver; calls go before it, and it before the service."""
        most, memory = max(self._limits.metadata_bytes_max, _OUTPUT_BYTES_MAX), self._limits.memory_bytes
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, most))
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        resource.prlimit(pid, resource.RLIMIT_AS, (memory, memory))
        os.setpriority(os.PRIO_PGRP, pid, _NICE)  # all its threads: it leads a group of its own
        with contextlib.suppress(OSError):  # some systems have no such file, or do not let it be written
            Path(f"/proc/{pid}/oom_score_adj").write_text(_KILLED_FIRST, "ascii")

    async def _watch(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        """Waits for the end, within the bounds of time and bytes."""
        deadline = time.monotonic() + self._limits.time_s
        bytes_max = self._limits.metadata_bytes_max + _file_bytes(folder / "roots.pem")
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await process.wait()
                    return
            if time.monotonic() > deadline:
                raise PackageIndexError(
                    f"packages: the index did not answer all within {self._limits.time_s:g} s; call again"
                )
            if await asyncio.to_thread(_bytes_below, folder) > bytes_max:
                raise PackageRefusedError(
                    ContractCode.PACKAGES_TOO_LARGE,
                    f"finding versions took more than {self._limits.metadata_bytes_max} bytes of metadata; "
                    "ask for exact versions",
                )


def _uv() -> str:
    from uv import find_uv_bin  # noqa: PLC0415 - of the extra `packages`

    return find_uv_bin()


def _file_bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _bytes_below(folder: Path) -> int:
    """What the files below a folder take; those that are removed meanwhile do not count."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{root}/{name}").st_size
    return total


def _filename(row: Mapping[str, str]) -> str:
    """The name of a wheel: given, or the end of its address."""
    return row.get("name") or unquote(urlsplit(row.get("url", "")).path.rpartition("/")[2])


def _refuse_foreign(lock: Lock, target: Target) -> None:
    """Refuses wheels of before that another Python, processor or C library would have to run."""
    tags = set(target.tags())
    for wheel in lock.wheels:
        try:
            fits = not tags.isdisjoint(parse_wheel_filename(wheel.filename)[3])
        except InvalidWheelFilename:
            fits = False
        if not fits:
            raise PackageRefusedError(
                ContractCode.PACKAGE_WITHOUT_WHEEL,
                f"{wheel.filename} was installed then and does not fit Python {target.python} on {target.machine} "
                "Linux, which the image has now; make a call of its own in place of a rerun",
            )


def _best_wheel(package: Mapping[str, Any], tags: Mapping[Tag, int]) -> LockedWheel:
    """The wheel of a resolved package that fits best.

    Raises:
        PackageRefusedError: none fits.
    """
    name, version = str(package["name"]), str(package.get("version", ""))
    best: tuple[int, LockedWheel] | None = None
    rows = package.get("wheels", ())
    for row in rows if isinstance(rows, list) else ():
        filename = _filename(row)
        try:
            found_name, found_version, _, of_wheel = parse_wheel_filename(filename)
        except InvalidWheelFilename:
            continue
        ranks = [tags[tag] for tag in of_wheel if tag in tags]
        if not ranks or found_name != canonicalize_name(name) or "url" not in row:
            continue
        rank = min(ranks)
        if best is None or rank < best[0]:
            sha256 = row.get("hashes", {}).get("sha256", "").lower()
            best = rank, LockedWheel(name, str(found_version), filename, row["url"], sha256, row.get("size"))
    if best is None:
        raise PackageRefusedError(
            ContractCode.PACKAGE_WITHOUT_WHEEL,
            f"{name} {version} has no wheel for the Python of the sandbox; ask for a version that has one",
        )
    return best[1]
