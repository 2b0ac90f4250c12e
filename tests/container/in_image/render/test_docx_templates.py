"""A DOCX in a house template has its styles, page, headers and lists, and nothing of its text."""

import posixpath

import docx
import pytest
from docx.oxml.ns import qn
from docx_reading import W, png, values, written
from house_files import changed, unpacked, word_template

TEXT = """\
---
title: Quarterly report
---

# Summary

Words[^1] of it.

- one
  - nested
- two

  more of two

1. first

> quoted

| Region | Q1 |
|---|---:|
| North | 120 |

- [x] done

[^1]: A note.
"""


@pytest.fixture
def house(tmp_path):
    word_template(tmp_path / "house.docx")
    return lambda source, **options: written(source, tmp_path, options={"template": "house.docx", **options})


def test_text_has_the_styles_of_the_template_and_its_own_words_are_gone(house):
    made = house(TEXT)
    styles = {text: style for style, text in made.styles()}
    assert "Old words" not in styles
    assert {text: styles[text] for text in ("Quarterly report", "Summary", "quoted", "one", "two", "first")} == {
        "Quarterly report": "Title",
        "Summary": "Heading 1",
        "quoted": "Quote",
        "one": "List Bullet",
        "two": "List Bullet",
        "first": "List Number",
    }
    assert (styles["nested"], styles["more of two"]) == ("List Bullet 2", "List Paragraph")
    heading = made.opened.styles["Heading 1"]
    assert (str(heading.font.color.rgb), heading.font.size.pt) == ("0B6E4F", 24)
    assert [table.style.name for table in made.opened.tables] == ["House Table"]


def test_every_style_that_a_paragraph_names_exists(house):
    made = house(TEXT + "\n```python\nx = 1\n```\n\n> [!NOTE]\n> note\n\nterm\n: meaning", toc=True)
    known = set(values(made.part("word/styles.xml"), ".//w:style", "styleId"))
    used = [name for tag in ("pStyle", "rStyle", "tblStyle") for name in values(made.body, f".//w:{tag}")]
    assert len(used) >= 20
    assert set(used) - known == set()
    numbers = set(values(made.part("word/numbering.xml"), ".//w:num", "numId"))
    assert set(values(made.body, ".//w:numId")) - numbers == set()


def test_a_task_and_the_rest_of_an_item_have_no_bullet(house):
    paragraphs = {item.text.strip(): item for item in house(TEXT).opened.paragraphs}
    task = next(item for text, item in paragraphs.items() if text.endswith("done"))
    assert (task.style.name, paragraphs["more of two"].style.name) == ("List Paragraph", "List Paragraph")


def test_the_page_and_the_headers_are_those_of_the_template(house):
    section = house(TEXT).opened.sections[0]
    assert [round(side.mm) for side in (section.page_width, section.page_height, section.left_margin)] == [
        216,
        279,
        35,
    ]
    assert section.header.paragraphs[0].text == "Quarterly report of Larkfield"
    assert section.footer.paragraphs[0].text == "Larkfield Partners"


def test_what_the_request_says_of_pages_counts_more(house):
    section = house(TEXT, page_size="A5", margins={"left": "11mm"}, header="own", landscape=True).opened.sections[0]
    assert [round(side.mm) for side in (section.page_width, section.page_height)] == [210, 148]
    assert (round(section.left_margin.mm), section.header.paragraphs[0].text) == (11, "own")
    assert section.footer.paragraphs[0].text == "Larkfield Partners"


def test_a_wide_table_has_a_page_on_its_side_with_the_same_headers(house):
    head = "| " + " | ".join(f"Column{number}words" for number in range(14)) + " |"
    table = f"{head}\n|{'---|' * 14}\n|{' word |' * 14}"
    made = house(f"before\n\n{table}\n\nafter")
    sections = made.opened.sections
    assert [section.page_width > section.page_height for section in sections] == [False, True, False]
    assert {section.footer.paragraphs[0].text for section in sections} == {"Larkfield Partners"}


def test_the_text_stands_where_the_template_says(tmp_path):
    word_template(tmp_path / "house.docx", body=("Before", "{{content}}", "Imprint"))
    made = written("# One\n\ntext", tmp_path, options={"template": "house.docx"})
    assert [text for _, text in made.styles()] == ["Before", "One", "text", "Imprint"]
    assert len(made.opened.sections) == 1


KINDS = ("header", "first_page_header", "even_page_header")


def kinds_template(path, *, own=KINDS, body=("Old words",), sections=1):
    """A template with headers of three kinds, of which only some have words of their own."""
    template = docx.Document(str(word_template(path, body=body)))
    template.settings.odd_and_even_pages_header_footer = True
    section = template.sections[0]
    section.different_first_page_header_footer = True
    section.header.is_linked_to_previous = True
    for kind in own:
        getattr(section, kind).paragraphs[0].text = f"own {kind}"
    for _ in range(sections - 1):
        template.add_section()
        template.add_paragraph("Last")
    template.save(str(path))


def running(made, section=0):
    """The words and the watermarks of the headers of a section, by their kind."""
    found = {kind: getattr(made.opened.sections[section], kind) for kind in KINDS}
    return {
        kind: ("".join(item.text for item in header.paragraphs).strip(), len(header._element.xpath(".//w:pict")))
        for kind, header in found.items()
    }


@pytest.mark.parametrize("own", [KINDS, KINDS[:1], KINDS[1:], ()])
@pytest.mark.parametrize("cover", [False, True])
def test_a_watermark_stands_in_the_headers_of_the_template(tmp_path, own, cover):
    kinds_template(tmp_path / "house.docx", own=own)
    options = {"template": "house.docx", "watermark": "DRAFT", "cover": cover}
    made = written("# One\n\ntext", tmp_path, options=options)
    assert running(made) == {kind: (f"own {kind}" if kind in own else "", 1) for kind in KINDS}


def test_a_header_of_the_request_is_on_first_and_even_pages_too(tmp_path):
    kinds_template(tmp_path / "house.docx")
    options = {"template": "house.docx", "header": "mine"}
    assert set(running(written("# One", tmp_path, options=options)).values()) == {("mine", 0)}
    marked = running(written("# One", tmp_path, options={**options, "watermark": "DRAFT"}))
    assert set(marked.values()) == {("mine", 1)}
    covered = running(written("# One", tmp_path, options={**options, "watermark": "DRAFT", "cover": True}))
    assert covered == {"header": ("mine", 1), "first_page_header": ("own first_page_header", 1),
                       "even_page_header": ("mine", 1)}  # fmt: skip


@pytest.mark.parametrize("sections", [1, 2])
@pytest.mark.parametrize("options", [{"header": "mine"}, {"header": "mine", "watermark": "DRAFT"}])
def test_headers_of_a_request_count_where_the_text_is_amid_that_of_the_template(tmp_path, options, sections):
    kinds_template(tmp_path / "house.docx", body=("Before", "{{content}}", "Imprint"), sections=sections)
    made = written("# One", tmp_path, options={"template": "house.docx", **options})
    assert len(made.opened.sections) == sections
    assert set(running(made).values()) == {("mine", int("watermark" in options))}


def test_a_watermark_is_on_all_sections_of_a_template_and_keeps_pictures_of_its_headers(tmp_path):
    (tmp_path / "a.png").write_bytes(png(40, 20))
    kinds_template(tmp_path / "house.docx", body=("{{content}}",), sections=2)
    template = docx.Document(str(tmp_path / "house.docx"))
    template.sections[1].header.is_linked_to_previous = False
    template.sections[1].header.paragraphs[0].add_run("second").add_picture(str(tmp_path / "a.png"))
    template.save(str(tmp_path / "house.docx"))
    made = written("# One", tmp_path, options={"template": "house.docx", "watermark": "DRAFT"})
    assert [running(made, section)["header"] for section in (0, 1)] == [("own header", 1), ("second", 1)]
    part = made.opened.sections[1].header.part
    assert [len(part.related_parts[key].blob) > 0 for key in part.element.xpath(".//a:blip/@r:embed")] == [True]


RUNS = ("Report {", "{ti", "tle}", "} by {{author", "}} end")


def test_fields_are_filled_wherever_word_splits_them(tmp_path):
    word_template(tmp_path / "house.docx", body=("", "{{content}}", ""))
    template = docx.Document(str(tmp_path / "house.docx"))
    first, last = template.paragraphs[0], template.paragraphs[2]
    for paragraph in (first, last, template.sections[0].footer.paragraphs[0]):
        paragraph.text = ""
        for text in RUNS:
            paragraph.add_run(text)
    last.add_run(" {{other}} {{subject}}")
    template.save(str(tmp_path / "house.docx"))
    source = "---\ntitle: A & B {{author}}\nauthor: C <D>\n---\n\n{{title}} stays"
    made = written(source, tmp_path, options={"template": "house.docx"})
    words = [text for _, text in made.styles()]
    line = "Report A & B {{author}} by C <D> end"
    assert (words[0], words[-1]) == (line, f"{line} {{{{other}}}} ")
    assert "{{title}} stays" in words
    assert made.opened.sections[0].footer.paragraphs[0].text == line


@pytest.mark.parametrize(
    ("tag", "codes"),
    [
        ("footnoteReference", ["template_cleaned"]),
        ("endnoteReference", ["template_cleaned"]),
        ("commentReference", []),
    ],
)
def test_text_around_the_content_calls_no_notes_that_are_gone(tmp_path, tag, codes):
    def call(parts):
        name = "word/document.xml"
        run = f'<w:r><w:rPr><w:b/></w:rPr><w:{tag} w:id="7"/></w:r></w:p>'.encode()
        parts[name] = parts[name].replace(b"</w:p>", run)

    changed(word_template(tmp_path / "house.docx", body=("Before", "{{content}}", "Imprint")), call)
    made = written("Words[^1]\n\n[^1]: Note.", tmp_path, options={"template": "house.docx"})
    assert [text for _, text in made.styles()] == ["Before", "Words", "Imprint"]
    assert set(values(made.body, f".//w:{tag}", "id")) <= set(
        values(made.part("word/footnotes.xml"), ".//w:footnote", "id")
    )
    assert [warning.code for warning in made.document.warnings] == codes
    assert not [run for run in made.body.iter(f"{W}r") if all(child.tag == f"{W}rPr" for child in run)]


def test_a_mark_within_a_table_is_a_warning(tmp_path):
    def put_into_a_table(parts):
        name = "word/document.xml"
        head, rest = parts[name].split(b"<w:p>", 1)
        parts[name] = (
            head + b"<w:tbl><w:tr><w:tc><w:p>" + rest.replace(b"</w:p>", b"</w:p></w:tc></w:tr></w:tbl>", 1)
        )

    changed(word_template(tmp_path / "house.docx", body=("{{content}}",)), put_into_a_table)
    made = written("# One", tmp_path, options={"template": "house.docx"})
    assert [warning.code for warning in made.document.warnings] == ["content_mark_ignored"]
    assert [text for _, text in made.styles()] == ["One"]


def test_styles_are_found_by_name_whatever_their_ids(tmp_path):
    word_template(tmp_path / "house.docx", german=True)
    made = written("# One\n\ntext", tmp_path, options={"template": "house.docx"})
    assert values(made.body, ".//w:pStyle")[0] == "berschrift1"
    assert made.styles()[0] == ("Heading 1", "One")


def test_pictures_footnotes_and_charts_are_beside_those_of_the_template(house, tmp_path):
    (tmp_path / "a.png").write_bytes(png(40, 20))
    chart = "```chart\ntype: bar\nlabels: [a, b]\nseries:\n  - name: s\n    data: [1, 2]\n```"
    made = house(f"{TEXT}\n\n![a](a.png)\n\n{chart}", header="![logo](a.png) Acme")
    assert made.result["images"] == 2
    parts = unpacked(made.path)
    for name, data in parts.items():
        if name.endswith(".rels") and name != "_rels/.rels":
            folder = name.partition("_rels/")[0]
            for target in data.decode().split('Target="')[1:]:
                path = target.partition('"')[0]
                assert path.startswith("http") or posixpath.normpath(folder + path) in parts, (name, path)
    assert "A note." in "".join(made.part("word/footnotes.xml").itertext())


def test_a_section_of_a_template_keeps_its_settings(tmp_path):
    def number_lines(parts):
        parts["word/document.xml"] = parts["word/document.xml"].replace(
            b"<w:cols", b'<w:lnNumType w:countBy="5"/><w:cols', 1
        )

    changed(word_template(tmp_path / "house.docx"), number_lines)
    made = written("# One", tmp_path, options={"template": "house.docx"})
    assert values(made.body, ".//w:sectPr/w:lnNumType", "countBy") == ["5"]


def test_colours_of_boxes_and_code_are_those_of_the_template_s_theme(tmp_path):
    def recolour(parts):
        parts["word/theme/theme1.xml"] = parts["word/theme/theme1.xml"].replace(b"4F81BD", b"AA0011")

    changed(word_template(tmp_path / "house.docx"), recolour)
    made = written("[a](https://e.example)", tmp_path, options={"template": "house.docx"})
    style = made.opened.styles["Hyperlink"]
    assert style.element.find(f".//{W}color").get(qn("w:val")) == "AA0011"
