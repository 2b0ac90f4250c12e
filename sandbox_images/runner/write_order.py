"""In which order a program wrote to stdout and to stderr, as far as the kernel records it.

Two pipes keep no order between them. But the kernel can send the reader of a pipe a signal for each write, with the
pipe's descriptor. Real-time signals are queued one behind the other, so their queue is a record of the writes. The
signal stays blocked and the record is read from a descriptor, so no write wakes this process. The pipes are in
packet mode: each read gives the bytes of one write, so writes on record and bytes that were read are matched one by
one. Where the kernel has neither (gVisor), or a signal is lost, the order is that in which the pipes were read.

A write that finds its pipe full is on record twice. From there on the writes of that pipe can stand one place too
early, until a round finds both pipes empty.

A program that opens its stream anew (`echo text > /dev/stderr`) writes without packets: one read can give several
of its writes. Where more writes are on record than packets were read, and no pipe was full, such a packet is split
at the ends of its lines. The record is complete only once a read finds both pipes empty: a program may write to
both between the reads of the two.
"""

from __future__ import annotations

import _ctypes
import _signal
import contextlib
import fcntl
import os
import resource
import select
import struct

PIPE_PACKETS = 256
"""How many writes a pipe holds."""
ROUND_READS_MAX = 16
"""How often the pipes are read in a round, if the program never stops writing."""

_SIGNAL = 40  # any real-time signal
_F_SETSIG = 10
_SET_BYTES = 128
_RECORD = struct.Struct("<I4xi8xi104x")  # of signalfd_siginfo: number, code, descriptor
_READ_BYTES = 256 * _RECORD.size
_READS_MAX = 8
_LATE_S = 0.001
# Of the 1,024 that programs of our user can have pending, these stay for the programs.
_LEFT_TO_PROGRAMS = 256
_PACKET_BYTES_MAX = 4096  # a longer write is several packets


def make_output_pipe() -> tuple[int, int]:
    """The read end and the write end of a pipe for the output of a program, in packet mode where the kernel can."""
    try:
        ends = os.pipe2(os.O_CLOEXEC | os.O_DIRECT)
    except OSError:
        return os.pipe()
    # Refused where our user has too many large pipes: then the program waits more often.
    with contextlib.suppress(OSError):
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, PIPE_PACKETS * _PACKET_BYTES_MAX)
    return ends


class WriteOrder:
    """Puts what is read from some pipes into the order of the writes.

    One round is: `note_writes` and `take` what can be read from each pipe, again until nothing can; then `ordered`.

    Args:
        kinds: the read ends of the pipes, with the name that `ordered` gives each.
    """

    def __init__(self, kinds: dict[int, int]) -> None:
        self._kinds = kinds
        self._fd = -1
        self._writes: list[int] = []  # on record, with no packet yet; by name of the pipe
        self._noted = 0  # of these, how many were on record before the pipes were read
        self._packets: dict[int, list[bytes]] = {kind: [] for kind in kinds.values()}
        self._was_full = False  # a pipe, since both were last found empty
        self._opened_anew = set[int]()  # pipes of which one read gives several writes
        self._unrecorded = dict.fromkeys(kinds.values(), 0)  # packets that were given before their records came
        try:
            self._begin()
        except (OSError, ValueError):
            self.close()

    def _begin(self) -> None:
        # An event that finds the queue full comes as SIGIO in place of it.
        _signal.pthread_sigmask(_signal.SIG_BLOCK, [_SIGNAL, _signal.SIGIO])
        soft, hard = resource.getrlimit(resource.RLIMIT_SIGPENDING)
        if soft > 2 * _LEFT_TO_PROGRAMS:
            resource.setrlimit(resource.RLIMIT_SIGPENDING, (soft - _LEFT_TO_PROGRAMS, hard))
        self._fd = _signal_descriptor(_SIGNAL)
        for fd in self._kinds:
            fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
            fcntl.fcntl(fd, _F_SETSIG, _SIGNAL)
            fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)

    def note_writes(self) -> None:
        """Reads the record. The bytes of all that is on it are in the pipes."""
        self._writes += self._recorded()
        self._noted = len(self._writes)

    def take(self, kind: int, packet: bytes) -> None:
        """Takes the next packet of a pipe."""
        packets = self._packets[kind]
        if packets and len(packets[-1]) % _PACKET_BYTES_MAX == 0:
            packets[-1] += packet  # of the same write
        else:
            packets.append(packet)

    def end(self, kind: int) -> None:
        """Takes the end of a pipe: that its last writer closed it is on record like a write, and is removed."""
        self._writes += self._recorded()
        for place in range(len(self._writes) - 1, -1, -1):
            if self._writes[place] == kind:
                del self._writes[place]
                self._noted -= place < self._noted
                return

    def ordered(self, *, all_read: bool, is_end: bool = False) -> list[tuple[int, bytes]]:
        """The packets whose place is known by now, in the order of their writes.

        Args:
            all_read: every pipe was read until it was empty.
            is_end: nothing more is read; all packets that are left are given.
        """
        if not all_read:
            self._noted = 0
        if any(self._packets.values()):
            self._writes += self._recorded()
        self._split_merged()
        ordered = self._matched()
        while not self._writes and any(self._packets.values()) and self._wait():
            # The bytes of a write can be read a moment before its signal.
            self._writes += self._recorded()
            ordered += self._matched()
        if is_end or not self._writes:
            ordered += [(kind, packet) for kind, packets in self._packets.items() for packet in packets]
            for kind, packets in self._packets.items():
                self._unrecorded[kind] += len(packets)
            self._packets = {kind: [] for kind in self._packets}
        self._was_full = self._was_full and bool(self._writes)
        return ordered

    def _split_merged(self) -> None:
        """Splits packets of several writes, where the record shows that there are some."""
        self._was_full = self._was_full or any(len(packets) >= PIPE_PACKETS for packets in self._packets.values())
        if self._was_full:
            return
        for kind, packets in self._packets.items():
            known = len(packets) + self._unrecorded[kind]
            if self._writes[: self._noted].count(kind) > known:
                self._opened_anew.add(kind)
            if kind in self._opened_anew:  # then what was written while the pipes were read is merged too
                self._packets[kind] = _split_at_lines(packets, self._writes.count(kind) - known)

    def _matched(self) -> list[tuple[int, bytes]]:
        ordered: list[tuple[int, bytes]] = []
        done = 0
        for kind in self._writes:
            if self._packets[kind]:
                ordered.append((kind, self._packets[kind].pop(0)))
            elif done >= self._noted:
                break  # written while the pipes were read: its packet comes with the next round
            elif self._unrecorded[kind]:
                self._unrecorded[kind] -= 1
            done += 1
        del self._writes[:done]
        self._noted = max(0, self._noted - done)
        return ordered

    def _recorded(self) -> list[int]:
        """The writes since the last call, in order: the name of the pipe that each went to."""
        writes: list[int] = []
        if self._fd < 0:
            return writes
        try:
            for _ in range(_READS_MAX):
                records = os.read(self._fd, _READ_BYTES)
                for _, code, fd in _RECORD.iter_unpack(records):
                    # What a program sends has a code of 0 or less.
                    if code > 0 and fd in self._kinds:
                        writes.append(self._kinds[fd])
                if len(records) < _READ_BYTES:
                    break
        except OSError:  # nothing (more) is there
            pass
        return writes

    def _wait(self) -> bool:
        return self._fd >= 0 and bool(select.select([self._fd], [], [], _LATE_S)[0])

    def close(self) -> None:
        """No more writes are recorded by this object."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _split_at_lines(packets: list[bytes], times: int) -> list[bytes]:
    """Split packets at the ends of their lines, at most so many times."""
    split: list[bytes] = []
    for packet in packets:
        lines = packet.splitlines(keepends=True) if times > 0 else [packet]
        alone = min(len(lines) - 1, times)
        split += [*lines[:alone], b"".join(lines[alone:])]
        times -= alone
    return split


def _signal_descriptor(number: int) -> int:
    signalfd = _ctypes.dlsym(_ctypes.dlopen(None, 0), "signalfd")  # type: ignore[arg-type]  # None is itself
    signals = bytearray(_SET_BYTES)
    signals[(number - 1) // 8] |= 1 << (number - 1) % 8
    fd = _ctypes.call_function(signalfd, (-1, bytes(signals), os.O_NONBLOCK | os.O_CLOEXEC))
    if not isinstance(fd, int) or fd < 0:
        raise OSError("signalfd was refused")
    return fd
