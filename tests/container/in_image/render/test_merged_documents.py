"""Documents that are appended: one file with all of their words, in order, each on a new page."""

import io
from xml.etree import ElementTree as ET

import docx
import pptx
import pypdf
import pytest
from docx_reading import png
from page_looks import codes, rendered, shows
from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, TextStringObject
from render.frontend.html import parse_html
from render.frontend.identities import rename_ids, renamed_css
from reportlab.pdfgen import canvas

MARKDOWN = """\
---
title: Appendix
---

Text[^1] to [sum](#summary), ![a](near.png).

## Summary

Again.

[^1]: Note.
"""
HTML = "<style>.x { color: #c01234 }</style><h1 id='summary'>Page</h1><p class='x'>Red words</p>"
MAIN = "# Summary\n\nMain words[^1].\n\n[^1]: Main note.\n"


def pdf(*, pages=2, size=(420, 300), title="Costs of the year", turned=0) -> bytes:
    file = io.BytesIO()
    drawn = canvas.Canvas(file, pagesize=size)
    drawn.setTitle(title)
    for number in range(1, pages + 1):
        drawn.bookmarkPage(f"k{number}")
        drawn.addOutlineEntry(f"Chapter {number}", f"k{number}", 0)
        drawn.drawString(80, 200, f"Cost page {number}")
        drawn.setFillColorRGB(0, 0.5, 0)
        drawn.rect(20, 20, 50, 50, fill=1, stroke=0)
        drawn.linkURL("https://costs.example/", (60, 180, 260, 240))
        if number == 1:
            drawn.acroForm.textfield(name="field", x=80, y=100, width=150, height=20, value="FILLED")
        drawn.showPage()
    drawn.save()
    if not turned:
        return file.getvalue()
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(file.getvalue()))
    for page in writer.pages:
        page.rotate(turned)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.fixture
def merge(tmp_path):
    folder = tmp_path / "turn_1" / "files" / "parts"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text(MARKDOWN)
    (folder / "b.html").write_text(HTML)
    (folder / "c.pdf").write_bytes(pdf())
    (folder / "turned.pdf").write_bytes(pdf(turned=90))
    (folder / "near.png").write_bytes(png(40, 20))

    def write(*names, content=MAIN, output="pdf", source_format="markdown", **options):
        paths = [f"turn_1/files/parts/{name}" for name in names]
        return rendered(tmp_path, content, output, source_format, options={"merge": paths, **options})

    return write


def texts(file):
    return [" ".join(page.extract_text().split()) for page in pypdf.PdfReader(file).pages]


def outline(file):
    reader = pypdf.PdfReader(file)
    rows = []

    def walk(entries, depth):
        for entry in entries:
            if isinstance(entry, list):
                walk(entry, depth + 1)
            else:
                rows.append((depth, entry.title, reader.get_destination_page_number(entry)))

    walk(reader.outline, 0)
    return rows


def test_a_pdf_has_all_parts_in_order_with_their_numbers_and_outlines(merge):
    answer, file = merge("c.pdf", "a.md", "b.html")
    assert (answer["warnings"], answer["facts"]["pages"]) == ([], 5)
    pages = texts(file)
    assert [
        next(word for word in ("Main", "page 1", "page 2", "Appendix", "Red") if word in page) for page in pages
    ] == [
        "Main",
        "page 1",
        "page 2",
        "Appendix",
        "Red",
    ]
    assert [page[-5:] for page in (pages[0], *pages[3:])] == ["1 / 5", "4 / 5", "5 / 5"]
    assert outline(file) == [
        (0, "Summary", 0),
        (0, "Costs of the year", 1),
        (1, "Chapter 1", 1),
        (1, "Chapter 2", 2),
        (0, "Appendix", 3),
        (1, "Summary", 3),
        (0, "Page", 4),
    ]
    assert shows(file, "#c01234", 4)


def test_pages_of_a_pdf_look_as_they_did(merge):
    _, file = merge("c.pdf", watermark="DRAFT")
    page = pypdf.PdfReader(file).pages[1]
    assert [round(float(side)) for side in page.mediabox[2:]] == [420, 300]
    assert [word in page.extract_text() for word in ("Cost page 1", "FILLED", "DRAFT")] == [True, True, True]
    links = [annotation.get_object()["/A"]["/URI"] for annotation in page["/Annots"]]
    assert links == ["https://costs.example/"]
    assert (shows(file, "#008000", 0), shows(file, "#008000", 1)) == (False, True)


def test_a_turned_page_is_as_high_as_it_is_shown(merge):
    _, file = merge("turned.pdf")
    page = pypdf.PdfReader(file).pages[1]
    assert [round(float(side)) for side in page.mediabox[2:]] == [300, 420]
    assert shows(file, "#008000", 1)


def test_ranges_and_passwords_count_for_all_pages(merge):
    answer, file = merge("c.pdf", pages="2-3", password="x")
    assert answer["facts"]["pages"] == 2
    reader = pypdf.PdfReader(file, password="x")
    assert ["Cost page" in page.extract_text() for page in reader.pages] == [True, True]


def test_only_a_pdf_without_others_pages_claims_to_be_accessible(merge):
    facts = [merge(*names)[0]["facts"]["variant"] for names in (("a.md",), ("c.pdf",))]
    assert facts == ["pdf/ua-1", "pdf"]
    assert b"pdfuaid" not in merge("c.pdf")[1].read_bytes()
    answer, _ = merge("c.pdf", pdf_variant="pdf/a-2b")
    assert answer["error"]["code"] == "invalid_option"


def test_the_same_part_twice_and_no_content_of_its_own(merge):
    answer, file = merge("c.pdf", "c.pdf", content="")
    assert (codes(answer), len(texts(file))) == ([], 4)
    assert texts(merge("a.md", "c.pdf", content=" ")[1])[0].startswith("Appendix")


def test_links_lead_within_their_own_part(merge):
    _, file = merge("a.md")
    reader = pypdf.PdfReader(file)
    (target,) = [
        reader.named_destinations[link["/Dest"]]
        for annotation in reader.pages[1]["/Annots"]
        if "summary" in str((link := annotation.get_object()).get("/Dest"))
    ]
    assert reader.get_destination_page_number(target) == 1


SAME = """\
<style>@media all {{ h1#summary:hover, #summary {{ color: {colour} }} }} /* #summary */
p {{ color: #fade; background: url("#summary") }} a::after {{ content: "#summary {{" }}</style>
<h1 id="summary">Words</h1><label for="summary x" aria-labelledby="x summary">a</label>
<svg width="90" height="90" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">
<linearGradient id="fade"><stop stop-color="{colour}"/></linearGradient>
<linearGradient id="other" xlink:href="#fade"/><rect width="90" height="90" fill="url(#fade)"/>
<circle r="5" style="fill:url('#fade') #fade"/><use href="#fade"/></svg><a href="#summary">b</a>
"""


def test_all_that_names_an_element_of_a_part_does_so_by_its_new_identity():
    tree = parse_html(SAME.format(colour="#c01234"))
    known = {"summary", "fade"}
    rename_ids(tree, known, "part-2-")
    text = ET.tostring(tree, encoding="unicode")
    assert {"part-2-summary", "part-2-fade", "other"} <= known
    for piece in (
        "h1#part-2-summary:hover, #part-2-summary {",
        "/* #summary */",
        'p { color: #fade; background: url("#part-2-summary") }',
        'content: "#summary {"',
        'for="part-2-summary x"',
        'aria-labelledby="x part-2-summary"',
        'href="#part-2-fade"/>',
        'fill="url(#part-2-fade)"',
        "fill:url('#part-2-fade') #fade",
        '<a href="#part-2-summary">',
    ):
        assert piece in text.replace(" />", "/>").replace("html:", ""), piece


@pytest.mark.parametrize(
    ("css", "renamed"),
    [
        (":not(#a) > #ab #a{}", ":not(#part-a) > #ab #part-a{}"),
        ("#a,/*{*/#a{color:#a;b:c}#a{}", "#part-a,/*{*/#part-a{color:#a;b:c}#part-a{}"),
        (".x{& #a{color:#a}color:#a}", ".x{& #part-a{color:#a}color:#a}"),
        ("x{b:url(data:a;#a{})}#a{", "x{b:url(data:a;#a{})}#part-a{"),
        ("#u\\.rl{c:URL( '#u.rl' )} #\u00fcb{", "#part-u\\.rl{c:URL( '#part-u.rl' )} #part-\u00fcb{"),
        ("x{a:'\n}#a{", "x{a:'\n}#part-a{"),
        ("#a", "#a"),
        ("", ""),
    ],
)
def test_only_selectors_and_addresses_of_a_style_sheet_change(css, renamed):
    names = {name: f"part-{name}" for name in ("a", "u.rl", "\u00fcb")}
    assert renamed_css(css, names) == renamed


def test_parts_with_the_same_identities_have_looks_of_their_own(merge, tmp_path):
    part = tmp_path / "turn_1" / "files" / "parts" / "same.html"
    part.write_text(SAME.format(colour="#0c8a34"))
    _, file = merge("same.html", content=SAME.format(colour="#c01234"), source_format="html")
    looks = [[shows(file, colour, page) for colour in ("#c01234", "#0c8a34")] for page in (0, 1)]
    assert looks == [[True, False], [False, True]]


def test_a_docx_has_all_parts_and_their_notes_and_pictures(merge):
    answer, file = merge("a.md", "b.html", output="docx")
    made = docx.Document(str(file))
    assert [item.text for item in made.paragraphs if item.style.name == "Heading 1"] == [
        "Summary",
        "Appendix",
        "Page",
    ]
    assert (answer["facts"]["footnotes"], answer["facts"]["images"], codes(answer)) == (2, 1, [])
    assert made.element.xpath("count(//w:pageBreakBefore | //w:br[@w:type='page'])") == 2


def test_a_deck_has_all_parts_as_slides(merge):
    _, file = merge("a.md", content="# Deck\n\n## One\n\ntext", output="pptx")
    titles = [slide.shapes.title.text_frame.text for slide in pptx.Presentation(str(file)).slides]
    assert titles == ["Deck", "One", "Appendix", "Summary"]


def encrypted() -> bytes:
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf()))
    writer.encrypt("x", algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "output", "words"),
    [
        ("locked.pdf", encrypted(), "pdf", "merge[1]: locked.pdf is encrypted; give a copy without a password"),
        ("cut.pdf", pdf()[:900], "pdf", "merge[1]: cut.pdf cannot be read as a PDF"),
        ("bad.pdf", b"%PDF-1.7\nrubbish", "pdf", "merge[1]: bad.pdf cannot be read as a PDF"),
        (
            "data.xlsx",
            b"PK\x03\x04",
            "pdf",
            "merge[1]: data.xlsx is neither Markdown (.md), HTML",
        ),
        ("latin.md", "Größe".encode("latin-1"), "pdf", "merge[1]: latin.md is not UTF-8 text; save it as UTF-8"),
        (
            "long.md",
            b"x" * 11_000_000,
            "docx",
            "merge[1]: long.md has 11,000,000 bytes (at most",
        ),
        ("c.pdf", None, "docx", "merge[1]: c.pdf is a PDF, and a DOCX is made of Markdown and HTML only"),
        ("none.md", None, "pptx", "merge[1]: none.md is not in the conversation; give a path"),
        ("../../../../etc/passwd", None, "pdf", "merge[1]: passwd is not read"),
    ],
)
def test_a_part_of_no_use_is_named(merge, tmp_path, name, data, output, words):
    if data is not None:
        (tmp_path / "turn_1" / "files" / "parts" / name).write_bytes(data)
    answer, file = merge("a.md", name, output=output)
    assert (answer["ok"], file.exists(), answer["error"]["code"]) == (False, False, "invalid_part")
    assert answer["error"]["message"].startswith(words)


def test_too_many_parts_are_refused(merge):
    assert merge(*["a.md"] * 65)[0]["error"]["message"] == "merge: 65 documents (at most 64); merge them in steps"


def test_what_acts_in_a_pdf_is_left_out(merge, tmp_path):
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf()))
    script = {NameObject("/S"): NameObject("/JavaScript"), NameObject("/JS"): TextStringObject("app.alert(1)")}
    writer.root_object[NameObject("/OpenAction")] = DictionaryObject(script)
    writer.add_attachment("evil.exe", b"MZ evil")
    link = DictionaryObject({
        NameObject("/Type"): NameObject("/Annot"), NameObject("/Subtype"): NameObject("/Link"),
        NameObject("/Rect"): ArrayObject([FloatObject(0)] * 4),
        NameObject("/A"): DictionaryObject({
            NameObject("/S"): NameObject("/Launch"), NameObject("/F"): TextStringObject("calc.exe"),
        }),
    })  # fmt: skip
    writer.pages[0][NameObject("/Annots")] = ArrayObject([writer._add_object(link)])
    writer.write(tmp_path / "turn_1" / "files" / "parts" / "acts.pdf")
    _, file = merge("acts.pdf")
    reader = pypdf.PdfReader(file)
    everything = " ".join(str(reader.get_object(number)) for number in range(1, len(reader.xref[0]) + 1))
    assert [word in everything for word in ("app.alert", "calc.exe", "evil.exe", "Launch")] == [False] * 4
    assert "Cost page 1" in texts(file)[1]


@pytest.mark.parametrize(
    ("kind", "value", "fields"),
    [("/Tx", "Jane", 1), ("/Ch", ["Red", "Blue"], 1), ("/Tx", " ", 0), ("/Tx", None, 0), ("/Btn", "Jane", 0)],
)
@pytest.mark.parametrize("inherited", [False, True])
def test_values_of_fields_that_are_not_drawn_are_a_warning(merge, tmp_path, kind, value, fields, inherited):
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf()))
    field = writer.pages[0]["/Annots"][-1].get_object()
    del field["/AP"]
    field.pop("/V", None)
    owner = writer._add_object(DictionaryObject()).get_object() if inherited else field
    if inherited:
        del field["/FT"]
        field[NameObject("/Parent")] = owner.indirect_reference
    owner[NameObject("/FT")] = NameObject(kind)
    if value is not None:
        rows = [TextStringObject(row) for row in value]
        owner[NameObject("/V")] = ArrayObject(rows) if isinstance(value, list) else TextStringObject(value)
    writer.write(tmp_path / "turn_1" / "files" / "parts" / "form.pdf")
    answer, _ = merge("form.pdf")
    lost = [warning["message"] for warning in answer["warnings"] if warning["code"] == "content_lost"]
    assert [message.startswith("merge[0]: form.pdf, page 1: the values of 1 form field") for message in lost] == [
        True
    ] * fields


def written_by_hand(page: bytes, catalog: bytes = b"", more: bytes = b"") -> bytes:
    """A PDF of one page, object by object."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R " + catalog + b">>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R " + page + b">>",
        more or b"null",
    ]
    out, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    start = len(out)
    out += b"xref\n0 5\n0000000000 65535 f \n" + rows
    return out + b"trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % start


BOX = b"/MediaBox [0 0 200 100] "
LOOP = b"<< /First 4 0 R /Title (a) /Next 4 0 R /Dest [3 0 R /Fit] >>"


@pytest.mark.parametrize(
    ("data", "pages"),
    [
        (written_by_hand(BOX), 2),
        (written_by_hand(BOX, b"/Outlines 4 0 R ", LOOP), 2),
        (written_by_hand(BOX + b"/Annots [<< /Subtype /Widget /Rect [0 0 9] >> 7 << /Subtype /Link /A 8 >>] "), 2),
        (written_by_hand(BOX + b"/Resources << /A " + b"[" * 3_000 + b"]" * 3_000 + b" >> "), 2),
        (written_by_hand(BOX + b"/Resources << /XObject 4 0 R >> ", more=b"<< /A 4 0 R /B 2 0 R >>"), 2),
        (written_by_hand(b""), 0),
        (written_by_hand(b"/MediaBox [0 0 99999999 9] "), 0),
        (written_by_hand(b"/MediaBox [0 0 0 0] "), 0),
        (written_by_hand(BOX).replace(b"/Kids [3 0 R]", b"/Kids [2 0 R]"), 0),
    ],
    ids=["empty", "outline", "annotations", "deep", "pages", "no box", "huge", "nothing", "cycle"],
)
def test_an_odd_pdf_is_taken_or_named(merge, tmp_path, data, pages):
    (tmp_path / "turn_1" / "files" / "parts" / "odd.pdf").write_bytes(data)
    answer, _ = merge("odd.pdf")
    assert answer.get("facts", {}).get("pages", 0) == pages
    assert pages or answer["error"]["message"].startswith("merge[0]: odd.pdf ")


def test_a_mark_of_an_author_s_own_places_no_pdf(merge):
    answer, file = merge(
        "c.pdf", content="<div class='pb-pdf-part' data-part='7'></div><p>Words", source_format="html"
    )
    assert (answer["ok"], len(texts(file))) == (True, 3)
