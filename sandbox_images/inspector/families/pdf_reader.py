"""pypdf, parsing no more of a document than it is asked for."""

from __future__ import annotations

import io
from typing import BinaryIO

import pypdf
from pypdf.errors import PyPdfError
from pypdf.generic import IndirectObject, PdfObject, StreamObject, read_object


class FrugalReader(pypdf.PdfReader):
    """Takes single objects out of object streams.

    pypdf parses all that such a stream holds when the first is wanted of it: 8 ms of one page, though a page tree
    is a few of its hundreds of objects. What is not as it should be is left to pypdf, which repairs or refuses it.
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
        data, first = holder.get_data(), holder.get("/First")
        if not isinstance(first, int):
            return None
        try:
            words = [int(word) for word in data[:first].split()]
        except ValueError:
            return None
        places = {number: first + offset for number, offset in zip(words[::2], words[1::2], strict=False)}
        is_whole = len(words) == 2 * holder.get("/N", 0) == 2 * len(places)
        begins = [data[place : place + 1] for place in places.values() if place >= first]
        is_plain = len(begins) == len(places) and all(begin.strip() for begin in begins)
        return (io.BytesIO(data), places) if is_whole and is_plain else None
