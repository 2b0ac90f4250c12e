"""Decks in designs of their own: what an author draws on a slide is on the slide, and nothing of the theme is."""

import base64
import zipfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pptx.util import Emu
from render.frontend.pipeline import open_document
from render.model import Document, RenderRequest
from render.pptx.writer import write_pptx
from slide_geometry import deck_words, open_deck, shown

SQUARE = base64.b64encode(b'<svg xmlns="http://www.w3.org/2000/svg"><rect width="9" height="9"/></svg>').decode()
SLIDE = ".slide{position:relative;width:1280px;height:720px;padding:50px 60px;background:#fff}"


def written(root: Path, source: str, source_format: str = "html") -> tuple[Document, Any]:
    document = open_document(RenderRequest("pptx", source_format, source, str(root), "deck.pptx"))
    write_pptx(document, str(root / "deck.pptx"))
    return document, open_deck(root / "deck.pptx")


def slide(css: str, body: str) -> str:
    return f"<style>{SLIDE}{css}</style><div class=slide><h2>Title</h2>{body}</div>"


def pixels(*values: int) -> tuple[int, ...]:
    return tuple(round(Emu(value).pt * 4 / 3) for value in values)


def place(shape: Any) -> tuple[int, ...]:
    return pixels(shape.left, shape.top, shape.width, shape.height)


def filled(deck: Any, colour: str, number: int = 0) -> list[Any]:
    """The shapes of a slide that are filled with a colour."""
    path = f"./p:spPr/a:solidFill/a:srgbClr[@val='{colour}']"
    return [shape for shape in deck.slides[number].shapes if shape._element.xpath(path)]


def colours(element: Any) -> list[str]:
    return list(element.xpath(".//a:gs/a:srgbClr/@val"))


def ground(deck: Any, number: int = 0) -> Any:
    found = deck.slides[number]._element.xpath("./p:cSld/p:bg/p:bgPr")
    return found[0] if found else None


def text_colours(deck: Any) -> set[str]:
    return set(deck.slides[0]._element.xpath(".//a:r/a:rPr/a:solidFill/a:srgbClr/@val"))


@pytest.mark.parametrize(
    ("background", "first"),
    [
        ("linear-gradient(135deg,rgba(0,245,212,.15),transparent),#0a0a0f", "082D2D"),
        ("linear-gradient(transparent,rgba(255,255,255,.5)),#000000", "000000"),
        ("radial-gradient(rgba(255,0,0,.5),transparent 60%),#000010", "800008"),
    ],
)
def test_a_veil_lies_on_its_base_colour_and_text_keeps_its_own(tmp_path: Path, background: str, first: str) -> None:
    style = f"width:1280px;height:720px;background:{background};color:#e8e8f0"
    document, deck = written(tmp_path, f'<section style="{style}"><h1>Words</h1><p>More</p></section>')

    assert colours(ground(deck))[0] == first
    assert text_colours(deck) == {"E8E8F0"}
    assert [warning.code for warning in document.warnings] == []


def test_a_radial_gradient_about_the_middle_is_native_and_another_a_picture_where_it_is(tmp_path: Path) -> None:
    style = '<div style="height:99px;background:radial-gradient({},red,blue)"></div>'
    _, deck = written(tmp_path, slide("", style.format("ellipse") + style.format("at 25% 50%")))
    path = deck.slides[0]._element.xpath(".//a:gradFill/a:path[@path='circle']/a:fillToRect")
    assert [dict(rectangle.attrib) for rectangle in path] == [
        {"l": "50000", "t": "50000", "r": "50000", "b": "50000"}
    ]
    native = next(shape for shape in deck.slides[0].shapes if shape._element.xpath(".//a:gradFill"))
    (picture,) = [shape for shape in deck.slides[0].shapes if shape.shape_type == 13]
    left, top, width, height = place(native)
    assert place(picture) == (left, top + height, width, height)


def test_a_fine_pattern_is_a_picture_on_its_ground(tmp_path: Path) -> None:
    css = ".slide{background:linear-gradient(rgba(255,255,255,.03) 1px,transparent 1px),#0a0a0f;color:#fefefe;"
    _, deck = written(tmp_path, slide(css + "background-size:40px 40px}", ""))
    assert ground(deck).xpath("./a:solidFill/a:srgbClr/@val") == ["0A0A0F"]
    assert [place(shape) for shape in deck.slides[0].shapes if shape.shape_type == 13] == [(0, 0, 1280, 720)]
    assert text_colours(deck) == {"FEFEFE"}


def test_stops_in_pixels_stand_where_they_are_asked_for(tmp_path: Path) -> None:
    bar = (
        "<div style='width:400px;height:99px;background:linear-gradient(90deg,#cc0000 100px,#eeeeee 100px)'>x</div>"
    )
    _, deck = written(tmp_path, slide("", bar))
    rows = deck.slides[0]._element.xpath(".//a:gs[a:srgbClr/@val='CC0000']/@pos")
    assert max(map(int, rows)) == 25000


def test_the_ground_of_the_page_is_that_of_slides_without_one(tmp_path: Path) -> None:
    css = "body{background:#111111;color:#eee} .b{background:#223344}"
    _, deck = written(
        tmp_path, f"<style>{css}</style><section><h2>A</h2></section><section class=b><h2>B</h2></section>"
    )
    grounds = [ground(deck, number).xpath("./a:solidFill/a:srgbClr/@val") for number in (0, 1)]
    assert grounds == [["111111"], ["223344"]]
    assert text_colours(deck) == {"EEEEEE"}


def test_text_is_changed_only_where_it_cannot_be_told_from_a_known_ground(tmp_path: Path) -> None:
    document, deck = written(tmp_path, slide(".slide{background:#ffffff} p{color:#fafafa}", "<p>Hidden</p>"))
    assert "1A1A1A" in text_colours(deck)
    assert [warning.code for warning in document.warnings] == ["contrast_changed"]


@pytest.mark.parametrize(
    "drawing",
    [
        "<svg style='{}' width=200 height=200><circle cx=100 cy=100 r=90 fill=red /></svg>",
        "<img style='{};width:200px;height:200px' src='data:image/svg+xml;base64," + SQUARE + "'>",
    ],
    ids=["svg", "img"],
)
def test_a_picture_that_is_placed_is_there(tmp_path: Path, drawing: str) -> None:
    _, deck = written(tmp_path, slide("", drawing.format("position:absolute;left:480px;top:330px")))
    pictures = [place(shape) for shape in deck.slides[0].shapes if shape.shape_type == 13]
    assert pictures == [(480, 330, 200, 200)]


@pytest.mark.parametrize("display", ["flex", "grid"])
def test_a_placed_row_stays_a_row(tmp_path: Path, display: str) -> None:
    css = f".f{{position:absolute;bottom:30px;left:80px;right:80px;display:{display};justify-content:space-between;"
    css += "grid-template-columns:1fr auto}"
    _, deck = written(tmp_path, slide(css, "<div class=f><span>left</span><span>7</span></div>"))
    left, right = (shape for shape in deck.slides[0].shapes if shape.text_frame.text in {"left", "7"})
    assert left.top == right.top
    assert (pixels(left.left)[0], pixels(right.left + right.width)[0] > 1190) == (80, True)


def test_circles_that_overlap_stay_where_they_are(tmp_path: Path) -> None:
    css = (
        ".v{position:relative;height:400px}"
        ".v div{position:absolute;width:240px;height:240px;border-radius:50%;background:#0a0a0a80}"
    )
    body = "<div class=v><div style='left:0'>Left</div><div style='left:150px'>Right</div></div>"
    _, deck = written(tmp_path, slide(css, body))
    circles = [place(shape) for shape in filled(deck, "0A0A0A")]
    assert [(x, width, height) for x, _, width, height in circles] == [(60, 240, 240), (210, 240, 240)]
    assert circles[0][1] == circles[1][1]


def test_words_that_would_lie_on_words_are_parted(tmp_path: Path) -> None:
    css = ".v{position:relative;height:100px}.v div{position:absolute;left:0;top:0;width:300px}"
    _, deck = written(tmp_path, slide(css, "<div class=v><div>One two three</div><div>Four five six</div></div>"))
    frames = [shape for shape in shown(deck.slides[0]) if "Title" not in shape.text_frame.text]
    assert deck_words(deck) == ["title", "one", "two", "three", "four", "five", "six"]
    assert all(one.top + one.height <= other.top for one, other in pairwise(frames))


def test_a_box_is_turned_faint_and_moved_as_its_author_says(tmp_path: Path) -> None:
    style = "width:200px;height:80px;background:#d00000;transform:translate(50%,10px) rotate(-12deg);opacity:.5"
    _, deck = written(tmp_path, slide("", f'<div style="{style}">NEW</div>'))
    (shape,) = filled(deck, "D00000")
    assert round(shape.rotation) == 348
    assert place(shape)[0] == 160
    assert shape._element.xpath("./p:spPr/a:solidFill/a:srgbClr/a:alpha/@val") == ["50000"]
    assert shape._element.xpath(".//a:r/a:rPr/a:solidFill/*/a:alpha/@val") == ["50000"]


def test_a_box_is_centred_by_a_shift_of_half_of_itself(tmp_path: Path) -> None:
    style = "position:absolute;left:50%;top:50%;width:400px;height:200px;background:#00d000;"
    style += "transform:translate(-50%,-50%)"
    _, deck = written(tmp_path, slide("", f'<div style="{style}">Middle</div>'))
    assert [place(shape) for shape in filled(deck, "00D000")] == [(440, 260, 400, 200)]


def test_what_a_script_would_show_is_shown(tmp_path: Path) -> None:
    _, deck = written(tmp_path, slide(".fragment{opacity:0}", "<p class=fragment>Later</p>"))
    assert "later" in deck_words(deck)
    assert deck.slides[0]._element.xpath(".//a:r/a:rPr/a:solidFill/*/a:alpha") == []


def test_a_panel_reaches_the_edges_of_its_slide(tmp_path: Path) -> None:
    css = ".slide{width:1280px;height:720px;display:flex}.l{width:40%;background:#c8553d}"
    source = f"<style>{css}</style><div class=slide><div class=l><h2>L</h2></div><p>R</p></div>"
    _, deck = written(tmp_path, source)
    assert [place(shape) for shape in filled(deck, "C8553D")] == [(0, 0, 512, 720)]


def test_the_page_itself_can_be_the_slide(tmp_path: Path) -> None:
    css = "body{width:720pt;height:405pt;margin:0;background:#F4F1EA}.bar{height:8pt;background:#C15F3C}"
    _, deck = written(tmp_path, f"<style>{css}</style><div class=bar></div><h1>Findings</h1>")
    assert ground(deck).xpath("./a:solidFill/a:srgbClr/@val") == ["F4F1EA"]
    assert [place(shape) for shape in filled(deck, "C15F3C")] == [(0, 0, 1280, 14)]


def test_rules_of_the_theme_stay_out_of_a_design(tmp_path: Path) -> None:
    css = f"{SLIDE} p{{font-size:30px}} h2{{font-size:48px}}"
    body = "<blockquote>Quote</blockquote><table><tr><th>Head</th><td>Cell</td></tr></table><pre>code</pre>"
    _, deck = written(tmp_path, f"<style>{css}</style><div class=slide><h2>Title</h2><p>Text</p>{body}</div>")
    assert [shape.name for shape in deck.slides[0].shapes if shape.name.startswith("Line")] == []
    assert filled(deck, "F3F7F6") == []
    sizes = {
        run.text: run.font.size.pt
        for shape in deck.slides[0].shapes
        if shape.has_text_frame
        for para in shape.text_frame.paragraphs
        for run in para.runs
    }
    assert (sizes["Title"], sizes["Text"], sizes["Quote"]) == (36.0, 22.5, 12.0)


def test_text_whose_size_nobody_says_is_as_large_as_slides_need_it(tmp_path: Path) -> None:
    _, deck = written(tmp_path, "<style>.slide{width:1920px;height:1080px;padding:90px}h2{color:red}</style>"
                                "<div class=slide><h2>T</h2><p>Text</p><p>More</p></div>")  # fmt: skip
    sizes = deck.slides[0]._element.xpath(".//a:r[a:t='Text']/a:rPr/@sz")
    assert sizes == ["2000"]


def test_words_below_a_page_of_fixed_height_are_not_lost(tmp_path: Path) -> None:
    css = ".w{display:flex;flex-direction:column}.s{padding-bottom:250px}html,body{height:297mm}"
    rows = "".join(f"<div class=s>n{number}</div>" for number in range(6))
    _, deck = written(tmp_path, f"<style>{css}</style><div class=w><div>{rows}</div><div>LAST</div></div>")
    assert deck_words(deck) == ["n0", "n1", "n2", "n3", "n4", "n5", "last"]


def test_a_drop_cap_leaves_the_other_styles_and_the_word_whole(tmp_path: Path) -> None:
    css = "p::first-letter{font-size:72px;float:left;padding:6px 10px 0 0} h2{color:#123456}"
    document, deck = written(tmp_path, f"<section><style>{css}</style><h2>H</h2><p>Good clay</p></section>")
    assert deck_words(deck) == ["h", "good", "clay"]
    assert "123456" in text_colours(deck)
    assert [warning.code for warning in document.warnings] == ["dropped_css"]


def test_one_rule_that_cannot_be_laid_out_takes_no_other_with_it(tmp_path: Path) -> None:
    css = SLIDE + "h2{color:#123456} .x{color:#654321} b{display:table-row;position:running(y)} .z{color:red}"
    body = "<div class=slide><h2>H</h2><p class=x>Good <b>clay</b></p></div>"
    document, deck = written(tmp_path, f"<style>{css}</style>{body}")
    assert text_colours(deck) == {"123456", "654321"}
    assert deck_words(deck) == ["h", "good", "clay"]
    assert [warning.code for warning in document.warnings] == ["styles_dropped"]
    assert "b{display:table-row" in document.warnings[0].message


def test_a_line_as_tall_as_its_circle_stands_in_the_middle(tmp_path: Path) -> None:
    css = ".c{width:140px;height:140px;line-height:140px;text-align:center;border-radius:50%;background:#3366cc}"
    _, deck = written(tmp_path, slide(css, "<div class=c>42</div><p style='line-height:90px'>Tall</p>"))
    (circle,) = filled(deck, "3366CC")
    assert circle._element.xpath("./p:txBody/a:bodyPr/@anchor") == ["ctr"]
    spacings = [int(value) for value in deck.slides[0]._element.xpath(".//a:lnSpc/a:spcPct/@val")]
    assert spacings
    assert max(spacings) < 130_000


def test_rows_without_cells_add_no_columns(tmp_path: Path) -> None:
    rows = "<tr><td rowspan=3>a</td><td rowspan=3>b</td></tr><tr></tr><tr></tr><tr><td>c</td><td>d</td></tr>"
    _, deck = written(tmp_path, f"<table>{rows}</table>")
    (table,) = [shape.table for shape in deck.slides[0].shapes if shape.has_table]
    assert [[cell.text for cell in row.cells] for row in table.rows] == [["a", "b"], ["c", "d"]]
    assert all(pixels(row.height)[0] > 25 for row in table.rows)


def test_a_slide_without_a_heading_is_named_by_a_few_words_of_its_largest_text(tmp_path: Path) -> None:
    body = "<p>One two three four five six seven eight nine ten</p><p style='font-size:60px'>Big idea</p>"
    _, deck = written(tmp_path, f"<section>{body}</section><section><p>{'word ' * 40}</p></section>")
    assert [page.shapes.title.text_frame.text for page in deck.slides] == [
        "Big idea One two three four five",
        "word word word word word word word",
    ]


def test_the_link_of_a_button_is_its_shape_s(tmp_path: Path) -> None:
    css = ".b{display:block;width:200px;padding:10px;background:#aa2200;color:#fefefe;text-decoration:none}"
    _, deck = written(
        tmp_path,
        slide(css, "<a class=b href='https://example.com/'>Go</a><p><a href='https://example.com/x'>x</a></p>"),
    )
    (button,) = filled(deck, "AA2200")
    assert button.click_action.hyperlink.address == "https://example.com/"
    links = [
        run.hyperlink.address
        for shape in deck.slides[0].shapes
        for para in shape.text_frame.paragraphs
        for run in para.runs
    ]
    assert links == [None, None, "https://example.com/x"]


def test_a_drawing_has_the_type_of_the_page(tmp_path: Path) -> None:
    css = ".s{font-family:Carlito;font-size:22px;color:#ab1234}"
    drawing = "<svg class=s width=200 height=50><text x=5 y=30 fill=currentColor>Words</text></svg>"
    written(tmp_path, slide(css, drawing))
    with zipfile.ZipFile(tmp_path / "deck.pptx") as package:
        svg = package.read("ppt/media/drawing1.svg").decode()
    assert all(part in svg for part in ('font-family="Carlito"', 'font-size="22px"', 'color="#ab1234"'))


def test_a_footer_at_the_very_bottom_leaves_a_composed_slide_as_it_is(tmp_path: Path) -> None:
    css = (
        ".slide{padding:0}.header{position:absolute;top:0;left:0;right:0;height:90px;background:#0b3d91;"
        "color:#fefefe;display:flex;align-items:center;padding:0 50px}"
        ".footer{position:absolute;bottom:0;left:0;right:0;height:48px;"
        "line-height:48px;background:#d0d3d8}.c{position:absolute;top:120px;left:50px;right:50px;bottom:60px}"
    )
    body = "<div class=header>Priorities</div><div class=c><p>Text</p></div><div class=footer>Confidential</div>"
    _, deck = written(tmp_path, f"<style>{SLIDE}{css}</style><div class=slide>{body}</div>")
    assert [place(shape) for shape in filled(deck, "0B3D91")] == [(0, 0, 1280, 90)]
    assert [place(shape) for shape in filled(deck, "D0D3D8")] == [(0, 672, 1280, 48)]
    assert deck.slides[0].shapes.title.text_frame.text == "Priorities"


def test_an_ornament_that_leaves_the_slide_is_not_squeezed_into_it(tmp_path: Path) -> None:
    css = ".o{position:absolute;right:-100px;top:-100px;width:300px;height:300px;border-radius:50%;"
    css += "background:#aa8800}"
    _, deck = written(tmp_path, slide(css, "<div class=o></div>"))
    assert [place(shape) for shape in filled(deck, "AA8800")] == [(1080, -100, 300, 300)]


def test_corners_of_half_a_box_make_it_an_ellipse(tmp_path: Path) -> None:
    _, deck = written(
        tmp_path, slide(".o{width:400px;height:200px;border-radius:50%;background:#aa8800}", "<div class=o></div>")
    )
    (shape,) = filled(deck, "AA8800")
    assert shape._element.xpath("./p:spPr/a:prstGeom/@prst") == ["ellipse"]


def test_what_takes_the_rest_of_a_column_reaches_its_end(tmp_path: Path) -> None:
    css = (
        ".slide{padding:0;display:flex;flex-direction:column}.g{flex:1;display:grid;grid-template-columns:1fr 1fr}"
    )
    css += ".p{background:#aa8800} h2{margin:0}"
    _, deck = written(tmp_path, slide(css, "<div class=g><p>Text</p><div class=p>Panel</div></div>"))
    (panel,) = filled(deck, "AA8800")
    assert pixels(panel.top + panel.height)[0] > 690


@pytest.mark.parametrize(
    ("attribute", "path"),
    [
        ('data-background-color="#2a004a"', "./a:solidFill/a:srgbClr[@val='2A004A']"),
        ('data-background="#2a004a"', "./a:solidFill/a:srgbClr[@val='2A004A']"),
        (
            'data-background-gradient="linear-gradient(to bottom,#283b95,#17b2c3)"',
            "./a:gradFill//a:srgbClr[@val='283B95']",
        ),
    ],
)
def test_grounds_in_the_manner_of_reveal_are_grounds(tmp_path: Path, attribute: str, path: str) -> None:
    css = ".reveal{color:#eeeeee;background:#191919}"
    slides = f"<section {attribute}><h2>A</h2><p>x</p></section><section><h2>B</h2></section>"
    _, deck = written(tmp_path, f"<style>{css}</style><div class=reveal><div class=slides>{slides}</div></div>")
    assert ground(deck).xpath(path)
    assert ground(deck, 1).xpath("./a:solidFill/a:srgbClr[@val='191919']")


def test_a_picture_in_the_manner_of_reveal_fills_the_slide(tmp_path: Path) -> None:
    picture = f"data:image/svg+xml;base64,{SQUARE}"
    _, deck = written(tmp_path, f'<section data-background-image="{picture}"><h2>A</h2></section>')
    assert [place(shape) for shape in deck.slides[0].shapes if shape.shape_type == 13] == [(0, 0, 1280, 720)]


def test_a_line_between_two_rows_belongs_to_both(tmp_path: Path) -> None:
    css = "table{border-collapse:separate}td{border-bottom:2px solid #aa8800}"
    rows = "<table><tr><td>a</td></tr><tr><td>b</td></tr><tr><td>c</td></tr></table>"
    _, deck = written(tmp_path, slide(css, rows))
    (table,) = [shape.table for shape in deck.slides[0].shapes if shape.has_table]
    cells = [row.cells[0]._tc for row in table.rows]
    edge = "./a:tcPr/a:{}[a:solidFill/a:srgbClr/@val='AA8800']"
    assert [bool(cell.xpath(edge.format("lnT"))) for cell in cells] == [False, True, True]
    assert [bool(cell.xpath(edge.format("lnB"))) for cell in cells] == [True, True, True]


@pytest.mark.parametrize(
    ("families", "shown_as"),
    [
        ("'Playfair Display',Georgia,serif", "Georgia"),
        ("'Playfair Display',serif", "Times New Roman"),
        ("Inter,'Segoe UI',sans-serif", "Segoe UI"),
    ],
)
def test_text_names_a_family_that_readers_have(tmp_path: Path, families: str, shown_as: str) -> None:
    _, deck = written(tmp_path, slide(f"p{{font-family:{families}}}", "<p>Text</p>"))
    assert deck.slides[0]._element.xpath(".//a:r[a:t='Text']/a:rPr/a:latin/@typeface") == [shown_as]


def test_slides_in_the_manner_of_reveal_stand_in_the_middle(tmp_path: Path) -> None:
    css = ".reveal{color:#eeeeee;background:#191919;font-size:38px} .reveal h2{font-size:60px}"
    slides = "<section><h2>A</h2><p>x</p></section>"
    _, deck = written(tmp_path, f"<style>{css}</style><div class=reveal><div class=slides>{slides}</div></div>")
    frames = shown(deck.slides[0])
    top, bottom = min(shape.top for shape in frames), max(shape.top + shape.height for shape in frames)
    assert abs(pixels(top + bottom)[0] - 720) < 4


def test_a_few_rules_are_additions_to_the_theme(tmp_path: Path) -> None:
    css = ".big{font-size:48px;color:#b7791f}.hero{background:#1a365d;color:#fefefe}"
    table = "<table><tr><th>Part</th><td>Cell</td></tr></table>"
    _, deck = written(
        tmp_path,
        f"<style>{css}</style><section class=hero><h1>Roof</h1></section>"
        f"<section><h2>Figures</h2><p class=big>38</p><p>panels</p>{table}</section>",
    )
    assert ground(deck).xpath("./a:solidFill/a:srgbClr/@val") == ["1A365D"]
    slide_tree = deck.slides[1]._element
    sizes = {words: slide_tree.xpath(f".//a:r[a:t='{words}']/a:rPr/@sz") for words in ("38", "panels", "Cell")}
    assert sizes == {"38": ["3600"], "panels": ["2000"], "Cell": ["1550"]}
    assert deck.slides[1]._element.xpath(".//a:tc/a:tcPr/a:lnB/a:solidFill")


@pytest.mark.parametrize(
    "background",
    [
        pytest.param("linear-gradient(red,blue) 0 0/.01px .01px", id="dust"),
        pytest.param("linear-gradient(red,blue) 0 0/.5px 300px repeat-x", id="stripes"),
        pytest.param("radial-gradient(0 0,red,blue)", id="point"),
        pytest.param("repeating-linear-gradient(red 0,blue 1e-9px)", id="fine", marks=pytest.mark.slow),
        pytest.param("linear-gradient(red -1e30px,blue 1e30px)", id="far", marks=pytest.mark.slow),
        pytest.param(
            f"linear-gradient({','.join(['transparent', 'red'] * 3000)})", id="many", marks=pytest.mark.slow
        ),
    ],
)
def test_gradients_beyond_measure_end_and_leave_the_words(tmp_path: Path, background: str) -> None:
    _, deck = written(tmp_path, slide(f".g{{height:200px;background:{background}}}", "<div class=g>Words</div>"))
    assert deck_words(deck) == ["title", "words"]
    assert len(deck.slides[0]._element.xpath(".//a:gs")) <= 102
