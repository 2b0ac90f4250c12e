"""Multipart forms: files go to disk, everything else is bounded, and what is no form is refused."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from proofbox.service.facades.gotenberg.errors import RequestRefusedError
from proofbox.service.facades.gotenberg.form import FIELD_BYTES_MAX, FIELDS_MAX, FILES_MAX, Form, read_form

BOUNDARY = "xYzZY"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"


def part(name: str, content: bytes, filename: str | None = None) -> bytes:
    more = "" if filename is None else f'; filename="{filename}"'
    return (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + content + b"\r\n"
    )


def body(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


async def pieces(raw: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(raw), size):
        yield raw[at : at + size]


async def read(raw: bytes, folder: Path, *, size: int = 64, content_type: str = TYPE) -> Form:
    return await read_form(content_type, pieces(raw, size), folder)


@pytest.mark.parametrize("size", [1, 7, 100_000])
async def test_fields_and_files_come_in_pieces_of_any_size(tmp_path: Path, size: int) -> None:
    content = bytes(range(256)) * 5
    raw = body(part("files", content, "a.pdf"), part("landscape", b"true"), part("x.png", b"P", "x.png"))
    form = await read(raw, tmp_path, size=size)
    assert form.fields == {"landscape": "true"}
    assert [(file.field, file.name) for file in form.files] == [("files", "a.pdf"), ("x.png", "x.png")]
    assert form.files[0].path.read_bytes() == content


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\\\Temp\\\\a.html", "a.html"),
        ("dir/sub/b.md", "b.md"),
        ("ü.pdf", "ü.pdf"),
    ],
)
async def test_a_file_name_loses_its_folders(tmp_path: Path, given: str, name: str) -> None:
    form = await read(body(part("files", b"x", given)), tmp_path)
    assert form.files[0].name == name
    assert form.files[0].path.parent == tmp_path


async def test_an_empty_file_input_of_a_browser_is_no_file(tmp_path: Path) -> None:
    form = await read(body(part("files", b"", ""), part("a", b"1")), tmp_path)
    assert (form.files, form.fields) == ([], {"a": "1"})


async def test_one_name_may_be_a_file_and_be_embedded(tmp_path: Path) -> None:
    form = await read(body(part("files", b"1", "a.xml"), part("embeds", b"2", "a.xml")), tmp_path)
    assert [file.path.read_bytes() for file in form.files] == [b"1", b"2"]


def refused(raw: bytes, sentence: str, status: int = 400, content_type: str = TYPE) -> tuple[bytes, str, int, str]:
    return raw, sentence, status, content_type


MANY_FILES: Sequence[bytes] = [part("files", b"", f"{number}.md") for number in range(FILES_MAX + 1)]
MANY_FIELDS: Sequence[bytes] = [part(f"f{number}", b"") for number in range(FIELDS_MAX + 1)]
LARGE_FIELDS: Sequence[bytes] = [part(f"f{number}", b"x" * 500_000) for number in range(9)]
MANY_HEADERS = "".join(f"X{number}: y\r\n" for number in range(2_000))


async def test_fields_may_be_large_together_up_to_the_bound(tmp_path: Path) -> None:
    form = await read(body(*LARGE_FIELDS[:8]), tmp_path, size=65_536)
    assert sum(map(len, form.fields.values())) == 4_000_000


@pytest.mark.parametrize(
    ("raw", "sentence", "status", "content_type"),
    [
        refused(b"{}", "multipart/form-data", 415, "application/json"),
        refused(b"", "multipart/form-data", 415, "multipart/form-data"),
        refused(b"no form at all", "not a multipart form"),
        refused(b"", "ends before the form does"),
        refused(part("a", b"1"), "ends before the form does"),
        refused(body(*MANY_FILES), f"more than {FILES_MAX} files"),
        refused(body(*MANY_FIELDS), f"more than {FIELDS_MAX} fields"),
        refused(body(part("a", b"x" * (FIELD_BYTES_MAX + 1))), "form field 'a' has more than"),
        refused(body(*LARGE_FIELDS), "the fields of the form have more than"),
        refused(body(part("a", b"1"), part("a", b"2")), "form field 'a' stands more than once"),
        refused(body(part("f", b"1", "a.md"), part("f", b"2", "a.md")), "form file 'a.md' stands more than once"),
        refused(body(part("files", b"x", "..")), "cannot be stored"),
        refused(body(part("files", b"x", "a" * 300)), "cannot be stored"),
        refused(f"--{BOUNDARY}\r\n{MANY_HEADERS}\r\n".encode(), "header count"),
        refused(f"--{BOUNDARY}\r\nX: {'y' * 10_000}\r\n\r\n".encode(), "header"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_is_no_form_or_too_much_is_refused(
    tmp_path: Path, raw: bytes, sentence: str, status: int, content_type: str
) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        await read(raw, tmp_path, size=4096, content_type=content_type)
    assert sentence in caught.value.message
    assert caught.value.status == status
