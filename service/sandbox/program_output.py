"""What a program wrote, as the answer to its call carries it."""

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from proofbox.contracts.tool_call_response import ProgramOutput
from proofbox.service.sandbox.port import OutputPiece, StreamName

STREAMS: tuple[StreamName, ...] = ("stdout", "stderr")
_UTF_8 = codecs.getincrementaldecoder("utf-8")
_CONTINUATION = bytes(range(0x80, 0xC0))  # of UTF-8: the bytes of a character behind its first
_CHARACTER_BYTES_MAX = 4
_END_BYTES = 32 * 1024


def program_output(pieces: Sequence[OutputPiece]) -> ProgramOutput:
    """The beginning and the end of each stream alone, and of both in the order of the writes.

    A marker stands where bytes are left out.
    """
    pieces = list(_ends(pieces))
    texts = list(_decode_pieces(pieces))
    alone = {name: "".join(text for stream, text in texts if stream == name) for name in STREAMS}
    return ProgramOutput(
        stdout=alone["stdout"],
        stderr=alone["stderr"],
        combined="".join(text for _, text in texts),
        truncated=any(piece.left_out for piece in pieces),
    )


def stderr_text(pieces: Sequence[OutputPiece]) -> str:
    """The beginning and the end of stderr."""
    return "".join(text for stream, text in _decode_pieces(_ends(pieces)) if stream == "stderr")


def printed_text(pieces: Sequence[OutputPiece]) -> str:
    """All that is there, in the order of the writes, with markers as well."""
    return "".join(text for _, text in _decode_pieces(pieces))


def _ends(pieces: Sequence[OutputPiece]) -> Iterator[OutputPiece]:
    """Pieces without what is neither in the beginning nor in the end of its stream."""
    sizes = Counter[StreamName]()
    for piece in pieces:
        sizes[piece.stream] += len(piece.data)
    seen, left_out = Counter[StreamName](), Counter[StreamName]()
    for piece in pieces:
        stream, data, at = piece.stream, piece.data, seen[piece.stream]
        seen[stream] += len(data)
        left_out[stream] += piece.left_out
        if sizes[stream] <= 2 * _END_BYTES:
            yield piece
            continue
        head = data[: max(0, _END_BYTES - at)]
        tail = data[max(len(head), sizes[stream] - _END_BYTES - at) :]
        if head:
            yield OutputPiece(stream, head, left_out.pop(stream, 0))
        left_out[stream] += len(data) - len(head) - len(tail)
        if tail:
            yield OutputPiece(stream, tail, left_out.pop(stream, 0))


def _decode_pieces(pieces: Iterable[OutputPiece]) -> Iterator[tuple[StreamName, str]]:
    """Texts of pieces: a character that is cut between two pieces of a stream is part of the second."""
    decoders: dict[StreamName, codecs.IncrementalDecoder] = {name: _UTF_8("replace") for name in STREAMS}
    for piece in pieces:
        data = piece.data
        if piece.left_out:
            decoders[piece.stream].reset()
            yield piece.stream, f"\n[… {piece.left_out} bytes of {piece.stream} left out …]\n"
            data = _from_a_character(data)
        if text := decoders[piece.stream].decode(data):
            yield piece.stream, text
    for stream, decoder in decoders.items():
        if rest := decoder.decode(b"", final=True):
            yield stream, rest


def _from_a_character(data: bytes) -> bytes:
    """Without the bytes of a character that was cut at its beginning."""
    head = data[:_CHARACTER_BYTES_MAX].lstrip(_CONTINUATION)
    return head + data[_CHARACTER_BYTES_MAX:]
