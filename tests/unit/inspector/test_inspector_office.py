import io
import zipfile

import pytest
from docx.enum.section import WD_SECTION
from inspector_run import Case, compared, verdicts_of
from inspector_samples import excel, image, pdf, powerpoint, rezipped, word, zipped
from pptx.util import Inches

NOT_BLANK = {"not_blank": True}
LAUGHS = (
    b'<!DOCTYPE w [<!ENTITY a "hahaha">'
    + b"".join(b'<!ENTITY %c "%b">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9))
    + b"]>"
)


def three_pages(document):
    document.add_page_break()
    document.add_section(WD_SECTION.NEW_PAGE)
    document.add_section(WD_SECTION.CONTINUOUS)


def recorded_breaks(part: bytes) -> bytes:
    return part.replace(b"<w:t>", b"<w:lastRenderedPageBreak/>" * 4 + b"<w:t>")


def with_entities(part: bytes) -> bytes:
    return part.replace(b"?>", b"?>" + LAUGHS, 1)


def seven_pages(part: bytes) -> bytes:
    return part.replace(b"<Pages>1</Pages>", b"<Pages>7</Pages>")


def absurd_pages(part: bytes) -> bytes:
    return part.replace(b"<Pages>1</Pages>", b"<Pages>1000000</Pages>")


def far_row(part: bytes) -> bytes:
    return part.replace(b'<row r="2"', b'<row r="900000000"').replace(b' r="A2"', b' r="A900000000"')


def deep(part: bytes) -> bytes:
    return part.replace(b"<w:t>", b"<w:r>" * 300_000 + b"<w:t>").replace(b"</w:t>", b"</w:t>" + b"</w:r>" * 300_000)


def far_column(part: bytes) -> bytes:
    return part.replace(b'r="A1"', b'r="ZZZZZZZ1"')


def corrupted(package: bytes) -> bytes:
    """One byte of the first member's data turned over."""
    with zipfile.ZipFile(io.BytesIO(package)) as archive:
        info = archive.infolist()[0]
    at = info.header_offset + 30 + len(info.filename) + info.compress_size // 2
    return package[:at] + bytes([package[at] ^ 0xFF]) + package[at + 1 :]


SHEETS = excel(
    {"Empty": [], "Sales": [["region", "units "], ["north", 3], [None, None], ["south", 4]], "More": [[1]]}
)

CASES = [
    Case("opens a Word document", "a.docx", word(), None, NOT_BLANK, {"pages": 1}),
    Case(
        "counts page breaks and section breaks, not continuous sections",
        "a.docx",
        word(three_pages),
        None,
        {"min_pages": 3, "max_pages": 3},
        {"pages": 3},
    ),
    Case(
        "counts the breaks that a word processor recorded",
        "a.docx",
        rezipped(word(), {"word/document.xml": recorded_breaks}),
        facts={"pages": 5},
    ),
    Case(
        "takes the page count of the properties",
        "a.docx",
        rezipped(word(), {"docProps/app.xml": seven_pages}),
        facts={"pages": 7},
    ),
    Case(
        "names the pages and the bound of a Word document",
        "a.docx",
        word(),
        "has 1 page, the contract asks for at least 2",
        {"min_pages": 2},
    ),
    Case(
        "refuses an absurd page count",
        "a.docx",
        rezipped(word(), {"docProps/app.xml": absurd_pages}),
        "claims 1,000,000 pages, more than the 20,000 that are checked",
    ),
    Case(
        "sees that a Word document is blank",
        "a.docx",
        word(lambda document: document.add_paragraph("  ")),
        "is blank: its body has neither text nor a picture",
        NOT_BLANK,
    ),
    Case(
        "sees a picture in a Word document",
        "a.docx",
        word(lambda document: document.add_picture(io.BytesIO(image("PNG")))),
        None,
        NOT_BLANK,
    ),
    Case(
        "opens a presentation", "a.pptx", powerpoint(["One", ""]), None, NOT_BLANK | {"min_pages": 2}, {"pages": 2}
    ),
    Case(
        "names the slides and the bound",
        "a.pptx",
        powerpoint(["One"]),
        "has 1 slide, the contract asks for at least 2",
        {"min_pages": 2},
    ),
    Case(
        "names too many slides",
        "a.pptx",
        powerpoint(["One", "Two"]),
        "has 2 slides, the contract allows at most 1",
        {"max_pages": 1},
    ),
    Case(
        "takes empty placeholders and text boxes for blank",
        "a.pptx",
        powerpoint([""], lambda slide: slide.shapes.add_textbox(0, 0, Inches(1), Inches(1))),
        "is blank: nothing is on its 1 slide",
        NOT_BLANK,
    ),
    Case(
        "sees a picture on a slide",
        "a.pptx",
        powerpoint([""], lambda slide: slide.shapes.add_picture(io.BytesIO(image("PNG")), 0, 0)),
        None,
        NOT_BLANK,
    ),
    Case(
        "sees a drawn shape on a slide",
        "a.pptx",
        powerpoint([""], lambda slide: slide.shapes.add_shape(1, 0, 0, Inches(1), Inches(1))),
        None,
        NOT_BLANK,
    ),
    Case("refuses a presentation without slides", "a.pptx", powerpoint([]), "has no slides"),
    Case(
        "counts the rows of the first sheet that has data",
        "a.xlsx",
        SHEETS,
        None,
        NOT_BLANK | {"min_rows": 2, "columns": ["units", "region"]},
        {"sheet": "Sales", "rows": 2, "columns": ["region", "units"]},
    ),
    Case(
        "names the rows and the bound",
        "a.xlsx",
        SHEETS,
        "has 2 rows of data, the contract asks for at least 3",
        {"min_rows": 3},
    ),
    Case(
        "names the columns that are missing and those that are there",
        "a.xlsx",
        SHEETS,
        "lacks the columns 'price', 'tax'; it has 'region', 'units'",
        {"columns": ["price", "region", "tax"]},
    ),
    Case(
        "sees that a workbook is blank",
        "a.xlsx",
        excel({"A": [], "B": [[None, None]]}),
        "is blank: no sheet has a cell with a value",
        NOT_BLANK,
        {"rows": 0, "columns": []},
    ),
    Case("counts a formula as a value", "a.xlsx", excel({"A": [["x"], ["=1+1"]]}), facts={"rows": 1}),
    Case(
        "does not count the rows up to a far one",
        "a.xlsx",
        rezipped(excel({"A": [["x"], [1]]}), {"xl/worksheets/sheet1.xml": far_row}),
        facts={"rows": 1, "columns": ["x"]},
    ),
    Case(
        "refuses a column that no sheet can have",
        "a.xlsx",
        rezipped(excel({"A": [["x"], [1]]}), {"xl/worksheets/sheet1.xml": far_column}),
        "could not be opened as an Excel workbook: 'ZZZZZZZ' is not …",
    ),
    Case(
        "answers for a document that is 300,000 deep",
        "a.docx",
        rezipped(word(), {"word/document.xml": deep}),
        "could not be opened as a Word document: Excessive depth in document…",
    ),
    Case(
        "sees that a workbook is not a Word document",
        "a.docx",
        SHEETS,
        "is not a Word document: it is an Excel workbook",
    ),
    Case(
        "sees that a document is not a workbook",
        "a.xlsx",
        word(),
        "is not an Excel workbook: it is a Word document",
    ),
    Case("sees that a PDF is not a presentation", "a.pptx", pdf(), "is not a PowerPoint presentation: it is a PDF"),
    Case(
        "sees that a ZIP archive is not a document",
        "a.docx",
        zipped({"a.txt": b"a"}),
        "is not a Word document: it is a ZIP archive without [Content_Types].xml",
    ),
    Case(
        "sees that the main part is missing",
        "a.docx",
        rezipped(word(), {"word/document.xml": None}),
        "is not a Word document: the part that makes it one is missing",
    ),
    Case(
        "sees that the directory of a document is cut off",
        "a.docx",
        word()[:-300],
        "is damaged or cut off: the directory at the end of the ZIP archive is missing",
    ),
    Case(
        "sees that one byte of a part was changed",
        "a.docx",
        corrupted(word()),
        "is damaged: the archive member '[Content_Types].xml' does not unpack",
    ),
    Case(
        "refuses entities in a Word document",
        "a.docx",
        rezipped(word(), {"word/document.xml": with_entities}),
        "the part 'word/document.xml' has a document type declaration, which this format forbids",
    ),
    Case(
        "refuses entities in a workbook",
        "a.xlsx",
        rezipped(SHEETS, {"xl/workbook.xml": lambda part: LAUGHS + part}),
        "the part 'xl/workbook.xml' has a document type declaration, which this format forbids",
    ),
    Case(
        "refuses a part that is not XML",
        "a.pptx",
        rezipped(powerpoint(["One"]), {"ppt/presentation.xml": lambda _: b"nothing"}),
        "the part 'ppt/presentation.xml' is not well-formed XML",
    ),
    Case(
        "refuses a part that leads outside",
        "a.docx",
        zipped({"[Content_Types].xml": b"<a/>", "../../x": b"x"}),
        "the archive member '../../x' would be written outside the folder",
    ),
    Case(
        "refuses a part that is a bomb",
        "a.xlsx",
        zipped({"[Content_Types].xml": b"<a/>", "xl/workbook.xml": b"\0" * 40_000_000}),
        "unpacks to 1,…",
    ),
    Case(
        "names the media type that was asked for",
        "a.docx",
        word(),
        "is application/vnd.openxmlformats-officedocument.wordprocessingml.document, "
        "the contract asks for 'application/msword'",
        {"mime": "application/msword"},
    ),
]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    return verdicts_of(CASES, tmp_path_factory.mktemp("out"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_office(case, verdicts):
    actual, expected = compared(verdicts[case.claim], case)
    assert actual == expected
