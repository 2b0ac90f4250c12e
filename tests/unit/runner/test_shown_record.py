"""The record of what a program has shown is the program's own: whatever it holds, little of it is passed on."""

import importlib
import json
import os
from pathlib import Path

import pytest

from proofbox.service.sandbox.runner.responses import Exit

RUNNER = Path(__file__).parents[3] / "sandbox_images" / "runner"


@pytest.fixture(scope="module")
def record():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(RUNNER.parent))
        patch.syspath_prepend(str(RUNNER))
        yield importlib.import_module("shown_record")


def read(record, path):
    return Exit.read(json.dumps({"output": [], **record.read(str(path))}).encode())


def test_files_notes_and_the_value_are_read(record, tmp_path):
    path = tmp_path / "record"
    path.write_text(
        '{"file": "shown_1.png"}\n{"note": "a"}\n{"note": "a"}\n{"value": "5"}\n{"file": "shown_2.png"}\n'
    )
    found = read(record, path)
    assert (found.shown, found.shown_notes, found.last_value) == (("shown_1.png", "shown_2.png"), ("a",), "5")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe\n[]\n5\n{\n",
        b"[" * 200_000,
        b'{"file": "../a"}\n{"file": ""}\n{"file": "."}\n{"file": 5}\n{"file": "a\\nb"}\n',
        b'{"value": ["a"], "note": {}}\n',
    ],
)
def test_what_is_no_record_counts_for_nothing(record, tmp_path, content):
    path = tmp_path / "record"
    path.write_bytes(content)
    assert record.read(str(path)) == {}


def test_numbers_and_lengths_are_bounded(record, tmp_path):
    path = tmp_path / "record"
    lines = [{"file": f"a{n}.png"} for n in range(50)] + [{"note": f"{n}\n" + "x" * 900} for n in range(50)]
    lines += [{"value": "\ud800" + "\U0001f600" * 10_000}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = read(record, path)
    assert (len(found.shown), len(found.shown_notes)) == (20, 10)
    assert all(len(note) <= 500 for note in found.shown_notes)
    assert found.last_value is not None
    assert len(found.last_value.encode()) <= 64 * 1024


def test_neither_a_link_nor_a_pipe_nor_a_folder_is_read(record, tmp_path):
    (tmp_path / "secret").write_text('{"value": "secret"}')
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert [record.read(str(tmp_path / name)) for name in ("link", "folder", "pipe", "none")] == [{}, {}, {}, {}]
