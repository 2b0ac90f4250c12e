"""pypdf, parsing no more of a document than it is asked for."""

from __future__ import annotations

import io
from typing import BinaryIO

import pypdf
from pypdf.errors import PyPdfError
from pypdf.generic import IndirectObject, NumberObject, PdfObject, StreamObject, read_object

_NO_SPACE_OF_PDF = b"\x0b"  # but Python's
_ENTRY_BYTES_MIN = 3  # of a number, a space and a place


class FrugalReader(pypdf.PdfReader):
    """Takes single objects out of object streams.

    pypdf parses all that such a stream holds when the first is wanted of it: 8 ms of one page, though a page tree
    is a few of its hundreds of objects. A stream that is not as it should be is left to pypdf, which repairs or
    refuses it; an object that cannot be read and that nobody asks for is not noticed.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._held: dict[int, tuple[io.BytesIO, dict[int, int]] | None] = {}
        super().__init__(file, strict=False)

    def _get_object_from_stream(self, indirect_reference: IndirectObject) -> PdfObject:
        number = indirect_reference.idnum
        held = self._held_by(self.xref_objStm[number][0])
        if held is None or number not in held[1]:
            return super()._get_object_from_stream(indirect_reference)
        data, places = held
        data.seek(places[number])
        try:
            found = read_object(data, self)
        except PyPdfError:
            return super()._get_object_from_stream(indirect_reference)
        self.cache_indirect_object(0, number, found)
        return found

    def _held_by(self, stream: int) -> tuple[io.BytesIO, dict[int, int]] | None:
        """The content of an object stream and where in it its objects begin; None if pypdf has to see to it."""
        if stream not in self._held:
            self._held[stream] = None  # while it is being read, and where it leads back to itself
            self._held[stream] = self._content_of(stream)
        return self._held[stream]

    def _content_of(self, stream: int) -> tuple[io.BytesIO, dict[int, int]] | None:
        holder = IndirectObject(stream, 0, self).get_object()
        if not isinstance(holder, StreamObject) or holder.get("/Type") != "/ObjStm":
            return None
        data, count, first = holder.get_data(), holder.get("/N"), holder.get("/First")
        if not isinstance(count, NumberObject) or not isinstance(first, NumberObject):
            return None
        if not (0 <= first <= len(data) and 0 <= count <= len(data) // _ENTRY_BYTES_MIN):
            return None
        words = data[:first].split(None, 2 * count)[: 2 * count]
        if not all(word.isdigit() for word in words) or _NO_SPACE_OF_PDF in data[:first]:
            return None
        numbers, offsets = map(int, words[::2]), map(int, words[1::2])
        places = {number: first + offset for number, offset in zip(numbers, offsets, strict=False)}
        is_whole = len(words) == 2 * count == 2 * len(places)
        is_plain = all(data[place : place + 1].strip() for place in places.values())
        return (io.BytesIO(data), places) if is_whole and is_plain else None
