"""The content of a file is the same whether it is in memory or in a local file."""

import hashlib

import pytest

from proofbox.service.file_content import FileContent

DATA = bytes(range(256)) * 2_500  # more than two pieces


@pytest.fixture(params=["memory", "file"])
def content(request, tmp_path):
    if request.param == "memory":
        return FileContent(DATA)
    (tmp_path / "a").write_bytes(DATA)
    return FileContent(tmp_path / "a")


def test_it_is_read_whole_in_part_and_as_a_stream(content):
    with content.open() as stream:
        assert stream.read() == DATA
    assert (content.read(), content.read(10, 5), content.read(len(DATA), 5)) == (DATA, DATA[10:15], b"")
    assert content.size() == len(DATA)


def test_its_size_and_hash_are_measured(content):
    assert content.measure() == (len(DATA), hashlib.sha256(DATA).hexdigest())
    assert (content.has_size(len(DATA)), content.has_size(len(DATA) - 1)) == (True, False)


@pytest.mark.parametrize("end", [0, 1, 256 * 1024, 256 * 1024 + 1, len(DATA)])
async def test_its_pieces_have_256_kib_at_most_and_end_where_asked(content, end):
    pieces = [piece async for piece in content.pieces(end)]
    assert b"".join(pieces) == DATA[:end]
    assert max(map(len, pieces), default=0) <= 256 * 1024


def test_a_link_and_a_folder_have_no_size(tmp_path):
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "link").symlink_to("a")
    assert [FileContent(tmp_path / name).has_size(3) for name in ("a", "link")] == [True, False]
    assert FileContent(tmp_path).has_size(tmp_path.stat().st_size) is False


def test_bytes_stay_out_of_its_representation():
    assert repr(FileContent(b"secret")) == "FileContent()"
