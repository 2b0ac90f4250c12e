"""Looks that models give to pages, and that only a browser draws: what stands for them has every word."""

import pypdf
import pytest
from docx_reading import values, written
from page_looks import codes, page_picture, rendered, shows

BIG = "font-size:64px;font-weight:bold"
CLEAR = "color:transparent"
SHINING = "background:linear-gradient(90deg,#c01234,#0000ff)"


def ink(file, colour: str) -> float:
    """The part of a page that has a colour."""
    wanted = tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))
    counts = {found: count for count, found in page_picture(file).getcolors(1 << 24)}
    return counts.get(wanted, 0) / sum(counts.values())


@pytest.mark.parametrize(
    "css",
    [
        f".n{{{BIG};{SHINING};-webkit-background-clip:text;color:transparent}}",
        f".n{{{BIG};{SHINING};background-clip:text;-webkit-text-fill-color:transparent;color:#000}}",
        f".n{{{BIG};background-image:linear-gradient(to top,#c01234 9%,blue);background-clip:text;color:#0000}}",
        f":root{{--a:#c01234}}@media print{{.n{{{BIG};background:radial-gradient(var(--a),red) text;{CLEAR}}}}}",
        f".n{{{BIG};background:#c01234;background-clip:text;color:rgba(0,0,0,0)}}",
    ],
)
def test_text_with_a_gradient_through_it_has_its_first_colour(tmp_path, css):
    source = f"<style>{css}</style><div class=n>$1.2M</div>"
    answer, file = rendered(tmp_path, source)
    assert 0 < ink(file, "#c01234") < 0.02
    assert "dropped_css" in codes(answer)
    assert values(written(source, tmp_path, source_format="html").body, ".//w:color") == ["C01234"]


@pytest.mark.parametrize("clip", ["-webkit-background-clip:text", "BACKGROUND-CLIP:TEXT"])
def test_a_style_attribute_with_a_gradient_through_its_text_is_read_alike(tmp_path, clip):
    _, file = rendered(tmp_path, f'<div style="{BIG};{SHINING};{clip};color:transparent">$1')
    assert 0 < ink(file, "#c01234") < 0.02


def test_text_over_a_clipped_ground_keeps_its_own_colour(tmp_path):
    _, file = rendered(tmp_path, f'<div style="{BIG};{SHINING};background-clip:text;color:#123456">$1')
    assert (shows(file, "#123456"), shows(file, "#c01234")) == (True, False)


def test_a_gradient_that_is_no_text_s_stays(tmp_path):
    _, file = rendered(tmp_path, f'<div style="height:40px;{SHINING};background-clip:padding-box">text</div>')
    assert shows(file, "#c01234") or ink(file, "#ffffff") < 0.99


def grid(tmp_path, css: str, items: int, around="{}") -> tuple[int, int]:
    """How many columns and rows the items of a grid stand in."""
    inner = "".join(f"<div>w{number}</div>" for number in range(items))
    answer, file = rendered(tmp_path, around.format(f'<div style="display:grid;{css}">{inner}</div>'))
    places: list[tuple[int, int]] = []

    def visit(text, _matrix, place, *_):
        if text.strip().startswith("w"):
            places.append((round(place[4]), round(place[5])))

    pypdf.PdfReader(file).pages[0].extract_text(visitor_text=visit)
    assert (len(places), codes(answer)) == (items, [])
    return len({x for x, _ in places}), len({y for _, y in places})


@pytest.mark.parametrize(
    ("css", "items", "columns", "rows"),
    [
        ("grid-template-columns:repeat(auto-fit,minmax(180px,1fr))", 3, 3, 1),
        ("grid-template-columns:repeat(auto-fit,minmax(180px,1fr))", 2, 2, 1),
        ("grid-template-columns:repeat(auto-fill,minmax(100px,1fr));gap:20px", 9, 5, 2),
        ("grid-template-columns:repeat(auto-fit,minmax(30%,1fr))", 6, 3, 2),
        ("grid-template-columns:repeat(auto-fit,200px)", 6, 3, 2),
        ("grid-template-columns:repeat(auto-fit,minmax(12rem,1fr));gap:1rem", 6, 3, 2),
        ("grid-template-columns:repeat(auto-fit,minmax(min(180px,100%),1fr))", 3, 3, 1),
        ("grid-template-columns:repeat(auto-fit,minmax(min(100%,12em),1fr))", 3, 3, 1),
        ("grid-template-columns:100px repeat(auto-fit,minmax(200px,1fr))", 6, 3, 2),
        ("grid-template-columns:repeat(auto-fit,minmax(2000px,1fr))", 2, 1, 2),
        ("grid-template-columns:repeat(3,1fr)", 6, 3, 2),
    ],
)
def test_a_grid_has_as_many_columns_as_have_room(tmp_path, css, items, columns, rows):
    assert grid(tmp_path, css, items) == (columns, rows)


@pytest.mark.parametrize(
    "around", ['<div style="float:left;width:400px">{}</div>', '<div style="width:400px">{}</div>']
)
def test_the_room_of_a_grid_is_that_of_the_element_around_it(tmp_path, around):
    assert grid(tmp_path, "grid-template-columns:repeat(auto-fit,minmax(180px,1fr))", 3, around) == (2, 2)


CARDS = "<style>.cards{display:flex;flex-wrap:wrap;gap:10px;border:2px solid #c01234} .cards>div{%s}</style>"


def cards(style: str, count: int) -> str:
    rows = "".join(f"<div>c{number}</div>" for number in range(count))
    return f"{CARDS % style}<h1>Cards</h1><div class=cards>{rows}</div><p>end</p>"


@pytest.mark.parametrize(
    ("style", "count", "first", "last"),
    [
        ("width:200px;height:200px", 15, ["Cards", *(f"c{n}" for n in range(12))], ["c12", "c13", "c14", "end"]),
        ("flex:1 1 250px;height:300px", 8, ["Cards", *(f"c{n}" for n in range(4))], ["c6", "c7", "end"]),
        ("width:100px;height:50px", 6, ["Cards", *(f"c{n}" for n in range(6)), "end"], None),
    ],
)
def test_rows_of_cards_break_over_pages_below_their_heading(tmp_path, style, count, first, last):
    answer, file = rendered(tmp_path, cards(style, count), options={"page_numbers": False})
    pages = [page.extract_text().split() for page in pypdf.PdfReader(file).pages]
    assert (pages[0], codes(answer)) == (first, [])
    assert last is None or [word for page in pages for word in page][-len(last) :] == last
    assert shows(file, "#c01234")
