"""The tree of a document becomes the intermediate representation, and no text is lost on the way."""

from docx_reading import opened_source, png_uri
from render.ir import (
    Callout,
    Code,
    Columns,
    Contents,
    DefinitionList,
    Diagram,
    Figure,
    FormulaBlock,
    Heading,
    Image,
    LineBreak,
    ListBlock,
    NoteRef,
    PageBreak,
    Paragraph,
    Quote,
    Rule,
    Run,
    SpeakerNotes,
    Table,
)  # fmt: skip
from render.to_ir.flatten import paragraphs
from render.to_ir.reader import read


def blocks(source, tmp_path, source_format="markdown"):
    return read(opened_source(source, tmp_path, source_format=source_format)).blocks


def html(source, tmp_path):
    return blocks(source, tmp_path, "html")


def text(found):
    return [
        "".join(
            inline.text if isinstance(inline, Run) else "\n" if isinstance(inline, LineBreak) else ""
            for inline in part
        )
        for part in paragraphs(found)
    ]


def test_white_space_collapses_as_html_says(tmp_path):
    found = html("<p>  a \n <b> b</b>  <i>c </i> d<br> e </p>", tmp_path)
    assert text(found) == ["a b c d\ne"]


def test_white_space_of_pre_is_kept(tmp_path):
    found = html("<pre>\n  a\tb\n\n c</pre><p style='white-space:pre-wrap'> x  y\nz</p>", tmp_path)
    assert text(found)[:3] == ["  a\tb", " c", " x  y\nz"]
    assert [len(line) for line in found[0].lines] == [1, 0, 1]


def test_looks_of_nested_elements_add_up(tmp_path):
    found = html("<p><b>b<i>bi<u>biu<s>s</s></u></i></b><code>c</code><sub>2</sub><sup>3</sup></p>", tmp_path)
    looks = [
        (run.text, run.bold, run.italic, run.underline, run.strike, run.code, run.sub, run.sup)
        for run in found[0].inlines
    ]
    assert looks == [
        ("b", True, False, False, False, False, False, False),
        ("bi", True, True, False, False, False, False, False),
        ("biu", True, True, True, False, False, False, False),
        ("s", True, True, True, True, False, False, False),
        ("c", False, False, False, False, True, False, False),
        ("2", False, False, False, False, False, True, False),
        ("3", False, False, False, False, False, False, True),
    ]


def test_colours_are_understood_in_every_notation(tmp_path):
    notations = (
        "red",
        "#f00",
        "rgb(255 0 0)",
        "hsl(0 100% 50%)",
        "var(--none, #ff0000)",
        "linear-gradient(red, blue)",
    )
    found = html("".join(f'<p><span style="color:{notation}">x</span></p>' for notation in notations), tmp_path)
    assert [block.inlines[0].colour for block in found] == ["#ff0000"] * len(notations)


def test_odd_colours_are_none(tmp_path):
    notations = ("#12", "rgb(1,2", "currentColor", "transparent", "url(x)", "var(--a", "calc(1/0)")
    found = html("".join(f'<p><span style="color:{notation}">x</span></p>' for notation in notations), tmp_path)
    assert [block.inlines[0].colour for block in found] == [None] * len(notations)


def test_theme_variables_are_colours(tmp_path):
    document = opened_source('<p style="color: var(--pb-accent)">x</p>', tmp_path, source_format="html")
    assert read(document).blocks[0].inlines[0].colour == document.theme.colours["accent"]


def test_lists_nest_and_count_from_their_start(tmp_path):
    outer = blocks("3. a\n   - b\n     1. c\n4. d\n", tmp_path)[0]
    assert (outer.ordered, outer.start, len(outer.items)) == (True, 3, 2)
    inner = outer.items[0].blocks[1]
    assert (inner.ordered, len(inner.items)) == (False, 1)
    assert inner.items[0].blocks[1].ordered


def test_an_item_with_a_number_of_its_own_begins_a_list(tmp_path):
    found = html("<ol><li>a<li value=7>b<li>c</ol>", tmp_path)
    assert [(block.start, len(block.items)) for block in found] == [(1, 1), (7, 2)]


def test_a_reversed_list_counts_down(tmp_path):
    found = html("<ol reversed><li>c<li>b<li>a</ol>", tmp_path)
    assert [(block.start, text([block])) for block in found] == [(3, ["c"]), (2, ["b"]), (1, ["a"])]


def test_a_list_right_in_a_list_belongs_to_the_item_before(tmp_path):
    found = html("<ul><li>a</li><ul><li>b</li></ul></ul>", tmp_path)
    assert len(found[0].items) == 1
    assert isinstance(found[0].items[0].blocks[1], ListBlock)


def test_task_items_know_whether_they_are_done(tmp_path):
    found = blocks("- [x] a\n- [ ] b\n- c\n", tmp_path)[0]
    assert [item.checked for item in found.items] == [True, False, None]
    assert text([found]) == ["a", "b", "c"]


def grid(table):
    covered = {}
    for cell in table.cells:
        for row in range(cell.row, cell.row + cell.rowspan):
            for column in range(cell.column, cell.column + cell.colspan):
                assert (row, column) not in covered
                covered[row, column] = text(cell.blocks)
    assert sorted(covered) == [(row, column) for row in range(table.rows) for column in range(table.columns)]
    return covered


def test_spans_are_placed_in_a_grid(tmp_path):
    table = html("<table><tr><td rowspan=2>a<td colspan=2>b<tr><td>c<td>d</table>", tmp_path)[0]
    assert (table.rows, table.columns) == (2, 3)
    assert grid(table)[1, 0] == ["a"]
    assert grid(table)[0, 2] == ["b"]


def test_ragged_and_overlapping_rows_are_repaired(tmp_path):
    table = html(
        "<table><tr><td>1<td rowspan=3>2<td>3<tr><td colspan=3>4<tr><td>5<td>6<td>7<td>8</table>", tmp_path
    )[0]
    grid(table)
    assert sorted(word for part in text([table]) for word in part) == list("12345678")


def test_huge_spans_are_bounded_by_the_rows_that_are_there(tmp_path):
    table = html("<table><tr><td colspan=65534 rowspan=65534>a<td>b<tr><td>c</table>", tmp_path)[0]
    assert table.columns <= 3
    grid(table)


def test_a_row_of_five_thousand_cells_keeps_its_words(tmp_path):
    found = html("<table><tr>" + "".join(f"<td>w{number}" for number in range(5000)) + "</table>", tmp_path)
    assert [word for part in text(found) for word in part.split()] == [f"w{number}" for number in range(5000)]


def test_header_rows_alignment_and_caption_of_tables(tmp_path):
    table = blocks("| a | b |\n|---|--:|\n| 1 | 2 |\n", tmp_path)[0]
    assert table.header_rows == 1
    assert [cell.align for cell in table.cells] == [None, "right", None, "right"]
    captioned = html("<table><caption>Cap</caption><tr><th>h<tr><td bgcolor=#eeeeee>1</table>", tmp_path)[0]
    assert (text([captioned])[0], captioned.header_rows, captioned.cells[1].frame.background) == (
        "Cap",
        1,
        "#eeeeee",
    )


def test_column_widths_come_from_col_elements(tmp_path):
    table = html("<table><col width='25%'><col><tr><td>a<td>b</table>", tmp_path)[0]
    assert table.widths == [25.0, 75.0]


def test_images_have_their_size_from_style_attributes_or_nature(tmp_path):
    uri = png_uri(80, 40)
    sizes = ("", 'width="40"', 'style="height:10px"', 'style="width:50px;max-width:20px" height="25"')
    found = html("".join(f'<p><img src="{uri}" alt="x" {size}></p>' for size in sizes), tmp_path)
    shown = [(block.inlines[0].width, block.inlines[0].height) for block in found]
    assert shown == [(80.0, 40.0), (40.0, 20.0), (20.0, 10.0), (20.0, 10.0)]


def test_a_figure_has_its_caption(tmp_path):
    figure = html(
        f'<figure><img src="{png_uri(4, 4)}" alt="alt"><figcaption>Cap <b>b</b></figcaption></figure>', tmp_path
    )[0]
    assert isinstance(figure, Figure)
    assert isinstance(figure.image, Image)
    assert (figure.image.alt, text([figure])) == ("alt", ["", "Cap b"])


def test_a_caption_below_its_table_stays_there(tmp_path):
    found = html("<figure><table><tr><td>1</table><figcaption>Cap</figcaption></figure>", tmp_path)
    assert (found[0].caption_below, text(found)) == (True, ["Cap", "1"])


def test_an_svg_element_with_a_namespace_of_its_own_is_a_picture(tmp_path):
    source = '<p><svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><text>PAID</text></svg></p>'
    assert [inline.mime for inline in html(source, tmp_path)[0].inlines] == ["image/svg+xml"]


def test_an_svg_element_is_a_picture(tmp_path):
    found = html(
        '<p>a<svg width="30" height="20"><title>T</title><rect width="9" height="9"/></svg>b</p>', tmp_path
    )
    image = found[0].inlines[1]
    assert (image.mime, image.width, image.height, image.alt) == ("image/svg+xml", 30.0, 20.0, "T")


def test_code_is_lines_of_coloured_runs(tmp_path):
    code = blocks("```python\ndef f():\n    return 1\n```\n", tmp_path)[0]
    assert isinstance(code, Code)
    assert ["".join(run.text for run in line) for line in code.lines] == ["def f():", "    return 1"]
    assert code.language == "python"
    assert code.lines[0][0].colour is not None


def test_marks_become_blocks_of_their_kind(tmp_path):
    source = (
        "# H\n\n[TOC]\n\n> q\n\n> [!TIP]\n> t\n\n::: columns\n"
        "::: column\nl\n:::\n::: column\nr\n:::\n:::\n\n---\n\n"
        "term\n: def\n\n"
        "$$\nx\n$$\n\n```mermaid\ngraph LR\nA-->B\n```\n\n\\newpage\n\n::: notes\nsay\n:::\n"
    )
    kinds = [type(block) for block in blocks(source, tmp_path)]
    assert kinds == [
        Heading, Contents, Quote, Callout, Columns, Rule, DefinitionList, FormulaBlock, Diagram, PageBreak,
        SpeakerNotes,
    ]  # fmt: skip


def test_footnotes_stand_apart_in_the_order_of_their_calls(tmp_path):
    content = read(opened_source("a[^2] b[^1]\n\n[^1]: one\n[^2]: two\n", tmp_path))
    assert [type(inline) for inline in content.blocks[0].inlines] == [Run, NoteRef, Run, NoteRef]
    assert [text(note) for note in content.notes.values()] == [["two"], ["one"]]


def test_elements_without_meaning_pass_their_content_through(tmp_path):
    source = (
        "<foo>a<bar>b</bar></foo><details><summary>c</summary>d</details>"
        "<fieldset><legend>e</legend>f</fieldset><dl>g<dt>h</dl>"
    )
    assert text(html(source, tmp_path)) == ["ab", "c", "d", "e", "f", "g", "h"]


def test_nesting_of_ten_thousand_elements_keeps_the_text(tmp_path):
    for opening in ("<div>", "<ul><li>", "<blockquote>", "<b><i>"):
        assert "end" in " ".join(text(html("start" + opening * 5000 + "end", tmp_path))).replace("start", "")


def test_classes_that_are_called_like_elements_mean_nothing(tmp_path):
    found = html("<div class=table>a</div><p class=a>b</p><p class=figure>c</p><p class=hr>d</p>", tmp_path)
    assert text(found) == ["a", "b", "c", "d"]


def test_hidden_elements_show_nothing(tmp_path):
    assert text(html("<p>a<span hidden>b</span><span style='display: none'>c</span></p>", tmp_path)) == ["a"]


def test_the_quoted_and_the_ruby_text_reads_as_in_a_browser(tmp_path):
    assert text(html("<p><q>a</q> <ruby>b<rp>(</rp><rt>c</rt><rp>)</rp></ruby></p>", tmp_path)) == [
        "\u201ca\u201d b(c)"
    ]


def test_paragraphs_take_the_alignment_of_what_is_around_them(tmp_path):
    found = html("<div style='text-align:center'>a<p>b</p></div><p align=right>c</p>", tmp_path)
    assert [block.align for block in found if isinstance(block, Paragraph)] == ["center", "center", "right"]


def test_a_cell_of_a_table_is_found_by_its_type(tmp_path):
    assert isinstance(
        html("<table><tr><td><table><tr><td>x</table></table>", tmp_path)[0].cells[0].blocks[0], Table
    )
