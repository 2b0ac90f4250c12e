"""Themes: text that can be read in each of them, in every format; theme files, and what is refused in them."""

import io
import json
import zipfile
from pathlib import Path

import pypdfium2
import pytest
from render.__main__ import render
from render.frontend.figures.code_palette import code_colours
from render.frontend.figures.diagrams import draw
from render.frontend.figures.svg_styles import inline_styles
from render.model import RenderError, RenderRequest
from render.slides.contrast import contrast
from render.slides.css import section_look
from render.themes import BUILT_IN, KINDS, load_theme

LEAST = 4.5
"""WCAG's contrast of text that is no heading."""
LOGO = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="40">'
    '<rect width="120" height="40" fill="#c0ffee"/></svg>'
)


def ratio(one: str, other: str) -> float:
    return contrast(one.lstrip("#"), other.lstrip("#"))


def tint(colour: str, ground: str) -> str:
    """A colour at 10 % over a ground, as callouts have it."""
    pairs = ((int(colour[at : at + 2], 16), int(ground[at : at + 2], 16)) for at in (1, 3, 5))
    return "#" + "".join(f"{round(a * 0.1 + b * 0.9):02x}" for a, b in pairs)


def theme_file(tmp_path: Path, values: dict, name: str = "t.json") -> str:
    (tmp_path / "turn_1" / "files").mkdir(parents=True, exist_ok=True)
    (tmp_path / "turn_1" / "files" / name).write_text(json.dumps(values))
    return f"turn_1/files/{name}"


def write(tmp_path: Path, content: str, output: str, **fields) -> tuple[dict, Path]:
    target = f"turn_1/files/a.{output}"
    request = RenderRequest(
        output=output, source_format="markdown", content=content, root=str(tmp_path), target=target, **fields
    )
    return render(request), tmp_path / target


@pytest.mark.parametrize("name", BUILT_IN)
def test_text_of_every_theme_has_the_contrast_that_wcag_asks_for(name, tmp_path):
    colours = load_theme(name, str(tmp_path)).colours
    grounds = [colours[ground] for ground in ("background", "surface", "code_background")]
    pairs = {
        (text, ground): ratio(colours[text], ground)
        for text in ("text", "muted", "accent", "heading", *KINDS)
        for ground in grounds
    }
    pairs |= {(kind, "tint"): ratio(colours[kind], tint(colours[kind], colours["background"])) for kind in KINDS}
    pairs |= {("text", kind): ratio(colours["text"], tint(colours[kind], colours["background"])) for kind in KINDS}
    pairs |= {
        (word, "code"): ratio(colour, colours["code_background"])
        for word, colour in code_colours(colours["code_background"]).items()
    }
    pairs["section slide", "its ground"] = ratio(*section_look(colours))
    assert {pair: round(found, 2) for pair, found in pairs.items() if found < LEAST} == {}


@pytest.mark.parametrize("name", BUILT_IN)
def test_colours_of_charts_differ_from_the_ground_and_from_each_other(name, tmp_path):
    colours = load_theme(name, str(tmp_path)).colours
    series = [colour for key, colour in colours.items() if key.startswith("series_")]
    assert len(series) == len(set(series)) == 8
    assert [colour for colour in series if ratio(colour, colours["background"]) < 1.8] == []


@pytest.mark.parametrize("suffix", ["json", "toml", "yaml"])
def test_a_theme_file_is_json_toml_or_yaml(suffix, tmp_path):
    texts = {
        "json": '{"name": "Own", "extends": "dark", "colours": {"accent": "#ff8800"},"fonts":{"body": "Caladea"}}',
        "toml": 'name = "Own"\nextends = "dark"\n[colours]\naccent = "#ff8800"\n[fonts]\nbody = "Caladea"\n',
        "yaml": "name: Own\nextends: dark\ncolours: {accent: '#ff8800'}\nfonts: {body: Caladea}\n",
    }
    (tmp_path / f"t.{suffix}").write_text(texts[suffix])
    theme, dark = load_theme(f"t.{suffix}", str(tmp_path)), load_theme("dark", str(tmp_path))
    assert (theme.name, theme.body_font, theme.heading_font) == ("Own", "Caladea", dark.heading_font)
    assert (theme.colours["accent"], theme.colours["series_1"]) == ("#ff8800", "#ff8800")
    assert theme.colours["background"] == dark.colours["background"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"colours": {"accent": "no colour"}}, "colours.accent of the theme is 'no colour'"),
        ({"colours": {"accent": None}}, "colours.accent of the theme is None"),
        ({"colours": {"acent": "#fff"}}, "A theme has no colour 'acent'"),
        ({"colours": ["#fff"]}, "colours of the theme is a list"),
        ({"palette": {"ink": "#000"}}, "A theme has no colour 'ink'"),
        ({"fonts": {"body": "a;b"}}, "fonts.body of the theme is 'a;b'"),
        ({"fonts": {"title": "Carlito"}}, "A theme has no font 'title'"),
        ({"fonts": "Carlito"}, "fonts of the theme is 'Carlito'"),
        ({"series": []}, "series of the theme is a list"),
        ({"series": ["#123456", 7]}, "series[1] of the theme is 7"),
        ({"series": ["#123456"] * 13}, "series of the theme is a list"),
        ({"extends": "none"}, "extends of the theme is 'none'"),
        ({"extends": ["dark"]}, "extends of the theme is a list"),
        ({"logo": 3}, "logo of the theme is 3"),
        ({"logo": ""}, "logo of the theme is ''"),
        ({"name": {}}, "name of the theme is a dict"),
        ({"color": "#fff"}, "A theme has no field 'color'"),
    ],
)
def test_a_bad_field_of_a_theme_file_is_a_typed_error_that_names_it(values, words, tmp_path):
    path = theme_file(tmp_path, values)
    with pytest.raises(RenderError) as found:
        load_theme(path, str(tmp_path))
    assert found.value.code == "invalid_theme"
    assert found.value.message.startswith(words)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.yaml", "a: [1"),
        ("t.yaml", "!!python/object/apply:os.getcwd []"),
        ("t.json", "[1]"),
        ("t.toml", "= 1"),
        ("t.yaml", "- " * 90_000),
        ("t.json", " " * 200_001),
        ("t.css", "{}"),
    ],
)
def test_what_cannot_be_read_as_a_theme_is_an_unknown_theme(name, text, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(RenderError) as found:
        load_theme(name, str(tmp_path))
    assert found.value.code == "unknown_theme"


def test_a_theme_that_extends_another_has_its_typography(tmp_path):
    path = theme_file(tmp_path, {"name": "Journal", "extends": "paper"})
    assert load_theme(path, str(tmp_path)).page_css == load_theme("paper", str(tmp_path)).page_css != ""


@pytest.mark.parametrize("output", ["pdf", "docx", "pptx"])
@pytest.mark.parametrize("kind", ["path", "data"])
def test_the_logo_of_a_theme_stands_on_pages_and_slides(output, kind, tmp_path):
    address = "data:image/svg+xml;utf8," + LOGO.replace("#", "%23") if kind == "data" else "mark.svg"
    path = theme_file(tmp_path, {"logo": address})
    (tmp_path / "turn_1" / "files" / "mark.svg").write_text(LOGO)
    answer, file = write(tmp_path, "# A\n\ntext\n", output, theme=path)
    assert answer["warnings"] == []
    if output == "pdf":
        page = pypdfium2.PdfDocument(file)[0].render(scale=1).to_pil().convert("RGB")
        top = page.crop((page.width // 2, 0, page.width, page.height // 14))
        assert (192, 255, 238) in {colour for _, colour in top.getcolors(1 << 20)}
        return
    with zipfile.ZipFile(io.BytesIO(file.read_bytes())) as package:
        part = "word/header1.xml" if output == "docx" else "ppt/slideMasters/slideMaster1.xml"
        assert "Logo" in package.read(part).decode()


def test_a_theme_file_beside_the_document_is_found_by_its_name(tmp_path):
    theme_file(tmp_path, {"colours": {"background": "#000000"}}, "own.json")
    answer, file = write(tmp_path, "x", "pdf", theme="own.json")
    assert answer["warnings"] == []
    assert pypdfium2.PdfDocument(file)[0].render(scale=0.2).to_pil().convert("RGB").getpixel((2, 2)) == (0, 0, 0)
    assert write(tmp_path, "x", "pdf", theme="../own.json")[0]["error"]["code"] == "unknown_theme"


def test_a_logo_that_is_missing_is_told(tmp_path):
    answer, _ = write(tmp_path, "text", "docx", theme=theme_file(tmp_path, {"logo": "none.svg"}))
    assert [warning["code"] for warning in answer["warnings"]] == ["missing_asset"]


def test_the_style_sheet_of_a_drawing_becomes_attributes_in_the_order_of_the_cascade():
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" id="a"><style>#a rect{fill:red;cursor:move} '
        "rect{fill:blue;stroke:green}"
        '.x::before{fill:black} rect:hover{fill:black}</style><rect class="x" fill="white"/></svg>'
    )
    assert inline_styles(svg) == (
        '<svg xmlns="http://www.w3.org/2000/svg" id="a"><rect class="x" fill="red" stroke="green" /></svg>'
    )


def test_a_diagram_needs_no_style_sheet_to_have_the_themes_colours(tmp_path):
    theme = load_theme("dark", str(tmp_path))
    svg = draw("flowchart LR\n  A[one] --> B[two]", theme)
    assert [part in svg for part in ("<style", theme.colours["accent"], f'fill="{theme.colours["surface"]}"')] == [
        False,
        True,
        True,
    ]


def test_office_files_name_the_fonts_that_office_has(tmp_path):
    path = theme_file(tmp_path, {"fonts": {"body": "Carlito", "heading": "Caladea", "mono": "Noto Sans Mono"}})
    _, docx = write(tmp_path, "# A\n\n`b`\n", "docx", theme=path)
    with zipfile.ZipFile(docx) as package:
        theme, fonts = (package.read(f"word/{name}.xml").decode() for name in ("theme/theme1", "fontTable"))
    assert [name in theme for name in ("Calibri", "Cambria", "Carlito", "Caladea")] == [True, True, False, False]
    assert [f'<w:font w:name="{name}">' in fonts for name in ("Calibri", "Cambria", "Courier New")] == [True] * 3


def test_words_below_a_table_after_a_colon_are_its_caption(tmp_path):
    _, docx = write(tmp_path, "| a |\n|---|\n| 1 |\n\n: The *only* one\n\n***\n\n: no caption\n", "docx")
    with zipfile.ZipFile(docx) as package:
        text = package.read("word/document.xml").decode()
    assert text.count('w:val="Caption"') == 1
    assert ": no caption" in text
    assert ": The" not in text


def test_a_picture_alone_with_a_title_is_a_figure_with_a_caption(tmp_path):
    (tmp_path / "turn_1" / "files").mkdir(parents=True)
    (tmp_path / "turn_1" / "files" / "m.svg").write_text(LOGO)
    _, docx = write(tmp_path, '![alt](m.svg "Below it")\n\ntext ![alt](m.svg "Within")\n', "docx")
    with zipfile.ZipFile(docx) as package:
        text = package.read("word/document.xml").decode()
    assert text.count('w:val="Caption"') == 1
    assert "Below it" in text
    assert "Within" not in text


def test_slides_with_a_page_rule_of_their_own_have_no_page_numbers_at_their_edge(tmp_path):
    slide = "<style>@page{size:400px 300px;margin:0}</style><p>a</p>"
    _, bare = write(tmp_path, slide, "pdf")
    words = pypdfium2.PdfDocument(bare)[0].get_textpage().get_text_range().split()
    _, framed = write(tmp_path, slide.replace("margin:0", "margin:30px"), "pdf")
    assert (words, pypdfium2.PdfDocument(framed)[0].get_textpage().get_text_range().split()) == (
        ["a"],
        ["a", "1", "/", "1"],
    )


def test_a_short_table_is_not_cut_at_the_end_of_a_page(tmp_path):
    rows = "".join(f"| cell {number} | x |\n" for number in range(8))
    for lines in (28, 30, 32):
        _, file = write(tmp_path, "line\n\n" * lines + f"| a | b |\n|---|---|\n{rows}", "pdf")
        pages = [page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(file)]
        assert [text.count("cell") for text in pages if "cell" in text] == [8]
