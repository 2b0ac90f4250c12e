"""Every hostile document ends in time, as it should, with a harmless file or a typed error, and reaches nothing."""

import ctypes
import os
import socket
from pathlib import Path

import pytest
from attack import ELSEWHERE, PORT
from confined_run import fresh, rendered, watched
from harmless import faults_of
from pictures import PICTURES
from reaching import REACHING
from structure import STRUCTURE
from styles import STYLES
from texts import TEXTS
from workbooks import WORKBOOKS

ATTACKS = (*REACHING, *PICTURES, *STRUCTURE, *STYLES, *TEXTS, *WORKBOOKS)
OUT_DIR = Path("/out/hostile")
CASES = [(attack, output) for attack in ATTACKS for output in attack.outputs]


@pytest.mark.parametrize(("attack", "output"), CASES, ids=[f"{attack.name}-{output}" for attack, output in CASES])
def test_it_ends_as_it_should_and_reaches_nothing(attack, output):
    ending = rendered(attack, output, fresh(OUT_DIR))
    faults = faults_of(ending.target, output) if ending.code == "ok" else []
    assert (ending.code, ending.opened, ending.network, ending.processes, faults) == (
        attack.expected(output), [], [], [], [],
    ), ending.message  # fmt: skip
    assert [code for code in attack.warns if code not in ending.warnings] == []
    assert ending.code == "ok" or len(ending.message) > 20  # a sentence that a model can act on


def test_there_are_more_than_eighty_and_each_has_its_name():
    names = [attack.name for attack in ATTACKS]
    assert (len(names) >= 80, len(set(names))) == (True, len(names))


# ---- the watcher itself: what it has to see, it sees


def test_a_file_that_is_opened_elsewhere_is_seen(tmp_path):
    def work():
        (ELSEWHERE / "canary.txt").read_bytes()
        return {"ok": True}

    ending = watched(work, tmp_path, tmp_path / "x")
    assert set(ending.opened) == {str(ELSEWHERE / "canary.txt")}


def test_a_file_that_a_c_library_opens_is_seen(tmp_path):
    def work():
        libc = ctypes.CDLL(None)
        libc.open(b"/etc/passwd", os.O_RDONLY)
        libc.open(str(ELSEWHERE / "canary.png").encode(), os.O_RDONLY)
        return {"ok": True}

    ending = watched(work, tmp_path, tmp_path / "x")
    assert ending.opened == ["/etc/passwd", str(ELSEWHERE / "canary.png")]


def test_a_connection_and_a_look_up_are_seen(tmp_path):
    def work():
        socket.create_connection(("127.0.0.1", PORT)).close()
        return {"ok": True}

    ending = watched(work, tmp_path, tmp_path / "x")
    kinds = {row.split(" ")[0] for row in ending.network if row.startswith("socket.")}
    assert kinds == {"socket.connect", "socket.getaddrinfo"}
    assert "a connection to loopback" in ending.network
