"""What the sandbox image has, asked of the image itself: an operator's own image is described as truly as ours."""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError

from proofbox.contracts.image_contents import ImageContents
from proofbox.contracts.tools import IN_EVERY_IMAGE
from proofbox.service.errors import ServiceError
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import Job, SandboxEngine, SandboxLostError, SandboxSpec, StreamName

log = logging.getLogger("proofbox.inventory")

_NAME: Final = "inventory"
_TURN = "turn_0"
_WALL_S = 30.0
_LIFETIME_S = 60.0
_OUTPUT_BYTES_MAX = 1024 * 1024
_RETRY_AFTER_S = 30.0
_WAIT_S = 10.0


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a program finds in the sandbox image.

    Attributes:
        python: the version of Python; empty if the image has not been asked with success yet.
        libraries: version by name of the installed Python libraries, such as ``{"python-docx": "1.2.0"}``.
        commands: the names of the commands that a shell finds.
        languages: the languages that it can run.
        machine: its processor, such as ``x86_64``; empty if the image does not name it.
        glibc: the version of its C library, such as ``2.41``; empty if the image does not name it.
        image_digest: the id of the image.
    """

    python: str = ""
    libraries: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    commands: tuple[str, ...] = ()
    languages: tuple[str, ...] = tuple(sorted(IN_EVERY_IMAGE))
    machine: str = ""
    glibc: str = ""
    image_digest: str = ""

    @property
    def is_known(self) -> bool:
        """Whether the image has answered."""
        return bool(self.python)


class _Printed(ImageContents):
    """What the program of the image prints."""

    machine: str = ""
    """Its processor."""
    glibc: str = ""
    """The version of its C library."""


class ImageInventory:
    """Asks the image once; what it has cannot change while the service runs.

    Args:
        engine: where sandboxes come from.
        limits: what a sandbox is created with.
    """

    def __init__(self, engine: SandboxEngine, limits: CallLimits) -> None:
        self._engine = engine
        self._limits = replace(limits, wall_s=min(limits.wall_s, _WALL_S))
        self._known: Inventory | None = None
        self._asking: asyncio.Task[None] | None = None
        self._retry_at = 0.0

    async def get(self) -> Inventory:
        """What the image has; never raises.

        The first call asks the image and waits some seconds for it. After a failure, and for who cannot wait any
        longer, the answer is an inventory that is not `Inventory.is_known`; the image is asked again later.
        """
        if self._known is None and self._asking is None and time.monotonic() >= self._retry_at:
            self._asking = asyncio.create_task(self._ask())
        if self._asking is not None:
            # Several may wait for one task, and one that is cancelled must not end it for the others.
            await asyncio.wait([self._asking], timeout=_WAIT_S)
        return self._known or Inventory()

    async def close(self) -> None:
        """Ends what is under way."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    async def _ask(self) -> None:
        try:
            self._known = _inventory(*await self._run_program())
        except (ServiceError, SandboxLostError, ValidationError) as exc:
            self._retry_at = time.monotonic() + _RETRY_AFTER_S
            log.warning("the sandbox image does not list what it has: %s", str(exc).partition("\n")[0])
        except Exception:
            self._retry_at = time.monotonic() + _RETRY_AFTER_S
            log.exception("the sandbox image could not be asked what it has")
        finally:
            self._asking = None

    async def _run_program(self) -> tuple[bytes, str]:
        """What the program of the image prints, and the id of the image."""
        printed = bytearray()

        def collect_stdout(stream: StreamName, piece: bytes, truncated: bool) -> None:
            del truncated
            if stream == "stdout" and len(printed) <= _OUTPUT_BYTES_MAX:
                printed.extend(piece)

        async with self._engine.open(SandboxSpec(_NAME, self._limits, _LIFETIME_S)) as sandbox:
            image_digest = sandbox.info.image_digest
            await sandbox.put(_TURN, [])
            outcome = await sandbox.run(Job(_NAME, b"{}", _NAME, _TURN, self._limits), on_output=collect_stdout)
        if outcome.lost is not None:
            raise SandboxLostError(outcome.lost)
        return bytes(printed), image_digest


def _inventory(printed: bytes, image_digest: str) -> Inventory:
    contents = _Printed.model_validate_json(printed)
    return Inventory(
        python=contents.python,
        libraries=MappingProxyType(contents.libraries),
        commands=tuple(contents.commands),
        languages=tuple(contents.languages),
        machine=contents.machine,
        glibc=contents.glibc,
        image_digest=image_digest,
    )
