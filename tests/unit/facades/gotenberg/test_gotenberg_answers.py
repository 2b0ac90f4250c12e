"""Answers of programs, which the files that they read may control: every value is checked."""

import json
from pathlib import Path
from typing import Any

import pytest

from proofbox.service.facades.gotenberg import work
from proofbox.service.facades.gotenberg.errors import RequestRefusedError
from proofbox.service.facades.gotenberg.responses import file_headers


def answered(**fields: Any) -> bytes:
    return json.dumps({"ok": True, "kind": "pdf", "name": "a.pdf", **fields}).encode()


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("pdf", "pdf"),
        ("pdf", "zip"),
        ("pdf", "json"),
        ("picture", "jpeg"),
        ("picture", "webp"),
        ("markdown", "html"),
    ],
)
def test_the_last_line_is_the_answer(program: str, kind: str) -> None:
    answer = work.read_answer(program, b"noise\n" + answered(kind=kind))
    assert (answer.kind, answer.name) == (kind, "a.pdf")


@pytest.mark.parametrize(
    "printed",
    [
        answered(kind=["pdf"]),
        answered(kind={}),
        answered(kind=None),
        answered(kind="html"),
        answered(kind="exe"),
        answered(name=["a.pdf"]),
        answered(name=None),
        answered(ok=1),
        answered(ok=["x"]),
        b"[" * 1_000_000,
        b"[]",
        b"",
        b"\xff\xfe",
        b'{"ok": ' + b"1" * 5_000 + b"}",
    ],
    ids=lambda printed: repr(printed[:60]),
)
def test_an_answer_of_another_form_is_a_failure_of_the_program(printed: bytes) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        work.read_answer("pdf", printed)
    assert (caught.value.status, caught.value.message) == (500, "the program gave no answer")


def test_a_program_makes_only_its_own_kinds() -> None:
    for program, kind in (("markdown", "pdf"), ("picture", "pdf"), ("pdf", "jpeg")):
        with pytest.raises(RequestRefusedError):
            work.read_answer(program, answered(kind=kind))


def test_a_refusal_is_a_sentence_of_one_line() -> None:
    with pytest.raises(RequestRefusedError) as caught:
        work.read_answer("pdf", answered(ok=False, message="a.pdf:\n\ud800" + "x" * 10_000))
    assert caught.value.status == 400
    assert caught.value.message.startswith("a.pdf:\\n\\ud800x")
    assert len(caught.value.message) < 1_100
    caught.value.message.encode()


def test_a_name_is_short_and_fits_a_header(tmp_path: Path) -> None:
    answer = work.read_answer("pdf", answered(name="\ud800\r\n" + "x" * 100_000))
    headers = file_headers(work.Made(tmp_path, answer.kind, answer.name), "")
    headers["Content-Disposition"].encode("latin-1")
    assert len(headers["Content-Disposition"]) < 1_000
