"""Password, permissions, watermark and rules of the request."""

import pypdf
import pypdfium2
import pytest
from docx_reading import values, written
from page_looks import codes, page_picture, rendered, shows
from pypdf.constants import UserAccessPermissions as May

TEXT = "# Report\n\nWords of it."


def test_a_password_opens_the_file_and_no_other_does(tmp_path):
    answer, file = rendered(tmp_path, TEXT, source_format="markdown", options={"password": "se cr\u00e9t"})
    assert answer["facts"]["size_bytes"] == file.stat().st_size
    with pytest.raises(pypdfium2.PdfiumError, match=r"[Pp]assword"):
        pypdfium2.PdfDocument(file)
    text = pypdfium2.PdfDocument(file, password="se cr\u00e9t")[0].get_textpage().get_text_bounded()
    assert "Words of it." in text
    assert (b"Words" in file.read_bytes(), pypdf.PdfReader(file).trailer["/Encrypt"]["/V"]) == (False, 5)


@pytest.mark.parametrize(
    ("permissions", "allowed"),
    [
        (["print"], {"PRINT", "PRINT_TO_REPRESENTATION"}),
        ([], set()),
        (["copy", "annotate", "fill_forms"], {"EXTRACT", "ADD_OR_MODIFY", "FILL_FORM_FIELDS"}),
        (["modify", "assemble"], {"MODIFY", "ASSEMBLE_DOC"}),
    ],
)
def test_permissions_are_those_of_the_request(tmp_path, permissions, allowed):
    _, file = rendered(tmp_path, TEXT, source_format="markdown", options={"permissions": permissions})
    reader = pypdf.PdfReader(file)
    asked = (
        "PRINT",
        "PRINT_TO_REPRESENTATION",
        "EXTRACT",
        "MODIFY",
        "ADD_OR_MODIFY",
        "FILL_FORM_FIELDS",
        "ASSEMBLE_DOC",
    )
    given = reader.user_access_permissions
    assert {name for name in asked if May[name] in given} == allowed
    assert May.EXTRACT_TEXT_AND_GRAPHICS in given
    assert "Words of it." in reader.pages[0].extract_text()


def test_an_encrypted_pdf_is_tagged_and_keeps_what_it_had(tmp_path):
    options = {"password": "x", "permissions": ["print"]}
    _, file = rendered(tmp_path, TEXT, source_format="markdown", options=options, metadata={"title": "T"})
    reader = pypdf.PdfReader(file, password="x")
    root = reader.trailer["/Root"]
    assert (reader.metadata.title, root["/MarkInfo"]["/Marked"], reader.outline[0].title) == ("T", True, "Report")
    assert b"pdfuaid" in root["/Metadata"].get_data()


@pytest.mark.parametrize("options", [{"password": "x"}, {"permissions": []}])
def test_a_file_for_archives_is_not_encrypted(tmp_path, options):
    answer, _ = rendered(tmp_path, TEXT, source_format="markdown", options={"pdf_variant": "pdf/a-2b", **options})
    assert answer["error"]["code"] == "invalid_option"


def darkness(file, page: int) -> float:
    picture = page_picture(file, page).convert("L")
    return (
        1
        - sum(value * count for value, count in enumerate(picture.histogram()))
        / 255
        / picture.width
        / picture.height
    )


@pytest.mark.parametrize("mark", ["DRAFT", "Strictly confidential <&>", "\u8349\u7a3f"])
def test_a_watermark_stands_on_every_page_and_over_its_ground(tmp_path, mark):
    source = '<div style="background:#fff;height:240mm">one</div><p style="break-before:page">two'
    _, plain = rendered(tmp_path / "a", source)
    answer, file = rendered(tmp_path / "b", source, options={"watermark": mark})
    assert (answer["facts"]["pages"], codes(answer)) == (2, [])
    for page in range(2):
        assert darkness(file, page) > darkness(plain, page) + 0.0005
    assert "Figure" not in str(pypdf.PdfReader(file).trailer["/Root"]["/StructTreeRoot"])


CSS = "h1{color:#c01234} @import url('https://x.example/a;b.css'); p{color:#0000ff}"


def test_rules_of_the_request_come_last_and_leave_the_theme_alone(tmp_path):
    source = "<style>h1{color:green}</style>\n\n# Report\n\nWords\n\n- a"
    answer, file = rendered(tmp_path, source, source_format="markdown", options={"css": CSS * 3})
    assert (shows(file, "#c01234"), shows(file, "#0000ff"), codes(answer)) == (True, True, ["remote_refused"])
    _, plain = rendered(tmp_path, source, source_format="markdown")
    assert pypdf.PdfReader(file).pages[0].extract_text() == pypdf.PdfReader(plain).pages[0].extract_text()


def test_rules_of_the_request_count_in_a_docx(tmp_path):
    made = written("# Report\n\nWords", tmp_path, options={"css": "p{color:#c01234}"})
    assert values(made.body, ".//w:color") == ["C01234"]
