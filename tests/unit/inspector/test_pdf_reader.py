"""What FrugalReader finds of what it is asked for is what pypdf finds; what nobody asks for it does not look at."""

import io
import sys
from pathlib import Path

import pypdf
import pytest

INSPECTOR = Path(__file__).parents[3] / "sandbox_images" / "inspector"
CATALOG, TREE = b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"
PAGE = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"


@pytest.fixture
def reader(monkeypatch):
    """The class, from the inspector's folder."""
    monkeypatch.syspath_prepend(str(INSPECTOR))
    for name in [name for name in sys.modules if name.partition(".")[0] in {"families", "parsing"}]:
        monkeypatch.delitem(sys.modules, name)
    from parsing.pdf_reader import FrugalReader  # noqa: PLC0415 - from the folder that was just added

    return FrugalReader


def streamed(bodies: dict[int, bytes], *, header=None, count=None, first=None, placed_in=None) -> bytes:
    """A PDF with its objects in object stream 9; what its header says can be made wrong."""
    offsets, at = [], 0
    for number, body in bodies.items():
        offsets.append(b"%d %d" % (number, at))
        at += len(body) + 1
    head = b" ".join(offsets) + b"\n" if header is None else header
    data = head + b"\n".join(bodies.values())
    out = io.BytesIO(b"%PDF-1.5\n")
    out.seek(0, io.SEEK_END)
    stream_at = out.tell()
    shape = (len(bodies) if count is None else count, len(head) if first is None else first, len(data), data)
    out.write(b"9 0 obj\n<< /Type /ObjStm /N %d /First %d /Length %d >>\nstream\n%b\nendstream\nendobj\n" % shape)
    xref_at = out.tell()
    rows = {number: (2, placed_in or 9, index) for index, number in enumerate(bodies)}
    rows |= {9: (1, stream_at, 0), 10: (1, xref_at, 0)}
    table = b"".join(
        bytes([kind]) + where.to_bytes(4, "big") + bytes([index])
        for kind, where, index in (rows.get(number, (0, 0, 0)) for number in range(11))
    )
    out.write(b"10 0 obj\n<< /Type /XRef /W [1 4 1] /Size 11 /Root 1 0 R /Length %d >>\nstream\n" % len(table))
    out.write(table + b"\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n" % xref_at)
    return out.getvalue()


WHOLE = {1: CATALOG, 2: TREE, 3: PAGE}
DOCUMENTS = {
    "in order": streamed(WHOLE),
    "space before an object": streamed({1: CATALOG, 2: b"  " + TREE, 3: PAGE}),
    "a comment before an object": streamed({1: CATALOG, 2: b"% said\n" + TREE, 3: PAGE}),
    "more counted than there are": streamed(WHOLE, count=7),
    "fewer counted than there are": streamed(WHOLE, count=2),
    "none counted": streamed(WHOLE, count=0),
    "less than none counted": streamed(WHOLE, count=-3),
    "a header that is no numbers": streamed(WHOLE, header=b"1 zero 2 x 3 y\n"),
    "a number twice": streamed(WHOLE, header=b"1 0 1 34 3 76\n"),
    "an object before the first": streamed(WHOLE, header=b"1 0 2 -2 3 76\n"),
    "an object after the end": streamed(WHOLE, header=b"1 0 2 34 3 9999\n"),
    "the first before the start": streamed(WHOLE, first=-4),
    "the first before the start, and places to match": streamed(WHOLE, first=-4, header=b"1 18 2 52 3 94\n"),
    "a count that is no whole number": streamed(WHOLE).replace(b"/N 3 ", b"/N 3.0 "),
    "a count that is nothing": streamed(WHOLE).replace(b"/N 3 ", b"/N null "),
    "a count that is true": streamed(WHOLE).replace(b"/N 3 ", b"/N true "),
    "a number with an underscore": streamed(WHOLE, header=b"1 0 2 3_4 3 76\n"),
    "numbers apart by another space": streamed(WHOLE, header=b"1 0 2\x0b34 3 76\n"),
    "the first after the end": streamed(WHOLE, first=9_999),
    "an object that is cut": streamed({1: CATALOG, 2: TREE, 3: b"<< /Type /Page /Kids ["}),
    "another stream than is there": streamed(WHOLE, placed_in=8),
    "a stream that is in itself": streamed({**WHOLE, 9: b"<< /Type /ObjStm >>"}),
    # By WeasyPrint 70, of the image: two paragraphs, a page each.
    "written by WeasyPrint": (Path(__file__).parent / "two_pages.pdf").read_bytes(),
}


def pages_of(reader) -> object:
    try:
        tree = reader.trailer["/Root"].get_object()["/Pages"]
        return [dict(kid.get_object())["/Type"] for kid in tree["/Kids"]], tree["/Count"]
    except Exception as exc:  # noqa: BLE001 - whatever a broken document makes of it
        return type(exc)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_page_tree_reads_as_pypdf_reads_it(reader, name):
    document = DOCUMENTS[name]
    ours = pages_of(reader(io.BytesIO(document)))
    assert ours == pages_of(pypdf.PdfReader(io.BytesIO(document), strict=False))


def test_objects_that_nobody_asks_for_are_not_parsed(reader):
    document = streamed({**WHOLE, 4: b"(" + b"x" * 50})
    found = reader(io.BytesIO(document))
    assert pages_of(found) == (["/Page"], 1)
    assert (0, 4) not in found.resolved_objects
