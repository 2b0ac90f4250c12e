import pytest

from proofbox.service.api.byte_ranges import ByteRange, requested_range
from proofbox.service.api.download_headers import content_disposition
from proofbox.service.errors import RangeNotSatisfiableError


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("report.pdf", "attachment; filename=\"report.pdf\"; filename*=UTF-8''report.pdf"),
        ("a b;c.txt", "attachment; filename=\"a b;c.txt\"; filename*=UTF-8''a%20b%3Bc.txt"),
        ("ünï €.txt", "attachment; filename=\"_n_ _.txt\"; filename*=UTF-8''%C3%BCn%C3%AF%20%E2%82%AC.txt"),
        ('a"b\\c.txt', "attachment; filename=\"a_b_c.txt\"; filename*=UTF-8''a%22b%5Cc.txt"),
        ("100%41.txt", "attachment; filename=\"100_41.txt\"; filename*=UTF-8''100%2541.txt"),
        ("it's (1)*.txt", "attachment; filename=\"it's (1)*.txt\"; filename*=UTF-8''it%27s%20%281%29%2A.txt"),
        ("a\r\nX-Evil: 1", "attachment; filename=\"a__X-Evil: 1\"; filename*=UTF-8''a__X-Evil%3A%201"),
        ("invoice\u202efdp.exe", "attachment; filename=\"invoice_fdp.exe\"; filename*=UTF-8''invoice_fdp.exe"),
        ("a\u2028b\u200bc", "attachment; filename=\"a_b_c\"; filename*=UTF-8''a_b_c"),
    ],
)
def test_a_file_name_cannot_break_or_disguise_the_header(name, expected):
    assert content_disposition(name) == expected
    assert expected.isascii()


@pytest.mark.parametrize(
    ("header", "size", "expected"),
    [
        (None, 10, None),
        ("bytes=2-3", 10, ByteRange(2, 4)),
        ("Bytes = 2-3", 10, ByteRange(2, 4)),
        ("bytes=-20", 10, ByteRange(0, 10)),
        ("bytes=0-" + "9" * 18, 10, ByteRange(0, 10)),
        ("bytes=0-" + "9" * 5_000, 10, None),
        ("bytes=٣-٤", 10, None),
        ("bytes=0-1,2-3", 10, None),
    ],
)
def test_ranges_are_read_as_rfc_9110_says(header, size, expected):
    assert requested_range(header, size) == expected


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=-5", 0), ("bytes=0-", 0)]
)
def test_a_range_without_a_byte_is_not_satisfiable(header, size):
    with pytest.raises(RangeNotSatisfiableError):
        requested_range(header, size)
