"""No word of a document is missing from its pages without a warning that shows it."""

import pytest
from page_looks import codes, page_words, rendered
from render.frontend.element_tree import body_of, classes_of
from render.frontend.pipeline import open_document
from render.model import RenderRequest
from render.weasy.losses import lay_out_whole

TALL = '<div style="padding-bottom:1200px">first</div><p>LAST</p><p>more</p>'
FULL = "<style>html,body{height:100%;margin:0} .w{display:flex;flex-direction:column;height:100%}</style>"


@pytest.mark.parametrize(
    "source",
    [
        f"{FULL}<div class=w>{TALL}</div>",
        f"{FULL}<body class=w>{TALL}",
        f"{FULL}<div class=w><div class=w>{TALL}</div></div>",
        f'{FULL}<div class=w style="height:297mm!important">{TALL}</div>',
        f'<div style="display:flex;flex-direction:column;height:600px;max-height:600px">{TALL}</div>',
    ],
)
def test_words_behind_a_box_of_a_fixed_height_are_there(tmp_path, source):
    answer, file = rendered(tmp_path, source)
    assert [word for word in page_words(file) if word.isalpha()] == ["first", "LAST", "more"]
    assert set(codes(answer)) <= {"layout_changed"}


def test_a_layout_that_was_changed_to_keep_words_is_a_warning(tmp_path):
    assert codes(rendered(tmp_path, f"{FULL}<div class=w>{TALL}</div>")[0]) == ["layout_changed"]


@pytest.mark.parametrize("part", ["first-letter", "first-line", "before", "after", "marker"])
def test_parts_that_a_style_sheet_makes_boxes_of_are_no_losses(tmp_path, part):
    style = f"p::{part},li::{part}{{font-size:2em;float:left;content:'x'}}"
    answer, _ = rendered(tmp_path, f"<style>{style}</style><p>Words of a text<ul><li>one<li>two</ul>")
    assert set(codes(answer)) <= {"dropped_css"}


def test_an_attempt_that_keeps_no_more_words_leaves_no_trace(tmp_path):
    rows = " ".join(f"word{number}" for number in range(60))
    source = f'<p class="a" style="max-lines:1;line-clamp:1">{rows}</p><p>after'
    document = open_document(RenderRequest("pdf", "html", source, str(tmp_path), "x.pdf"))
    lay_out_whole(document, [])
    assert [classes_of(item) for item in document.tree.iter("p")] == [["a"], []]
    assert [item.get("class") for item in (document.tree, body_of(document.tree))] == [None, None]


def messages(answer) -> list[str]:
    return [warning["message"] for warning in answer["warnings"] if warning["code"] == "content_lost"]


def test_words_that_no_layout_keeps_are_shown(tmp_path):
    rows = " ".join(f"word{number}" for number in range(60))
    answer, _ = rendered(tmp_path, f'<p style="max-lines:1;line-clamp:1">{rows}</p><p>after')
    (message,) = messages(answer)
    assert message.startswith("Words are missing from the pages: word")
    assert "word0 " not in message


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("<style>@page{size:A5}</style><p style='width:400mm;text-align:right'>far away</p><p>near", "far away"),
        (
            "<div style='height:30px;line-height:20px;overflow:hidden'>a<br>b<br>third<br>4th</div>",
            "third 4th",
        ),
        ("<p style='position:absolute;top:2000px'>below</p><p>x", "below"),
        ("<div style='width:80px;overflow:hidden;white-space:nowrap'>x <b>" + "wide " * 9 + "</b></div>", "wide"),
    ],
)
def test_words_cut_off_at_an_edge_are_shown(tmp_path, source, shown):
    answer, _ = rendered(tmp_path, source)
    assert [message.split(": ")[1].startswith(shown) for message in messages(answer)] == [True]


@pytest.mark.parametrize(
    "style",
    [
        "position:absolute;left:-9999px",
        "position:absolute;width:1px;height:1px;overflow:hidden",
        "height:0;overflow:hidden",
        "display:none",
        "position:absolute;left:3000px;visibility:hidden",
        "transform:translateX(0px)",
    ],
)
def test_what_is_hidden_on_purpose_is_no_warning(tmp_path, style):
    answer, _ = rendered(tmp_path, f'<p>x</p><div style="{style}">hidden words</div>')
    assert messages(answer) == []


LETTERS = "ACGT" * 90
AUTHORED = (
    "<style>p{font-size:20px;color:#111111;margin:0 0 1em;line-height:1.5} h1{color:red;margin:0} "
    "ul{margin:0;padding:0 0 0 20px;color:#222}</style>"
)


@pytest.mark.parametrize(
    "source",
    [
        f'<p style="overflow-wrap:break-word">{LETTERS}<b>GATTACA</b>{LETTERS}</p>',
        f"<p>{LETTERS}</p>",
        f"<p>so <i>{LETTERS}</i>{LETTERS}</p>",
        "<p>" + "<b>A</b><i>C</i>" * 200 + "</p>",
        f"{AUTHORED}<p>{LETTERS}<a href='#x'>x</a>{LETTERS}",
    ],
)
def test_long_words_break_at_the_edge_of_the_page(tmp_path, source):
    answer, file = rendered(tmp_path, source)
    assert codes(answer) in ([], ["broken_link"])
    assert sum(word.count("AC") + word.count("A\nC") for word in page_words(file)) > 80
