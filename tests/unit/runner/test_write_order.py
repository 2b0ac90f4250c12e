"""The order of writes to two pipes, as a process of its own reads it: it takes a signal for each."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PIPE_PACKETS = 256
RUNNER = Path(__file__).parents[3] / "sandbox_images" / "runner"
# Reads what a child writes, in rounds as the runner does, and prints it in the order that it finds.
READER = """
import json, os, random, select, sys, time
from write_order import ROUND_READS_MAX, WriteOrder, make_output_pipe

writes, pause_s, seed, opens_anew = json.load(sys.stdin)
pipes = [make_output_pipe() for _ in range(2)]
order = WriteOrder({read: kind for kind, (read, _) in enumerate(pipes)})
random.seed(seed)
if os.fork() == 0:
    for read, _ in pipes:
        os.close(read)
    for kind, text in writes:
        if opens_anew and kind:
            with open(f"/proc/self/fd/{pipes[kind][1]}", "wb", buffering=0) as stream:
                stream.write(text.encode())
        else:
            os.write(pipes[kind][1], text.encode())
        if pause_s and random.random() < 0.1:
            time.sleep(random.random() * pause_s)
    os._exit(0)
for read, write in pipes:
    os.close(write)
    os.set_blocking(read, False)
ordered, ended = [], set()
while len(ended) < 2:
    select.select([read for read, _ in pipes if read not in ended], [], [])
    if pause_s:
        time.sleep(random.random() * pause_s)
    for _ in range(ROUND_READS_MAX):
        order.note_writes()
        taken = 0
        for kind, (read, _) in enumerate(pipes):
            while read not in ended:
                try:
                    packet = os.read(read, 65536)
                except BlockingIOError:
                    break
                if not packet:
                    ended.add(read)
                    order.end(kind)
                    break
                order.take(kind, packet)
                taken += 1
        if not taken:
            break
    ordered += order.ordered(all_read=True)
ordered += order.ordered(all_read=True, is_end=True)
print(json.dumps([[kind, data.decode()] for kind, data in ordered]))
"""


def ordered(writes, pause_s=0.0, seed=1, *, opens_anew=False):
    given = json.dumps([writes, pause_s, seed, opens_anew]).encode()
    command = [sys.executable, "-c", READER]
    ran = subprocess.run(command, input=given, cwd=RUNNER, capture_output=True, check=True, timeout=60)
    return [tuple(each) for each in json.loads(ran.stdout)]


def merged(pieces):
    """Neighbours of one pipe as one piece."""
    whole = []
    for kind, text in pieces:
        if whole and whole[-1][0] == kind:
            whole[-1] = (kind, whole[-1][1] + text)
        else:
            whole.append((kind, text))
    return whole


@pytest.mark.parametrize(("count", "pause_s"), [(250, 0.0), (3_000, 0.002)])
@pytest.mark.parametrize("seed", range(5))
def test_short_writes_come_in_their_order(seed, count, pause_s):
    writes = [(int((n * 7 + seed) % 5 < 2), f"{n}\n") for n in range(count)]
    assert merged(ordered(writes, pause_s, seed)) == merged(writes)


def test_of_writes_faster_than_they_are_read_none_is_lost_and_each_is_near_its_place():
    writes = [(int(n % 5 < 2), f"{n}\n") for n in range(20_000)]
    found = ordered(writes)
    for pipe in (0, 1):
        assert [each for each in found if each[0] == pipe] == [each for each in writes if each[0] == pipe]
    distances = [abs(index - int(text)) for index, (_, text) in enumerate(found)]
    assert max(distances) < 2 * PIPE_PACKETS, f"farthest from its place: {max(distances)}"


def test_parts_of_lines_and_empty_lines_come_in_their_order():
    writes = [(n % 2, text) for n, text in enumerate(["a", "b\n", "c", "\n", "d\ne\n", "f", "\n\n", "g"] * 50)]
    assert merged(ordered(writes)) == merged(writes)


@pytest.mark.parametrize("size", [4_095, 4_096, 4_097, 10_000, 200_000])
def test_a_long_write_is_whole_and_stands_between_its_neighbours(size):
    writes = [(0, "before\n"), (1, "x" * size), (0, "after\n")]
    assert merged(ordered(writes, 0.01)) == writes


@pytest.mark.parametrize("pipe", [0, 1])
def test_one_pipe_alone_keeps_every_byte(pipe):
    writes = [(pipe, "y" * (n % 6_000 + 1)) for n in range(500)]
    assert merged(ordered(writes)) == merged(writes)


def test_a_stream_that_is_opened_anew_loses_nothing_and_keeps_its_own_order():
    # Its writes are merged where they are read, and the kernel may tell of a write after its bytes were read.
    writes = [(int(n % 3 < 2), f"{n}\n") for n in range(200)]
    found = ordered(writes, 0.01, opens_anew=True)
    for pipe in (0, 1):
        assert "".join(text for kind, text in found if kind == pipe) == "".join(
            text for kind, text in writes if kind == pipe
        )
