"""The service's table of media types says what the inspector's table says."""

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.contracts.artifacts import Checks
from proofbox.contracts.checks import EXTENSIONS_OF_CHECK
from proofbox.contracts.media_types import MIME_ALIASES, MIME_BY_EXTENSION, is_inline_binary, is_text, mime_of_name

FORMATS_FILE = Path(__file__).parents[2] / "sandbox_images" / "inspector" / "formats.py"


def _inspector_formats():
    spec = importlib.util.spec_from_file_location("inspector_formats_of_the_image", FORMATS_FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses looks its annotations up there
    spec.loader.exec_module(module)
    return module


formats = _inspector_formats()


def test_both_tables_have_the_same_other_names_of_media_types():
    assert formats.MIME_ALIASES == MIME_ALIASES


def _applies(check, extension):
    return check in formats.CHECKS_BY_FAMILY[formats.FORMATS[extension].family]


def test_the_contract_and_the_inspector_agree_on_what_each_check_applies_to():
    checks = Checks.model_fields.keys() - {"min_bytes", "max_bytes"}
    assert {check: {e for e in MIME_BY_EXTENSION if _applies(check, e)} for check in checks} == {
        check: set(EXTENSIONS_OF_CHECK.get(check, MIME_BY_EXTENSION)) for check in checks
    }


def test_both_tables_have_the_same_extensions_and_media_types():
    assert {name: known.mime for name, known in formats.FORMATS.items()} == MIME_BY_EXTENSION


PARTS = st.one_of(st.sampled_from([*MIME_BY_EXTENSION, "", "a", "GZ", "Tar", "b c", "d/"]), st.text(max_size=4))


@given(st.lists(PARTS, min_size=1, max_size=4).map(".".join))
def test_both_read_the_same_promise_from_any_name(name):
    assert mime_of_name(name) == formats.format_of(name).mime


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("a.pdf", "application/pdf"),
        ("A.PDF", "application/pdf"),
        ("x/a.tar.gz", "application/gzip"),
        ("a.gz", "application/gzip"),
        ("a.bin", "application/octet-stream"),
        ("x.pdf/a", "application/octet-stream"),
        (".csv", "application/octet-stream"),
        ("README", "application/octet-stream"),
        ("a.", "application/octet-stream"),
    ],
)
def test_a_name_promises_the_type_of_its_longest_known_extension(name, mime):
    assert mime_of_name(name) == mime


def test_a_type_is_carried_as_text_or_as_base64_or_as_neither():
    carried = {
        mime: ("text" if is_text(mime) else "", is_inline_binary(mime)) for mime in MIME_BY_EXTENSION.values()
    }
    assert {m for m, how in carried.items() if how == ("", True)} == {
        "application/pdf",
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
    }
    assert {m for m, how in carried.items() if how == ("", False)} == {
        "image/bmp",
        "image/tiff",
        "image/svg+xml",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.apache.parquet",
        "application/zip",
        "application/x-tar",
        "application/gzip",
        "application/x-bzip2",
        "application/x-xz",
        "application/x-npy",
        "application/x-npz",
        "application/epub+zip",
        "application/msword",
        "application/vnd.ms-excel",
        "application/vnd.ms-powerpoint",
        "application/vnd.sqlite3",
        *(f"application/vnd.oasis.opendocument.{kind}" for kind in ("text", "spreadsheet", "presentation")),
        *(m for m in carried if m.startswith(("audio/", "video/", "font/"))),
    }
    assert [m for m, how in carried.items() if how == ("text", True)] == []
