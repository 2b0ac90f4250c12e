"""The author's style sheets count in a DOCX as they do on a page; the theme's are its named styles."""

from docx_reading import opened_source, values, written
from render.ir import Box, Columns, Frame, Line, Paragraph
from render.to_ir.reader import read


def styled(css, body, tmp_path):
    return read(opened_source(f"<style>{css}</style>{body}", tmp_path, source_format="html"))


def colours(css, body, tmp_path):
    return [inline.colour for block in styled(css, body, tmp_path).blocks for inline in block.inlines]


def test_classes_elements_and_descendants_are_selected(tmp_path):
    css = "p{color:#111111} .a{color:#222222} div .a b{color:#333333} #i{color:#444444}"
    body = "<p>1</p><p class=a>2</p><div><p class=a>3<b>4</b></p></div><p class=a id=i>5</p>"
    assert colours(css, body, tmp_path) == ["#111111", "#222222", "#222222", "#333333", "#444444"]


def test_the_weightier_declaration_wins_and_an_attribute_over_both(tmp_path):
    css = ".a{color:#111111} p{color:#222222} .b{color:#333333!important} p{background:red;background:none}"
    body = '<p class=a>1</p><p style="color:#444444" class=a>2</p><p style="color:#444444" class=b>3</p>'
    assert colours(css, body, tmp_path) == ["#111111", "#444444", "#333333"]
    assert [block.frame for block in styled(css, body, tmp_path).blocks] == [None] * 3


def test_variables_are_handed_down_and_can_be_set_anew(tmp_path):
    css = ":root{--a:#111111;--b:var(--a)} .x{--a:#222222;--b:var(--c,#333333)} p{color:var(--b)} i{color:var(--a)}"
    body = "<p>1<i>2</i></p><div class=x><p>3<i>4</i></p></div>"
    assert colours(css, body, tmp_path) == ["#111111", "#111111", "#333333", "#222222"]


def test_variables_that_double_each_other_end(tmp_path):
    css = ":root{--v0:red " + ";".join(f"--v{number}:" + f"var(--v{number - 1}) " * 10 for number in range(1, 30))
    assert colours(css + "} p{color:var(--v29)} q{--r:var(--r)}", "<p>x</p>", tmp_path) == [None]


def test_what_is_not_printed_is_not_written(tmp_path):
    css = "@media print{.a{display:none}} @media screen{.b{display:none}} .c{visibility:hidden}"
    made = styled(css, "<p class=a>1</p><p class=b>2</p><p>3<span class=c>4</span></p>", tmp_path)
    assert ["".join(run.text for run in block.inlines) for block in made.blocks] == ["2", "3"]


def test_text_has_the_weight_slant_line_case_size_and_space_of_its_styles(tmp_path):
    css = (
        ".a{font:italic bold 32px Arial;text-decoration:underline} .b{text-transform:uppercase} .c{white-space:pre}"
    )
    made = styled(css, "<p><span class=a>1</span><span class=b>two</span><span class=c>3  4</span></p>", tmp_path)
    first, *rest = made.blocks[0].inlines
    assert (first.bold, first.italic, first.underline, first.size) == (True, True, True, 28.0)
    assert "".join(run.text for run in rest) == "TWO3  4"


def test_sizes_are_in_proportion_to_the_author_s_own_body_text(tmp_path):
    css = "body{font-size:20px} .a{font-size:10px} .b{font-size:2em} .c{font-size:150%}"
    made = styled(css, "<p>0</p><p class=a>1</p><p class=b>2</p><p class=c>3</p>", tmp_path)
    assert [block.inlines[0].size for block in made.blocks] == [None, 7.0, 28.0, 21.0]


def test_a_block_with_ground_or_lines_is_framed(tmp_path):
    css = ".a{background:#eeeeee;border-left:4px solid #0000ff} .b{border:2px dashed red} .c{border-radius:4px}"
    made = styled(css, "<div class=a>1</div><div class=b><p>2<p>3</div><div class=c>4</div>", tmp_path).blocks
    line = Line(2.0, "#ff0000", "dashed")
    assert [type(block) for block in made] == [Paragraph, Box, Paragraph]
    assert [block.frame for block in made] == [
        Frame("#eeeeee", left=Line(4.0, "#0000ff")), Frame(None, line, line, line, line), None,
    ]  # fmt: skip


def test_the_page_s_own_ground_is_no_frame(tmp_path):
    made = styled(".page{background:white}", "<div class=page><p>1<p>2</div>", tmp_path)
    assert [type(block) for block in made.blocks] == [Paragraph, Paragraph]


def test_a_box_longer_than_a_page_is_no_table(tmp_path):
    source = "<style>.a{background:#eeeeee}</style><div class=a>" + "<p>word</p>" * 60 + "</div>"
    made = written(source, tmp_path, source_format="html")
    assert made.opened.tables == []
    assert values(made.body, ".//w:pPr/w:shd", "fill") == ["EEEEEE"] * 60


def test_items_of_grids_and_rows_stand_side_by_side(tmp_path):
    css = ".g{display:grid;grid-template-columns:repeat(2,1fr)} .f{display:flex} .f div:first-child{width:30%}"
    body = "<div class=g><p>1<p>2<p>3</div><div class=f><div>4</div><div>5</div></div>"
    made = styled(css, body, tmp_path).blocks
    assert [(type(block), len(block.columns)) for block in made] == [(Columns, 2)] * 3
    assert (made[1].columns[1], made[2].widths) == ([], [30.0, 70.0])


def test_words_of_a_row_are_parted(tmp_path):
    made = written(
        "<style>.f{display:flex}</style><div class=f><span>a</span><span>b</span></div>",
        tmp_path,
        source_format="html",
    )
    assert made.words() == ["a", "b"]


def test_a_dark_page_keeps_its_ground_and_a_light_one_is_paper(tmp_path):
    themes = [styled(f"body{{background:{ground};color:{ink}}}", "<p>x</p>", tmp_path).theme
              for ground, ink in (("#101020", "#eeeeee"), ("#f5f5f5", "#333333"))]  # fmt: skip
    assert [theme.colours["background"] for theme in themes] == ["#101020", "#ffffff"]
    assert themes[0].colours["text"] == "#eeeeee"


def test_lists_without_marks_have_none(tmp_path):
    made = written("<style>ul{list-style:none}</style><ul><li>a</ul>", tmp_path, source_format="html")
    formats = {
        level.get(made.body.tag.split("}")[0] + "}val")
        for level in made.part("word/numbering.xml").iter("{*}numFmt")
    }
    assert formats == {"none"}


def test_a_style_sheet_of_a_file_counts_and_one_elsewhere_does_not(tmp_path):
    (tmp_path / "own.css").write_text("p{color:#123456}", encoding="utf-8")
    source = '<link rel=stylesheet href="own.css"><link rel=stylesheet href="https://e.org/x.css"><p>x</p>'
    document = opened_source(source, tmp_path, source_format="html")
    assert read(document).blocks[0].inlines[0].colour == "#123456"
    assert [warning.code for warning in document.warnings] == ["remote_refused"]


def test_the_theme_s_style_sheet_is_no_direct_formatting(tmp_path):
    made = written("# Head\n\ntext `code`\n\n| a |\n|---|\n| b |\n", tmp_path)
    assert values(made.body, ".//w:r/w:rPr/w:color") == []


def test_direction_and_language_are_those_of_the_author(tmp_path):
    made = written('<p dir=rtl>abc</p><p lang="fr">mot</p>', tmp_path, source_format="html")
    assert len(made.body.findall(".//{*}pPr/{*}bidi")) == 1
    assert values(made.body, ".//w:rPr/w:lang") == ["fr-FR"]
