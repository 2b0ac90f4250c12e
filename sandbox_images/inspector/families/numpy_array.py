"""NumPy arrays: one in a .npy file, several in the ZIP archive of a .npz file. Nothing in them is unpickled."""

from __future__ import annotations

import ast
import math
import struct
import zipfile
from typing import IO, Any

from model import Problem, Subject, counted, quoted
from numpy.lib import format as npy
from parsing.zip_members import open_zip

_MAGIC = b"\x93NUMPY"
_ENCODINGS = {1: "latin-1", 2: "latin-1", 3: "utf-8"}
"""Of the headers of each version of the format."""
_HEADER_BYTES_MAX = 65_536
_ARCHIVE = "npz"


def inspect(subject: Subject) -> None:
    """Hold the size of each array against its header (``facts.arrays``, ``facts.shape`` of a single one).

    An array of Python objects is a pickle: its header is read, and no more. Blank if no array has an element.
    """
    if subject.extension == _ARCHIVE:
        elements = _judge_archive(subject)
    else:
        if subject.head(len(_MAGIC)) != _MAGIC:
            raise subject.wrong_format()
        shape = _judge_array(subject.file, subject.size, "")
        subject.facts["shape"] = [str(side) for side in shape]
        elements = math.prod(shape)
    if elements == 0 and subject.must_not_be_blank():
        raise Problem("is blank: it has no element")


def _judge_archive(subject: Subject) -> int:
    elements = 0
    with open_zip(subject) as archive:
        members = [member for member in archive.infolist() if member.filename.endswith(".npy")]
        subject.facts["arrays"] = len(members)
        if not members:
            raise Problem(f"is not {subject.format.name}: it is a ZIP archive without an array")
        for member in members:
            elements += math.prod(_judge_member(archive, member))
    return elements


def _judge_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[int, ...]:
    who = f"the array {quoted(member.filename.removesuffix('.npy'))} "
    with archive.open(member) as content:
        return _judge_array(content, member.file_size, who)


def _judge_array(file: IO[bytes], size: int, who: str) -> tuple[int, ...]:
    """Return the shape of an array; raises ``Problem`` if its data is not as long as its header declares."""
    head = file.read(len(_MAGIC) + 2)
    if len(head) < len(_MAGIC) + 2 or head[: len(_MAGIC)] != _MAGIC or head[len(_MAGIC)] not in _ENCODINGS:
        raise Problem(f"{who}is not a NumPy array")
    width, letter = (2, "<H") if head[len(_MAGIC)] == 1 else (4, "<I")
    (length,) = struct.unpack(letter, file.read(width))
    if length > _HEADER_BYTES_MAX:
        raise Problem(f"{who}has a header of {counted(length, 'byte')}, more than are read")
    text = file.read(length).decode(_ENCODINGS[head[len(_MAGIC)]], "replace")
    shape, dtype = _header(text, who)
    if dtype.hasobject:
        return shape
    wanted, there = math.prod(shape) * dtype.itemsize, size - len(head) - width - length
    if there != wanted:
        word = "cut off" if there < wanted else "damaged"
        raise Problem(f"{who}is {word}: its header asks for {counted(wanted, 'byte')} of data, it has {there:,}")
    return shape


def _header(text: str, who: str) -> tuple[tuple[int, ...], Any]:
    try:
        header = ast.literal_eval(text.strip())
        shape, dtype = header["shape"], npy.descr_to_dtype(header["descr"])
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as error:
        raise Problem(f"{who}is damaged: its header cannot be read") from error
    if not isinstance(shape, tuple) or not all(isinstance(side, int) and side >= 0 for side in shape):
        raise Problem(f"{who}is damaged: its header cannot be read")
    return shape, dtype
