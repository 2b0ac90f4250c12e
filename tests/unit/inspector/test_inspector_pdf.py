import pytest
from inspector_run import Case, compared, verdicts_of
from inspector_samples import handmade_pdf, pdf

PAGE = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>"
CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"


def with_tree(tree: bytes, **more: bytes) -> bytes:
    return handmade_pdf({1: CATALOG, 2: tree, 3: PAGE} | {int(name[1:]): body for name, body in more.items()})


HELLO_PAGE = (
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R "
    b"/Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
)
HELLO = b"BT /F 12 Tf 20 20 Td (Hello) Tj ET"

CASES = [
    Case("opens a real document and counts its pages", "a.pdf", pdf(inked=3), facts={"pages": 3}),
    Case(
        "holds the pages to both bounds",
        "a.pdf",
        pdf(inked=2),
        checks={"min_pages": 2, "max_pages": 2},
        facts={"pages": 2},
    ),
    Case(
        "names the figure and the bound when pages are missing",
        "a.pdf",
        pdf(),
        "has 1 page, the contract asks for at least 2",
        {"min_pages": 2},
        {"pages": 1},
    ),
    Case(
        "names the figure and the bound when there are too many pages",
        "a.pdf",
        pdf(inked=3),
        "has 3 pages, the contract allows at most 2",
        {"max_pages": 2},
    ),
    Case("sees ink on the last page only", "a.pdf", pdf(blank=4), checks={"not_blank": True}),
    Case(
        "sees text as content",
        "a.pdf",
        handmade_pdf(
            {
                1: CATALOG,
                2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
                3: HELLO_PAGE,
                4: b"<< /Length %d >>\nstream\n%b\nendstream" % (len(HELLO), HELLO),
            }
        ),
        checks={"not_blank": True},
    ),
    Case(
        "sees that every page is blank",
        "a.pdf",
        pdf(inked=0, blank=2),
        "is blank: there is neither text nor ink on its 2 pages",
        {"not_blank": True},
        {"pages": 2},
    ),
    Case("lets a blank document pass if nobody minds", "a.pdf", pdf(inked=0, blank=1), checks={"not_blank": False}),
    Case(
        "says how a PDF that needs a password is promised",
        "a.pdf",
        pdf(password="x"),
        "is protected by a password; if that was asked for, give it as the check password in the contract",
    ),
    Case(
        "opens a PDF with the password of the contract",
        "a.pdf",
        pdf(inked=2, password="größe"),
        None,
        {"password": "größe", "min_pages": 2, "not_blank": True},
        {"pages": 2},
    ),
    Case(
        "refuses a PDF that has another password",
        "a.pdf",
        pdf(password="x"),
        "does not open with the password of the contract",
        {"password": "y"},
    ),
    Case(
        "refuses a PDF that nothing protects if it was to be protected",
        "a.pdf",
        pdf(),
        "opens without a password, the contract asks for one",
        {"password": "x"},
        {"opened": True},
    ),
    Case(
        "counts the pages of a PDF that a password protects",
        "a.pdf",
        pdf(password="x"),
        "has 1 page, the contract asks for at least 2",
        {"password": "x", "min_pages": 2},
    ),
    Case("opens what an empty password opens", "a.pdf", pdf(inked=2, owner="x"), facts={"pages": 2}),
    Case(
        "says what an HTML page named .pdf is",
        "a.pdf",
        b"<html>no</html>",
        "is not a PDF: it starts with '<html>no</html>'",
    ),
    Case("says what a PNG named .pdf is", "a.pdf", b"\x89PNG\r\n\x1a\n\0\0", "is not a PDF: it is a PNG image"),
    Case(
        "sees that the end is missing",
        "a.pdf",
        pdf(inked=3)[:-200],
        "is cut off: a PDF's end-of-file marker is missing",
    ),
    Case(
        "refuses a header with nothing behind it", "a.pdf", b"%PDF-1.7\n%%EOF\n", "could not be opened as a PDF: …"
    ),
    Case("refuses a document without pages", "a.pdf", pdf(inked=0), "has no pages", facts={"pages": 0}),
    Case(
        "does not believe a page count that the tree does not hold",
        "a.pdf",
        with_tree(b"<< /Type /Pages /Kids [3 0 R] /Count 50 >>"),
        "has 1 page, the contract asks for at least 2",
        {"min_pages": 2},
    ),
    Case(
        "refuses a claim of a million pages",
        "a.pdf",
        with_tree(b"<< /Type /Pages /Kids [3 0 R] /Count 1000000 >>"),
        "claims 1,000,000 pages, more than the 20,000 that are checked",
    ),
    Case(
        "refuses thirty thousand real references to one page",
        "a.pdf",
        with_tree(b"<< /Type /Pages /Kids [%b] /Count 1 >>" % (b"3 0 R " * 30_000)),
        "has more than 20,000 pages, the most that are checked",
    ),
    Case(
        "refuses a page tree that runs in a circle",
        "a.pdf",
        with_tree(
            b"<< /Type /Pages /Kids [4 0 R 3 0 R] /Count 1 >>", o4=b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>"
        ),
        "could not be opened as a PDF: its page tree runs in a circle",
    ),
]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    return verdicts_of(CASES, tmp_path_factory.mktemp("out"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_pdf(case, verdicts):
    actual, expected = compared(verdicts[case.claim], case)
    assert actual == expected
