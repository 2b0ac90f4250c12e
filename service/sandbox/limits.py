"""The limits of one call: the operator's, lowered by what the request asks for."""

import time
from dataclasses import dataclass, fields, replace

from proofbox.contracts.problems import FieldError
from proofbox.contracts.tool_call_request import Limits
from proofbox.service.errors import LimitNotAllowedError
from proofbox.service.sandbox.workspace import ArchiveBounds

# A sandbox that lowers its memory must not be filled by its own temporary file systems, which count as memory.
TMPFS_SHARE_OF_MEMORY = 0.5

PAGE_BYTES = 4096  # a file system in memory gives a file whole pages
OWN_INODES = 4  # OUT_DIR itself, the turn's folder, files/ and its other name
# Blocks, tokens and slack of OUT_DIR's file system: inputs may fill it to this share.
_INPUT_SHARE = 0.9

DEFAULT_WORKSPACE = ArchiveBounds(entries_max=10_000, bytes_max=128 * 1024 * 1024)


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Every limit of a call, filled in; the units stand in the names."""

    wall_s: float
    cpus: float
    memory_bytes: int
    pids: int
    out_dir_bytes: int
    out_dir_inodes: int
    file_bytes: int
    files: int
    depth: int
    output_bytes: int
    artifact_bytes: int

    def lowered(self, asked: Limits, *, timeout_s: float | None = None) -> "CallLimits":
        """These limits with what a request asks for in place of the operator's.

        ``timeout_s``, the model's own parameter, is capped; ``limits`` come from the caller's program and are
        refused when they ask for more.

        Raises:
            LimitNotAllowedError: a limit above the operator's.
        """
        given = {name: value for name, value in asked.model_dump().items() if value is not None}
        above = [
            FieldError(
                field=f"limits.{name}",
                code="limit_not_allowed",
                message=f"is {value}, the operator allows {allowed} at most; ask for less or leave it out",
            )
            for name, value in given.items()
            if value > (allowed := getattr(self, name))
        ]
        if above:
            listed = "; ".join(f"{error.field} {error.message}" for error in above)
            raise LimitNotAllowedError(listed, errors=above)
        wall_s = given.get("wall_s", self.wall_s)
        given["wall_s"] = wall_s if timeout_s is None else min(wall_s, timeout_s)
        room = int(given.get("memory_bytes", self.memory_bytes) * TMPFS_SHARE_OF_MEMORY)
        given["out_dir_bytes"] = min(given.get("out_dir_bytes", self.out_dir_bytes), room)
        return replace(self, **given)

    def needs_own_container(self, default: "CallLimits") -> bool:
        """Whether a container started with ``default`` limits cannot serve a call with these, whatever is done.

        The size of a file system is settled when it is mounted.
        """
        return self._differs(default, "out_dir_bytes", "out_dir_inodes")

    def needs_update(self, default: "CallLimits") -> bool:
        """Whether the control group of a container started with ``default`` limits has to be changed.

        The runner inside keeps the wall clock, file size, counts and output itself.
        """
        return self._differs(default, "cpus", "memory_bytes", "pids")

    def _differs(self, other: "CallLimits", *names: str) -> bool:
        return any(getattr(self, name) != getattr(other, name) for name in names)


def room_bytes(limits: CallLimits) -> int:
    """How many bytes of OUT_DIR the inputs of a call may fill."""
    return int(limits.out_dir_bytes * _INPUT_SHARE)


@dataclass(frozen=True, slots=True)
class CallBounds:
    """What one call may use.

    Attributes:
        limits: its limits, the request's in place.
        deadline: until when it has to have a place, on the monotonic clock.
        lifetime_s: how long its sandbox may exist.
    """

    limits: CallLimits
    deadline: float
    lifetime_s: float


@dataclass(frozen=True, slots=True)
class CallPolicy:
    """The operator's decisions about any call.

    Attributes:
        limits: the highest limits.
        queue_s: how long a call may wait for a place beyond its own wall clock.
        overhead_s: what a sandbox may exist beyond the program's wall clock.
        inline_bytes_max: how many bytes of PDFs and images one answer carries.
        workspace: how large the workspace of a conversation may be, where OUT_DIR has room for it.
    """

    limits: CallLimits
    queue_s: float
    overhead_s: float
    inline_bytes_max: int
    workspace: ArchiveBounds = DEFAULT_WORKSPACE

    @property
    def workspace_bounds(self) -> ArchiveBounds:
        """The bounds of a workspace that OUT_DIR has room for, so that the next call can begin with it."""
        room = room_bytes(self.limits)
        entries = min(self.workspace.entries_max, self.limits.out_dir_inodes - OWN_INODES, room // 2 // PAGE_BYTES)
        return ArchiveBounds(entries, min(self.workspace.bytes_max, room - entries * PAGE_BYTES))

    def bounds(self, asked: Limits, *, timeout_s: float | None = None) -> CallBounds:
        """The bounds of a call that comes now. Raises as `CallLimits.lowered`."""
        limits = self.limits.lowered(asked, timeout_s=timeout_s)
        return CallBounds(limits, time.monotonic() + limits.wall_s + self.queue_s, limits.wall_s + self.overhead_s)


def limit_names() -> tuple[str, ...]:
    """The names of all limits, for docs and tests."""
    return tuple(field.name for field in fields(CallLimits))
