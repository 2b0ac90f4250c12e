"""What the content block of a file carries."""

import io

import pytest

from proofbox.contracts.blocks import TEXT_BYTES_MAX, TRUNCATED_SUFFIX
from proofbox.service.jobs.produced_files import Content, content_of


def _content(data, mime="text/csv", encoding=None):
    return content_of(mime, len(data), io.BytesIO(data), 1_000, encoding)


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "utf-32"])
def test_a_text_in_another_encoding_is_carried_decoded_with_its_name(encoding):
    text = "Name;Ort\r\nMüller;Köln\r\n"
    assert _content(text.encode(encoding)) == Content(text=text, encoding=encoding)
    long = text * 3_000
    shown = _content(long.encode(encoding)).text
    kept = shown.removesuffix(TRUNCATED_SUFFIX)
    assert (kept != shown, long.startswith(kept)) == (True, True)
    assert TEXT_BYTES_MAX - 4 <= len(kept.encode()) <= TEXT_BYTES_MAX


def test_the_encoding_of_the_contract_is_believed():
    assert _content("ты".encode("koi8-r"), encoding="koi8_r") == Content(text="ты", encoding="koi8-r")
    assert _content("Müller".encode(), encoding="utf_8") == Content(text="Müller")


def test_a_text_in_utf_8_and_what_is_no_text_are_carried_as_before():
    assert _content("Müller".encode()) == Content(text="Müller")
    assert _content(b"ab\x00\xff") == Content(text="ab\x00\ufffd")
