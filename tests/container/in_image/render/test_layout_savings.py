"""What `render.weasy.savings` changes in WeasyPrint and pydyf has the shape that it was written for."""

import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pydyf
import pypdf
import pytest
import weasyprint
from render.__main__ import render
from render.request import request_of
from render.warm_up import render_ahead
from render.weasy import savings, shadows
from render.weasy.patch import take_back
from render.weasy.savings import configure_fonts_ahead, save, without_notes
from weasyprint.document import Page
from weasyprint.formatting_structure.boxes import Box
from weasyprint.images import LinearGradient
from weasyprint.pdf.stream import Stream
from weasyprint.text import line_break
from weasyprint.text.line_break import Layout

SHEET = weasyprint.HTML(string="x")._ua_stylesheets()[0]


def written(tmp_path: Path, html: str) -> pypdf.PdfReader:
    request = {"output": "pdf", "source_format": "html", "content": html, "root": str(tmp_path)}
    assert render(request_of({**request, "target": "t/a.pdf"}))["warnings"] == []
    return pypdf.PdfReader(tmp_path / "t/a.pdf")


def test_weasyprint_and_pydyf_are_the_versions_whose_insides_are_known():
    assert (weasyprint.__version__.split(".")[0], pydyf.__version__.rsplit(".", 1)[0]) == ("70", "0.13")


def test_the_pango_layout_of_a_line_has_the_parts_that_are_kept():
    save()
    names = set(re.findall(r"self\.(\w+) =", inspect.getsource(line_break.Layout)))
    assert names == {
        *("ascent", "first_line_direction", "justification_spacing", "language", "layout", "max_width", "style"),
        *("strikethrough_position", "strikethrough_thickness", "text"),
        *("underline_position", "underline_thickness"),
    }


def test_rules_without_an_element_are_those_for_notes_and_markers():
    pseudo = {entry[3] for entry in SHEET.matcher.other_selectors if entry[3]}
    assert pseudo == {"footnote-call", "footnote-marker", "note-call", "note-callback", "note-marker", "marker"}


def test_the_lean_sheet_keeps_markers_of_list_items_and_leaves_the_full_one_alone():
    before = len(SHEET.matcher.other_selectors)
    lean = without_notes(SHEET)
    markers = [entry[3] for entry in lean.matcher.lower_local_name_selectors["li"]].count("marker")
    assert (markers, len(SHEET.matcher.other_selectors) - before) == (1, 0)
    assert len(lean.matcher.other_selectors) == before - 6


def test_a_footnote_of_the_authors_style_sheet_stands_below(tmp_path):
    html = "<style>small { float: footnote }</style><p>Said<small>Why it was</small> so."
    text = written(tmp_path, html).pages[0].extract_text()
    assert text.index("so.") < text.index("1. Why it was")


@pytest.mark.parametrize(
    "style",
    [
        "letter-spacing: 2px",
        "text-align: justify",
        "word-spacing: 4px",
        "overflow-wrap: anywhere",
        "white-space: pre-wrap",
    ],
)
def test_lines_are_as_without_the_savings(tmp_path, style):
    """A paragraph after others in the same style is drawn like the same paragraph alone."""
    text = "A fine\tday of " + "unbreakable" * 12 + " words, and some more of them to fill lines. " * 4
    alone = written(tmp_path, f"<p style='{style}'>{text}").pages[0].extract_text().split("\n")[:-1]
    html = f"<section style='{style}'>" + f"<p>{text}</p>" * 3 + "</section>"
    third = written(tmp_path, html).pages[0].extract_text().split("\n")[:-1]
    assert third[-len(alone) :] == alone


def test_an_ellipsis_is_read_as_one_not_as_all_that_it_hides(tmp_path):
    style = "text-overflow: ellipsis; overflow: hidden; white-space: nowrap; width: 20em"
    page = written(tmp_path, f"<p style='{style}'>{'Some more words ' * 50}").pages[0]
    text = page.extract_text()
    assert (text.count("…"), text.count("Some more words") < 4) == (1, True)


def test_a_letter_is_read_as_itself_wherever_its_first_syllable_stands(tmp_path):
    assert "मकान" in written(tmp_path, "<p>कि मकान").pages[0].extract_text()


def test_a_box_that_is_cut_loses_its_rounding_at_the_cut_only():
    save()
    box = Box("p", None, None)
    other = box.copy()
    box.remove_decoration_sides.add("top")
    assert (box.remove_decoration_sides, other.remove_decoration_sides) == ({"top"}, set())


def test_glyphs_of_a_font_have_the_type_of_an_array_of_any_length():
    save()
    letters = weasyprint.pdf.fonts.ffi.new("hb_codepoint_t[3]", [5, 6, 7])
    of_weasyprint = savings.ffi.new("hb_codepoint_t[3]", [5, 6, 7])
    assert (list(letters), savings.ffi.typeof(letters).cname) == (list(of_weasyprint), "uint32_t[]")
    assert "ffi.new(f'hb_codepoint_t[{" in inspect.getsource(weasyprint.pdf.fonts)


def test_documents_made_ahead_leave_other_packages_as_they_were(tmp_path):
    changed = (
        (Layout, "setup"),
        (Page, "paint"),
        (LinearGradient, "layout"),
        (pydyf, "_to_bytes"),
        (pydyf.PDF, "write"),
        (weasyprint.text.fonts, "fontconfig"),
    )
    take_back()
    before = [vars(owner).get(name) for owner, name in changed]
    render_ahead()
    assert [vars(owner).get(name) for owner, name in changed] == before
    assert "after" in written(tmp_path, "<p>after").pages[0].extract_text()
    assert vars(Page)["paint"] is not before[1]


def test_a_configuration_of_fonts_loaded_ahead_serves_one_document_and_keeps_nothing_of_it(tmp_path):
    shutil.copy("/usr/share/fonts/truetype/liberation/LiberationMono-Regular.ttf", tmp_path / "mine.ttf")
    face = "@font-face { font-family: Mine; src: url(mine.ttf) }"
    html = "<p style='font-family: Mine, Carlito'>Same words"
    save()
    configure_fonts_ahead()
    configure_fonts_ahead()
    assert len(savings._fontconfig._configurations) == 1
    fonts = []
    for own in (face, "", face):
        page = written(tmp_path, f"<style>{own}</style>{html}").pages[0]
        names = [font.get_object()["/BaseFont"] for font in page["/Resources"]["/Font"].values()]
        fonts.append(any(name.endswith("+Mine") for name in names))
        assert savings._fontconfig._configurations == []
    assert fonts == [True, False, True]


def test_the_program_is_not_among_what_is_loaded_ahead():
    """Else Python says so on standard error whenever it is run."""
    program = "import sys, render.warm_up; print('render.__main__' in sys.modules)"
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=found, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "False"


def painted(paint: Callable[[Page, Stream], None], html: str) -> tuple[int, bytes]:
    """How many parts the stream of a painted page has, and what is written of it."""
    resources = pydyf.Dictionary({"ExtGState": pydyf.Dictionary()})
    stream = Stream({}, (0, 0, 100, 100), resources, {}, {}, {}, None)
    paint(weasyprint.HTML(string=html).render().pages[0], stream)
    return len(stream.stream), stream.data


def test_a_painted_page_is_kept_as_one_part_and_written_as_without_the_savings():
    save()
    html = "<h1 style='background: red'>One</h1><p>1.5 and <b>2</b>"
    parts, packed = painted(Page.paint, html)
    of_weasyprint, unpacked = painted(savings._paint, html)
    assert (parts, packed, of_weasyprint > 50) == (1, unpacked, True)


def test_the_shadow_of_a_box_is_asked_for_as_it_is_drawn():
    names = [list(inspect.signature(draw).parameters) for draw in (shadows._draw, shadows._draw_in_layers)]
    assert names[0] == names[1]
