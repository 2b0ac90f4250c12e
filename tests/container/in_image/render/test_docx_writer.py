"""DOCX files are native Word: headings, lists, tables, notes, formulas, pictures, and every word in its order."""

import zipfile

import pytest
from docx_reading import Metadata, R, Source, W, opened_source, png, png_uri, values, written
from lxml import etree
from render.docx.package import safe_url
from render.docx.writer import write_docx
from render.model import RenderError

SOURCES = (Source(1, "First", "https://example.org/one"), Source(7, "A file", None, "files/x.csv"))


def test_headings_of_six_levels_are_headings_of_word(tmp_path):
    made = written("\n\n".join(f"{'#' * level} Level {level}" for level in range(1, 7)), tmp_path)
    assert made.styles() == [(f"Heading {level}", f"Level {level}") for level in range(1, 7)]


def test_text_before_the_first_heading_is_kept(tmp_path):
    assert written("first\n\n# Head\n\nlast", tmp_path).words() == ["first", "Head", "last"]


def test_every_word_is_there_in_order(tmp_path):
    source = (
        "intro *a* **b** `c` ~~d~~ [e](http://x.y)\n\n# f\n\n- g\n  1. h\n\n     i\n- j\n\n> k\n> - l\n\n"
        "| m | n |\n|---|---|\n| o | p |\n\n```python\nq = 1\nr\n```\n\nterm\n: def\n\n> [!NOTE]\n> s\n\n"
        "<div style='background:#eee'>t<p>u</div>\n\n::: columns\n"
        "::: column\nv\n:::\n::: column\nw\n:::\n:::\n\nx\n"
    )
    expected = "intro a b c d e f g h i j k l m n o p q = 1 r term def Note s t u v w x"
    assert written(source, tmp_path).words() == expected.split()


def test_links_lead_out_and_within(tmp_path):
    made = written("[out](<https://e.org/a b>) [in](#target)\n\n## Target\n", tmp_path)
    relations = made.part("word/_rels/document.xml.rels")
    outside = [row.get("Target") for row in relations if row.get("TargetMode") == "External"]
    assert outside == ["https://e.org/a%20b"]
    anchor = made.body.find(f".//{W}hyperlink[@{W}anchor]").get(W + "anchor")
    assert anchor in values(made.body, ".//w:bookmarkStart", "name")


@pytest.mark.parametrize(
    "url",
    [
        "http://[",
        "http:///x",
        "mailto:",
        "mailto:x@",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "//host/x",
        "",
        "http://h\\y",
    ],
)
def test_urls_that_word_calls_damage_are_no_links(url):
    assert safe_url(url) is None


def test_the_text_of_a_dropped_link_is_kept_with_a_warning(tmp_path):
    made = written('<a href="http://[">text</a>', tmp_path, source_format="html")
    assert made.words() == ["text"]
    assert [warning.code for warning in made.document.warnings] == ["dropped_link"]


def numbering(made):
    """For each numbered paragraph: its level, its format, and the start that its list overrides."""
    part = made.part("word/numbering.xml")
    rows = []
    for mark in made.body.iter(W + "numPr"):
        level = mark.find(W + "ilvl").get(W + "val")
        number = mark.find(W + "numId").get(W + "val")
        instance = part.find(f"{W}num[@{W}numId='{number}']")
        abstract = instance.find(W + "abstractNumId").get(W + "val")
        form = part.find(
            f"{W}abstractNum[@{W}abstractNumId='{abstract}']/{W}lvl[@{W}ilvl='{level}']/{W}numFmt"
        ).get(W + "val")
        start = instance.find(f"{W}lvlOverride/{W}startOverride")
        rows.append((number, int(level), form, None if start is None else start.get(W + "val")))
    return rows


def test_lists_nest_and_each_ordered_list_restarts(tmp_path):
    rows = numbering(written("1. a\n   - b\n2. c\n\ntext\n\n5. d\n", tmp_path))
    assert [row[1:] for row in rows] == [
        (0, "decimal", "1"),
        (1, "bullet", None),
        (0, "decimal", "1"),
        (0, "decimal", "5"),
    ]
    assert rows[0][0] == rows[2][0] != rows[3][0]


def test_every_level_of_every_definition_is_complete(tmp_path):
    part = written("1. a\n\n- b\n\n<ol type=i><li>c</ol>", tmp_path).part("word/numbering.xml")
    for abstract in part.iter(W + "abstractNum"):
        assert len(abstract.findall(W + "lvl")) == 9
        assert all(
            [child.tag for child in level][:3] == [W + "start", W + "numFmt", W + "lvlText"]
            for level in abstract.iter(W + "lvl")
        )


def test_task_items_are_boxes_to_tick(tmp_path):
    made = written("- [x] done\n- [ ] open\n", tmp_path)
    word14 = "{http://schemas.microsoft.com/office/word/2010/wordml}"
    assert [box.get(word14 + "val") for box in made.body.iter(word14 + "checked")] == ["1", "0"]


def test_footnotes_are_footnotes_of_word(tmp_path):
    made = written("x[^a] y[^b] again[^a]\n\n[^a]: The *first*.\n[^b]: Second\n\n    more\n", tmp_path)
    notes = made.part("word/footnotes.xml")
    assert values(made.body, ".//w:footnoteReference", "id") == ["1", "2"]
    texts = {note.get(W + "id"): "".join(note.itertext()).split() for note in notes}
    assert (texts["1"], texts["2"]) == (["The", "first."], ["Secondmore"])
    assert " NOTEREF _RefNote1 \\f \\h " in "".join(made.body.itertext())


def test_pictures_have_alt_text_their_own_size_and_no_more_than_the_page(tmp_path):
    made = written(f"![small]({png_uri(96, 48)}) ![wide]({png_uri(3000, 30)})", tmp_path)
    shown = [(shape.width.inches, shape.height.inches) for shape in made.opened.inline_shapes]
    assert shown[0] == (1.0, 0.5)
    assert 6.6 < shown[1][0] < 6.7
    names = [element.get("descr") for element in made.body.iter("{*}docPr")]
    assert names == ["small", "wide"]


def test_a_picture_is_stored_once(tmp_path):
    (tmp_path / "a.png").write_bytes(png(5, 5))
    made = written("![a](a.png) ![b](a.png)", tmp_path)
    assert [name for name in made.names() if name.startswith("word/media/")] == ["word/media/image1.png"]


def test_svg_stands_beside_its_png(tmp_path):
    made = written(
        '<svg width="40" height="20"><rect width="40" height="20"/></svg>', tmp_path, source_format="html"
    )
    assert sorted(name.rpartition(".")[2] for name in made.names() if name.startswith("word/media/")) == [
        "png",
        "svg",
    ]
    assert len(made.body.findall(".//{*}svgBlip")) == 1


def test_a_missing_picture_has_a_visible_place(tmp_path):
    made = written("![chart](no.png)", tmp_path)
    assert "no.png" in made.words()
    assert [warning.code for warning in made.document.warnings] == ["missing_asset"]


def test_code_keeps_its_lines_and_has_colours(tmp_path):
    made = written("```python\ndef f():\n\treturn 'x'\n```\n", tmp_path)
    block = next(paragraph for paragraph in made.opened.paragraphs if paragraph.style.name == "Code Block")
    assert block.text == "def f():\n\treturn 'x'"
    assert len({color.get(W + "val") for color in block._p.iter(W + "color")}) > 1


def test_no_field_asks_to_be_updated_when_the_file_is_opened(tmp_path):
    made = written("# T\n\n[TOC]\n\n## One\n\nx[^1] y[^1]\n\n[^1]: n\n", tmp_path)
    assert [mark for mark in made.body.iter(W + "fldChar") if mark.get(W + "dirty")] == []
    assert made.part("word/settings.xml").find(W + "updateFields") is None


def test_the_contents_know_the_pages_of_what_they_list(tmp_path):
    body = "\n\n".join("word " * 400 + f"\n\n## Part {number}" for number in range(1, 4))
    made = written(f"# Title\n\n[TOC]\n\n{body}\n\n\\newpage\n\n## Last", tmp_path)
    pages = [text.split("\t")[1] for style, text in made.styles() if style.startswith("toc")]
    assert pages == ["1", "2", "2", "3"]  # as LibreOffice has them


def test_numbered_captions_are_counted_by_word(tmp_path):
    source = "".join(
        f'<figure><img src="{png_uri(4, 4)}" alt="a"><figcaption>Figure {number}: b</figcaption></figure>'
        for number in (1, 2, 7)
    )
    made = written(source, tmp_path, source_format="html")
    asked = [element.text.strip() for element in made.body.iter(W + "instrText")]
    assert asked == ["SEQ Figure \\* ARABIC", "SEQ Figure \\* ARABIC", "SEQ Figure \\* ARABIC \\r 7"]
    assert made.words() == ["Figure", "1:", "b", "Figure", "2:", "b", "Figure", "7:", "b"]


def test_a_chart_is_native_with_the_workbook_of_its_figures(tmp_path):
    chart = '{"type":"bar","title":"Sales","labels":["A","B"],"datasets":[{"label":"x","data":[1,2]}]}'
    made = written(f"```chart\n{chart}\n```\n", tmp_path)
    part = made.part("word/charts/chart1.xml")
    space = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
    assert [value.text for value in part.iter(space + "v")] == ["x", "A", "B", "1.0", "2.0"]
    assert "word/embeddings/workbook1.xlsx" in made.names()
    assert [element.get("descr") for element in made.body.iter("{*}docPr")] == ["Sales. x: A 1, B 2"]


def test_the_contents_are_a_field_with_its_entries(tmp_path):
    made = written("# Title\n\n[TOC]\n\n## One\n\n### Two\n\n## Three\n", tmp_path)
    entries = [(style, text.split("\t")[0]) for style, text in made.styles() if style.startswith("toc")]
    assert entries == [("toc 1", "One"), ("toc 2", "Two"), ("toc 1", "Three")]
    marks = [mark.get(W + "fldCharType") for mark in made.body.iter(W + "fldChar")]
    assert (marks.count("begin"), marks.count("separate"), marks.count("end")) == (4, 4, 4)
    names = set(values(made.body, ".//w:bookmarkStart", "name"))
    assert {link.get(W + "anchor") for link in made.body.iter(W + "hyperlink")} <= names


def test_citations_lead_to_the_cited_sources(tmp_path):
    made = written(
        "claim [[S:7]] and [[S:1]]", tmp_path, sources=SOURCES, options={"include_sources_section": True}
    )
    links = [link.get(W + "anchor") for link in made.body.iter(W + "hyperlink") if link.get(W + "anchor")]
    assert links == ["source_1", "source_2"]
    assert made.words() == [
        "claim",
        "[1]",
        "and",
        "[2]",
        "Sources",
        "1.",
        "A",
        "file",
        "2.",
        "First",
        "https://example.org/one",
    ]


def test_without_a_sources_section_citations_lead_to_the_source(tmp_path):
    made = written("claim [[S:1]]", tmp_path, sources=SOURCES, options={"include_sources_section": False})
    assert made.words() == ["claim", "[1]"]
    number = made.body.find(f".//{W}hyperlink").get(R + "id")
    targets = {row.get("Id"): row.get("Target") for row in made.part("word/_rels/document.xml.rels")}
    assert targets[number] == "https://example.org/one"


def test_the_document_says_what_it_is(tmp_path):
    metadata = Metadata("T <&> title", "An Author", "subject", ("one", "two"), "de")
    core = written("x", tmp_path, metadata=metadata).opened.core_properties
    found = (core.title, core.author, core.subject, core.keywords, core.language)
    assert found == ("T <&> title", "An Author", "subject", "one, two", "de-DE")


def test_page_breaks_go_into_the_paragraph_behind(tmp_path):
    made = written("a\n\n\\newpage\n\nb", tmp_path)
    broken = [paragraph.find(f"{W}pPr/{W}pageBreakBefore") is not None for paragraph in made.body.iter(W + "p")]
    assert broken == [False, True]


def test_characters_that_xml_cannot_hold_are_left_out(tmp_path):
    made = written("<p>a&#1;b&#xFFFF;c\ud83d</p><pre>d\x0be</pre>", tmp_path, source_format="html")
    assert "".join(made.words())[:3] == "abc"


def test_no_text_element_holds_a_line_end(tmp_path):
    made = written("<pre>a\nb\n\nc</pre><p style='white-space:pre'>d\ne\tf</p>", tmp_path, source_format="html")
    assert [text.text for text in made.body.iter(W + "t") if set(text.text) & set("\n\r\t")] == []


def test_text_from_right_to_left_is_marked(tmp_path):
    made = written("مرحبا بالعالم\n\nhello", tmp_path)
    assert [paragraph.find(f"{W}pPr/{W}bidi") is not None for paragraph in made.body.iter(W + "p")] == [True, False]
    assert made.body.find(f".//{W}rPr/{W}rtl") is not None


@pytest.mark.parametrize(
    "source",
    [
        "",
        "<div>" * 3000 + "x",
        "<ul><li>a" * 400,
        "<blockquote>q" * 300,
        "<table><tr><td>t" * 150,
        "<table><tr><td colspan=65534 rowspan=65534>a<td rowspan=0>b<tr><td>c</table>",
        "<table></table><table><tr></tr></table><table><caption>c</caption></table>",
        "<img src='../../etc/passwd'><img src='data:image/png;base64,AAAA'><img>",
        "<p style='color:#12;background:rgb(1,2;width:1e999px;text-align:}'>x",
        "<figure class=pb-chart data-chart='{'>x</figure><div class=pb-columns></div>",
    ],
)
def test_hostile_sources_become_files_that_open(source, tmp_path):
    made = written(source, tmp_path, source_format="html")
    assert made.opened.element.body is not None
    with zipfile.ZipFile(made.path) as package:
        for name in package.namelist():
            if name.endswith((".xml", ".rels")):
                etree.fromstring(package.read(name))


def test_a_folder_that_is_not_there_is_a_typed_error(tmp_path):
    document = opened_source("x", tmp_path)
    with pytest.raises(RenderError) as caught:
        write_docx(document, str(tmp_path / "none" / "out.docx"))
    assert caught.value.code == "write_failed"


def test_the_contents_count_footnotes_and_what_stands_together(tmp_path):
    table = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 12
    note = "\n\n".join(f"[^{number}]: n" for number in range(6))
    calls = " ".join(f"a[^{number}]" for number in range(6))
    full = "word " * 540
    tops = {"a line": "x", "table": table, "notes": f"{calls}\n\n{note}"}
    pages = {}
    for name, start in tops.items():
        made = written(f"# Title\n\n[TOC]\n\n## One\n\n{full}\n\n## Two\n\n{start}\n", tmp_path)
        pages[name] = [text.split("\t")[1] for style, text in made.styles() if style.startswith("toc")]
    assert pages == {"a line": ["1", "1"], "table": ["1", "2"], "notes": ["1", "2"]}
