"""ZIP files, judged by their members before anything else reads them: nothing is unpacked to disk."""

from __future__ import annotations

import stat
import zipfile
import zlib

from model import Problem, Subject, counted, quoted

from parsing.member_names import refuse_escape, refuse_link_escape

_CHUNK_BYTES = 1_048_576
_RATIO_MAX = 500
_RATIO_FROM_BYTES = 16 * 1024 * 1024
"""Deflate stops at 1,032:1, which only a bomb reaches; below 16 MiB no ratio hurts anyone."""

_VERIFIED_BYTES_MAX = 256 * 1024 * 1024
"""Members are read and their checksums compared up to here; the ones after that are judged by their headers."""

_LOCAL_HEADER_BYTES = 30
_LINK_BYTES_MAX = 4_096
_ENCRYPTED_FLAG = 0x1
_UNIX_MODE_SHIFT = 16


def open_zip(subject: Subject) -> zipfile.ZipFile:
    """Open the file and judge all of its members; returns it ready for reading.

    Raises:
        Problem: Not a ZIP file; too many members; too much to unpack; a name or a link that escapes; a device;
            members that overlap, are encrypted, or whose content does not match its checksum.
    """
    try:
        archive = zipfile.ZipFile(subject.file)
    except zipfile.BadZipFile as error:
        if subject.head(4) == b"PK\x03\x04":
            raise Problem(
                "is damaged or cut off: the directory at the end of the ZIP archive is missing"
            ) from error
        raise subject.wrong_format() from error
    members = archive.infolist()
    if len(members) > subject.limits.members_max:
        raise Problem(
            f"has {counted(len(members), 'member')}, more than the {subject.limits.members_max:,} that are checked"
        )
    _refuse_bomb(subject, members)
    for member in members:
        refuse_escape(member.orig_filename)
        refuse_escape(member.filename)
        if member.flag_bits & _ENCRYPTED_FLAG:
            raise Problem(f"is encrypted: the archive member {quoted(member.filename)} needs a password")
    _refuse_overlap(archive, members)
    _refuse_links(archive, members)
    _verify(archive, members)
    return archive


def _refuse_bomb(subject: Subject, members: list[zipfile.ZipInfo]) -> None:
    """Refuse what unpacks to too much; a member that holds more than it declares is cut there when read."""
    unpacked = sum(member.file_size for member in members)
    if unpacked > subject.limits.unpacked_bytes_max:
        bound = counted(subject.limits.unpacked_bytes_max, "byte")
        raise Problem(f"unpacks to {counted(unpacked, 'byte')}, more than the {bound} that are checked")
    if unpacked > _RATIO_FROM_BYTES and unpacked > _RATIO_MAX * subject.size:
        times = unpacked // subject.size
        raise Problem(f"unpacks to {times:,} times its size (a ZIP bomb), more than {_RATIO_MAX:,} times")


def _refuse_overlap(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> None:
    """Refuse members that share their bytes: one compressed block counted many times is how the best bombs work."""
    ordered = sorted(members, key=lambda member: member.header_offset)
    ends = [member.header_offset for member in ordered[1:]] + [archive.start_dir]
    for member, end in zip(ordered, ends, strict=True):
        if member.header_offset + _LOCAL_HEADER_BYTES + member.compress_size > end:
            raise Problem(
                f"is a ZIP bomb or damaged: the archive member {quoted(member.filename)} overlaps another"
            )


def _refuse_links(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> None:
    links = set()
    for member in members:
        kind = stat.S_IFMT(member.external_attr >> _UNIX_MODE_SHIFT)
        if kind == stat.S_IFLNK:
            with archive.open(member) as content:
                target = content.read(_LINK_BYTES_MAX)
            refuse_link_escape(member.filename, target.decode("utf-8", "replace"))
            links.add(member.filename.rstrip("/"))
        elif kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
            raise Problem(f"the archive member {quoted(member.filename)} is neither a file, a folder nor a link")
    for member in members:
        parts = member.filename.split("/")
        if any("/".join(parts[:count]) in links for count in range(1, len(parts))):
            raise Problem(f"the archive member {quoted(member.filename)} would be written through a link")


def _verify(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]) -> None:
    budget = _VERIFIED_BYTES_MAX
    for member in members:
        if member.is_dir():
            continue
        budget -= member.file_size
        if budget < 0:
            return
        try:
            with archive.open(member) as content:
                read = 0
                while chunk := content.read(_CHUNK_BYTES):
                    read += len(chunk)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise Problem(f"is damaged: the archive member {quoted(member.filename)} does not unpack") from error
        if read != member.file_size:
            raise Problem(f"is damaged: the archive member {quoted(member.filename)} is shorter than it says")
