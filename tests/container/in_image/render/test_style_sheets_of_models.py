"""Style sheets as models write them: one line of them that cannot be used leaves the other lines alone."""

import pytest
from docx_reading import opened_source, values, written
from page_looks import codes, rendered, shows

FONTS = "https://fonts.googleapis.com/css2?family=Inter:wght@400;700&display=swap"


@pytest.mark.parametrize(
    "sheet",
    [
        f"@import url('{FONTS}');\nh1{{color:#c01234}}",
        f'@import url("{FONTS}") screen, print;h1{{color:#c01234}}',
        f"@import url( {FONTS} );h1{{color:#c01234}}",
        f'@import "{FONTS}" layer(a;b) ;:root{{--a:#c01234}}h1{{color:var(--a)}}',
        f"@import/* a;b */'{FONTS}'; h1{{color:#c01234}}",
        f"/* @import url({FONTS} */ h1{{color:#c01234}}",
        f"@media print{{@import '{FONTS}'; h1{{color:#c01234}}}}",
        "@color-profile --x{src:url('a;b}c')}h1{color:#c01234}",
        f"p::before{{content:'@import {FONTS}'}} h1{{color:#c01234}}",
        f"h1{{color:#c01234}} @import url('{FONTS}')",
    ],
)
def test_an_import_is_cut_at_its_own_end(tmp_path, sheet):
    source = f"<style>{sheet}</style><h1>Red</h1>"
    answer, file = rendered(tmp_path, source)
    assert answer["ok"], answer
    assert shows(file, "#c01234")
    assert set(values(written(source, tmp_path, source_format="html").body, ".//w:color")) == {"C01234"}


def test_a_style_sheet_that_is_not_loaded_is_named(tmp_path):
    document = opened_source(f"<style>@import url('{FONTS}');</style><p>x", tmp_path, source_format="html")
    assert [(warning.code, warning.details["url"]) for warning in document.warnings] == [("remote_refused", FONTS)]


@pytest.mark.parametrize("rule", [f"@import url('{FONTS}');", "@font-face{font-family:a;src:url('b}c;d')}"])
def test_a_drawing_keeps_the_rules_behind_one_that_is_dropped(tmp_path, rule):
    drawing = f"<svg width=90 height=90><style>{rule} rect{{fill:#c01234}}</style><rect width=90 height=90 /></svg>"
    _, file = rendered(tmp_path, drawing)
    assert shows(file, "#c01234")


DROP_CAP = "p::first-letter{font-size:72px;float:left;padding:6px 10px 0 0}"
"""WeasyPrint fails on it where the letter is the first of a page's own text."""
UNDRAWN = "i{font-size:calc(1px/0)}"


@pytest.mark.parametrize("place", ["{} h1{{color:#c01234}}", "h1{{color:#c01234}} b{{color:red}} {}"])
@pytest.mark.parametrize("broken", [DROP_CAP, UNDRAWN])
@pytest.mark.parametrize("output", ["pdf", "png"])
def test_a_rule_that_cannot_be_laid_out_takes_no_other_with_it(tmp_path, broken, place, output):
    source = f"<section><style>{place.format(broken)}</style><h1>Red</h1><p>Good clay<p><i>x</i></section>"
    answer, file = rendered(tmp_path, source, output)
    assert shows(file, "#c01234")
    dropped = [warning["message"] for warning in answer["warnings"] if warning["code"] == "dropped_css"]
    assert "styles_dropped" not in codes(answer)
    assert all(message.startswith(f"The rule {broken}") for message in dropped)


def test_of_two_rules_that_fail_together_the_decoration_goes(tmp_path):
    words = "Good clay is found in places where nobody is."
    source = f'<style>{DROP_CAP}</style><section style="padding:40px;display:flex;background:#c01234"><h2>H</h2><p>'
    answer, file = rendered(tmp_path, f"{source}{words}</section>")
    assert shows(file, "#c01234")
    assert [warning["message"][:24] for warning in answer["warnings"]] == ["The rule p::first-letter"]


def test_a_style_attribute_that_cannot_be_laid_out_leaves_the_sheet_alone(tmp_path):
    source = f'<style>h1{{color:#c01234}}</style><h1>Red</h1><p style="{UNDRAWN[2:-1]}">x'
    answer, file = rendered(tmp_path, source)
    assert (shows(file, "#c01234"), "styles_dropped" in codes(answer)) == (True, False)


DEEP = "p" + "{&" * 40 + "{color:red}" + "}" * 40
GROWING = "".join(f".a{n}{{--v{n}:{f'var(--v{n - 1})' * 10}}}" for n in range(1, 12))


@pytest.mark.parametrize("beyond", [DEEP, GROWING, ">".join("p" * 300) + "{color:red}"])
def test_a_rule_beyond_bounds_takes_no_other_with_it(tmp_path, beyond):
    source = f"<style>:root{{--v0:x;--c:#c01234}} {beyond} h1{{color:var(--c)}}</style><h1>Red</h1>"
    answer, file = rendered(tmp_path, source)
    assert (shows(file, "#c01234"), "dropped_css" in codes(answer)) == (True, True)


def test_a_declaration_beyond_bounds_takes_no_other_of_its_attribute_with_it(tmp_path):
    source = f'<h1 style="color:#c01234;width:{"calc(" * 200}1px{")" * 200};margin:0">Red</h1>'
    answer, file = rendered(tmp_path, source)
    assert (shows(file, "#c01234"), "dropped_css" in codes(answer)) == (True, True)
