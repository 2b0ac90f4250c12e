"""HTML that was made for a page, as a word processor's document: every word, in rows and lines that can be read."""

import pytest
from docx_reading import W, values, written


def made(source, tmp_path):
    return written(source, tmp_path, source_format="html")


def outline(document) -> list[str | tuple[str, ...]]:
    """The paragraphs in order, a row of a table as a tuple; a tab is written as ``\\t``."""
    rows: list[str | tuple[str, ...]] = []
    for element in document.body.iterfind(f"{W}body/*"):
        if element.tag == W + "tbl":
            rows += [tuple(_text(cell) for cell in row.iter(W + "tc")) for row in element.iter(W + "tr")]
        elif element.tag == W + "p" and _text(element):
            rows.append(_text(element))
    return rows


def _text(element) -> str:
    parts = element.iter(W + "t", W + "tab")
    return "".join(
        part.text or "" if part.tag == W + "t" else "\t" for part in parts if part.getparent().tag == W + "r"
    )


WHOLE = 'style="width:100%"'
BETWEEN = "display:flex;justify-content:space-between"
WRAPPED = '<section style="display:flex;flex-wrap:wrap">{}</section>'


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (
            f'<h2 {WHOLE}>Big</h2><p {WHOLE}>Sub</p><div style="flex:1">A</div><div style="flex:1">B</div>',
            ["Big", "Sub", ("A", "B")],
        ),
        (
            '<div style="width:50%">a</div><div style="width:50%">b</div><div style="width:50%">c</div>',
            [("a", "b"), "c"],
        ),
        ('<div style="flex:1 1 300px">a</div>' * 3, [("a", "a"), "a"]),
        ('<div style="flex-basis:100%">a</div><div>b</div>', ["a", "b"]),
        ("<div>a</div><div>b</div>", [("a", "b")]),
    ],
)
def test_a_row_that_wraps_has_the_rows_of_its_widths(tmp_path, items, expected):
    assert outline(made(WRAPPED.format(items), tmp_path)) == expected


@pytest.mark.parametrize("word", ["Aaaaa", "Donaudampfschiff"])
def test_no_column_is_narrower_than_its_longest_word(tmp_path, word):
    document = made(f'<div style="display:flex"><p style="width:20px">{word}</p><p>B</p></div>', tmp_path)
    first, second = map(int, values(document.body, ".//w:gridCol", "w"))
    assert first / 20 > len(word) * 5
    assert second > first


@pytest.mark.parametrize(
    "source",
    [
        '<p><b>Engineer, Seal</b><span style="float:right">2018</span></p>',
        '<p><span style="float:right">2018</span><b>Engineer, Seal</b></p>',
        "<style>.r{float:right}</style><div><b>Engineer, Seal</b> <em class=r>2018</em></div>",
        f'<div style="{BETWEEN}"><span>Engineer, Seal</span><span>2018</span></div>',
        '<div style="display:flex;justify-content:space-between"><div>Engineer, Seal</div><div>2018</div></div>',
    ],
)
def test_words_at_the_ends_of_a_line_stand_there(tmp_path, source):
    document = made(source, tmp_path)
    assert outline(document) == ["Engineer, Seal\t2018"]
    (stop,) = document.body.iter(W + "tabs")
    assert (stop[0].get(W + "val"), int(stop[0].get(W + "pos")) > 9_000) == ("right", True)


def test_a_heading_and_an_item_have_words_at_their_right_end_too(tmp_path):
    right = '<span style="float:right">R</span>'
    document = made(f"<h3>Head{right}</h3><ul><li>a{right}</li></ul><p>x{right}</p>", tmp_path)
    assert outline(document) == ["Head\tR", "a\tR", "x\tR"]


def test_long_texts_at_both_ends_are_columns(tmp_path):
    words = f"<p>{'word ' * 20}</p>"
    assert outline(made(f'<div style="{BETWEEN}">{words}{words}</div>', tmp_path)) == [("word " * 19 + "word",) * 2]


@pytest.mark.parametrize(
    ("css", "body", "expected"),
    [
        ('p::before{content:"Note: "} p::after{content:" (" attr(title) ")"}', "<p title=t>x</p>", ["Note: x (t)"]),
        ('h2:before{content:"\\00A7  "}', "<h2>T</h2>", ["\u00a7 T"]),
        ('td::after{content:" kg"}', "<table><tr><td>5</table>", [("5 kg",)]),
        ('div::before{content:"Tip";display:block}', "<div>d</div>", ["Tip", "d"]),
        ("q{quotes:none} p::before{content:open-quote}", "<p>x</p>", ["\u201cx"]),
        (
            'p::before{content:"a"} p.b::before{content:"b"} p.c::before{content:none}',
            "<p class=b>1<p class=c>2",
            ["b1", "2"],
        ),
        ('p::before{content:"x";display:none}', "<p>1", ["1"]),
    ],
)
def test_text_that_a_style_sheet_adds_is_written(tmp_path, css, body, expected):
    document = made(f"<style>{css}</style>{body}", tmp_path)
    assert (outline(document), document.document.warnings) == (expected, [])


def test_added_text_has_its_own_colour_and_counters_are_reported(tmp_path):
    css = 'p::before{content:"!";color:#c01234} h2::before{content:counter(c)". "}'
    document = made(f"<style>{css}</style><p>x</p><h2>y</h2>", tmp_path)
    assert values(document.body, ".//w:color") == ["C01234"]
    assert [warning.code for warning in document.document.warnings] == ["content_lost"]


@pytest.mark.parametrize(
    ("style", "codes"),
    [
        ("transform:rotate(-12deg)", ["dropped_css"]),
        ("rotate:45deg", ["dropped_css"]),
        ("opacity:.5", ["dropped_css"]),
        ("opacity:50%;transform:skewX(3deg)", ["dropped_css", "dropped_css"]),
        ("position:absolute;top:0", ["layout_changed"]),
        ("position:relative;opacity:1;transform:translateY(-50%)", []),
        ("opacity:0", []),
    ],
)
def test_looks_without_a_counterpart_are_warnings(tmp_path, style, codes):
    document = made(f'<style>i:hover{{opacity:.5}}</style><div style="{style}">NEW</div><i>x</i>', tmp_path)
    assert outline(document)[0] == "NEW"
    assert [warning.code for warning in document.document.warnings] == codes
