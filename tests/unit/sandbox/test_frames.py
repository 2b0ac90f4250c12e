"""The framed stream: any chunking decodes the same, what is not ours is refused, both ends agree."""

import importlib.util
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.service.sandbox.runner.frames import (
    HEADER,
    NO_NONCE,
    PAYLOAD_BYTES_MAX,
    Frame,
    FrameDecoder,
    FrameError,
    encode,
)

NONCE = bytes(range(16))
FRAMES_FILE = Path(__file__).parents[3] / "sandbox_images" / "runner" / "frames.py"


def _runner_frames():
    spec = importlib.util.spec_from_file_location("frames_of_the_runner", FRAMES_FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = _runner_frames()
FRAMES = st.lists(st.tuples(st.sampled_from(Frame), st.binary(max_size=200)), max_size=8)


def decoder_of(nonce=NONCE):
    decoder = FrameDecoder()
    decoder.nonce = nonce
    return decoder


@given(FRAMES, st.data())
def test_any_chunking_of_a_stream_decodes_to_the_same_frames(frames, data):
    stream = b"".join(encode(kind, NONCE, payload) for kind, payload in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    decoder = decoder_of()
    decoded = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        decoded += decoder.feed(stream[start:end])
    assert decoded == frames


def test_a_stream_that_comes_byte_by_byte_is_decoded():
    stream = encode(Frame.STDOUT, NONCE, b"abc") + encode(Frame.EXIT, NONCE)
    decoder = decoder_of()
    assert [frame for byte in stream for frame in decoder.feed(bytes([byte]))] == [
        (Frame.STDOUT, b"abc"),
        (Frame.EXIT, b""),
    ]


def test_the_largest_payload_is_taken():
    payload = bytes(PAYLOAD_BYTES_MAX)
    assert list(decoder_of().feed(encode(Frame.DATA, NONCE, payload))) == [(Frame.DATA, payload)]


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (HEADER.pack(Frame.DATA, NONCE, PAYLOAD_BYTES_MAX + 1), "a frame of 1048577 bytes, 1048576 are allowed"),
        (HEADER.pack(Frame.DATA, NONCE, 0xFFFFFFFF), "a frame of 4294967295 bytes, 1048576 are allowed"),
        (HEADER.pack(Frame.DATA, NO_NONCE, 0), "a frame without the nonce of this sandbox"),
        (HEADER.pack(Frame.DATA, NONCE[::-1], 0), "a frame without the nonce of this sandbox"),
        (HEADER.pack(0, NONCE, 0), "a frame of the unknown type 0"),
        (HEADER.pack(99, NONCE, 0), "a frame of the unknown type 99"),
        (HEADER.pack(255, NONCE, 0), "a frame of the unknown type 255"),
    ],
)
def test_what_our_runner_does_not_send_is_refused_at_its_header(header, why):
    decoder = decoder_of()
    with pytest.raises(FrameError) as refused:
        list(decoder.feed(encode(Frame.STDOUT, NONCE, b"fine") + header))
    assert str(refused.value) == why


def test_frames_before_the_one_that_is_refused_are_given():
    decoded = []
    with pytest.raises(FrameError):
        decoded.extend(decoder_of().feed(encode(Frame.EXIT, NONCE, b"{}") + b"garbage of the program" * 2))
    assert decoded == [(Frame.EXIT, b"{}")]


@given(st.binary(max_size=300))
def test_any_bytes_are_frames_or_are_refused(data):
    try:
        frames = list(decoder_of().feed(data))
    except FrameError:
        return
    assert all(isinstance(kind, Frame) for kind, _ in frames)


@pytest.fixture
def channel():
    """The runner's end of two real pipes, and ours."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    yield runner.Channel(theirs_in, theirs_out), ours_in, ours_out
    for fd in (theirs_in, ours_out, ours_in, theirs_out):
        try:
            os.close(fd)
        except OSError:
            continue


def written(fd, data):
    """Writes from a thread: a pipe holds less than a frame may."""

    def write():
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def test_what_the_service_encodes_the_runner_receives(channel):
    theirs, _, ours_out = channel
    frames = [(Frame.PUT, b'{"a": 1}'), (Frame.DATA, os.urandom(300_000)), (Frame.COLLECT, b"")]
    thread = written(ours_out, b"".join(encode(kind, NONCE, payload) for kind, payload in frames))
    assert [theirs.receive() for _ in frames] == frames
    thread.join()
    assert not theirs.has_buffered()
    assert theirs.nonce == NONCE


def test_what_the_runner_sends_the_service_decodes(channel):
    theirs, ours_in, _ = channel
    theirs.nonce = NONCE
    large = os.urandom(300_000)

    def send():
        theirs.send(Frame.STDOUT, b"\0" + large)
        theirs.send_json(Frame.FOUND, {"rel": "odd\udc80", "size": 3})
        theirs.send(Frame.COLLECTED)

    thread = threading.Thread(target=send)
    thread.start()
    decoder, decoded = decoder_of(), []
    while len(decoded) < 3:
        decoded += decoder.feed(os.read(ours_in, 65_536))
    thread.join()
    assert decoded == [
        (Frame.STDOUT, b"\0" + large),
        (Frame.FOUND, b'{"rel": "odd\\udc80", "size": 3}'),
        (Frame.COLLECTED, b""),
    ]


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        encode(Frame.PUT, NONCE, b"x")[:-1],
        HEADER.pack(Frame.PUT, NONCE, PAYLOAD_BYTES_MAX + 1),
        encode(Frame.PUT, NONCE[::-1]),
    ],
)
def test_the_runner_ends_when_the_stream_ends_or_is_not_the_services(channel, sent):
    theirs, _, ours_out = channel
    os.write(ours_out, encode(Frame.PUT, NONCE) + sent)
    os.close(ours_out)
    assert theirs.receive() == (Frame.PUT, b"")
    with pytest.raises(runner.StreamEndedError):
        theirs.receive()
