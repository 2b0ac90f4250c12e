"""What a program wrote, as the answer to its call carries it."""

import codecs
from collections.abc import Iterator, Sequence

from proofbox.contracts.tool_call_response import ProgramOutput
from proofbox.service.sandbox.port import OutputPiece, StreamName

STREAMS: tuple[StreamName, ...] = ("stdout", "stderr")
_UTF_8 = codecs.getincrementaldecoder("utf-8")
_CONTINUATION = bytes(range(0x80, 0xC0))  # of UTF-8: the bytes of a character behind its first
_CHARACTER_BYTES_MAX = 4


def program_output(pieces: Sequence[OutputPiece]) -> ProgramOutput:
    """Each stream alone, and both in the order of the writes; a marker stands where bytes are left out."""
    texts = list(_decode_pieces(pieces))
    alone = {name: "".join(text for stream, text in texts if stream == name) for name in STREAMS}
    return ProgramOutput(
        stdout=alone["stdout"],
        stderr=alone["stderr"],
        combined="".join(text for _, text in texts),
        truncated=any(piece.left_out for piece in pieces),
    )


def stderr_text(pieces: Sequence[OutputPiece]) -> str:
    """What is there of stderr."""
    return "".join(text for stream, text in _decode_pieces(pieces) if stream == "stderr")


def _decode_pieces(pieces: Sequence[OutputPiece]) -> Iterator[tuple[StreamName, str]]:
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
