"""tar archives, plain or compressed: read from front to back, judged member by member, never extracted."""

from __future__ import annotations

import tarfile
from typing import IO

from model import Problem, Subject, counted, quoted
from parsing.member_names import refuse_escape, refuse_link_escape

from families.compressed import UNPACKING_ERRORS, unpacked_stream, unpacking_problem

_CHUNK_BYTES = 1_048_576
_PACKINGS = {"application/gzip": "gzip", "application/x-bzip2": "bzip2", "application/x-xz": "xz"}


class _Bounded:
    """A readable, forward-seekable view of a stream that stops a bomb, and remembers the last block it gave."""

    def __init__(self, stream: IO[bytes], bytes_max: int) -> None:
        self._stream = stream
        self._bytes_max = bytes_max
        self._position = 0
        self.last = b""

    def read(self, count: int) -> bytes:
        """Return up to ``count`` bytes; raises ``Problem`` past the bound."""
        parts, missing = [], count
        while missing > 0 and (part := self._stream.read(min(missing, _CHUNK_BYTES))):
            parts.append(part)
            missing -= len(part)
            self._position += len(part)
            if self._position > self._bytes_max:
                bound = counted(self._bytes_max, "byte")
                raise Problem(f"unpacks to more than {bound}, the most that are checked")
        self.last = b"".join(parts)
        return self.last

    def tell(self) -> int:
        """Return the offset in the unpacked stream."""
        return self._position

    def seek(self, offset: int) -> None:
        """Move forward by reading; a tar archive is never read backwards here."""
        if offset < self._position:
            raise Problem("is damaged: a member of the archive has a negative size")
        while self._position < offset and self.read(min(offset - self._position, _CHUNK_BYTES)):
            pass

    def drain(self) -> None:
        """Read to the end, where gzip keeps its checksum."""
        while self.read(_CHUNK_BYTES):
            pass


def inspect(subject: Subject) -> None:
    """Judge the members (``facts.members``); blank if none of them holds a byte."""
    packing = _PACKINGS.get(subject.format.mime)
    stream = _Bounded(unpacked_stream(subject), subject.limits.unpacked_bytes_max)
    try:
        content_bytes = _judge_members(subject, stream)
        stream.drain()
    except tarfile.TarError as error:
        if subject.facts.get("members"):
            raise Problem(f"is damaged or cut off: {error}") from error
        raise (
            subject.wrong_format()
            if packing is None
            else Problem(f"is not {subject.format.name}: there is no tar archive in its {packing} data")
        ) from error
    except UNPACKING_ERRORS as error:
        raise unpacking_problem(subject, error) from error
    if subject.must_not_be_blank() and content_bytes == 0:
        raise Problem("is blank: no member holds a byte")


def _judge_members(subject: Subject, stream: _Bounded) -> int:
    """Judge every member; returns the bytes of all files together."""
    members, content_bytes = 0, 0
    links: set[str] = set()
    with tarfile.open(fileobj=stream, mode="r:") as archive:  # type: ignore[call-overload]
        for member in archive:
            members += 1
            subject.facts["members"] = members
            if members > subject.limits.members_max:
                raise Problem(f"has more than {subject.limits.members_max:,} members, the most that are checked")
            content_bytes += member.size if member.isreg() else 0
            if content_bytes > subject.limits.unpacked_bytes_max:
                bound = counted(subject.limits.unpacked_bytes_max, "byte")
                raise Problem(
                    f"unpacks to {counted(content_bytes, 'byte')}, more than the {bound} that are checked"
                )
            _judge_member(member, links)
    subject.facts["members"] = members
    if stream.last.strip(b"\x00"):
        # tarfile takes any block that is no header for the end; the real end is a block of zeros, or no block.
        raise Problem(f"is damaged: what follows the archive's first {counted(members, 'member')} is no header")
    return content_bytes


def _judge_member(member: tarfile.TarInfo, links: set[str]) -> None:
    refuse_escape(member.name)
    name = "/".join(part for part in member.name.split("/") if part not in {"", "."})
    parts = name.split("/")
    if any("/".join(parts[:count]) in links for count in range(1, len(parts))):
        raise Problem(f"the archive member {quoted(member.name)} would be written through a link")
    if member.issym():
        refuse_link_escape(name, member.linkname)
        links.add(name)
    elif member.islnk():
        refuse_escape(member.linkname)
    elif not (member.isreg() or member.isdir()):
        raise Problem(f"the archive member {quoted(member.name)} is a device or a pipe")
