"""The bytes of a handed-over file: base64 that is not base64 is refused, never read as fewer bytes."""

import pytest
from pydantic import ValidationError

from proofbox.contracts.tool_call_request import Asset


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("aGVsbG8=", b"hello"),
        ("aGVs\nbG8=\r\n", b"hello"),
        ("\n  aGVs\n  bG8=  \n", b"hello"),
        ("", b""),
        ("+/+/", b"\xfb\xff\xbf"),
    ],
)
def test_base64_is_decoded_with_or_without_line_feeds(text, data):
    assert Asset(physical_path="turn_1/files/a", base64=text).base64 == data


@pytest.mark.parametrize(
    "text", ["!!", "aGVs!!bG8=", "aGVsbG8", "aGVsbG8==", "aGV-", "hé", "aGVs bG8=", "aGVs\tbG8="]
)
def test_what_is_not_base64_is_refused(text):
    with pytest.raises(ValidationError, match=r"[Bb]ase64"):
        Asset(physical_path="turn_1/files/a", base64=text)
