"""Sources of a few unusual characters, many times: their time grows with their length, not with its square."""

from xml.etree.ElementTree import Element

import pytest
from render.frontend.element_tree import make
from render.frontend.gradient_text import plain_gradient_text
from render.frontend.long_words import split_long_words
from render.frontend.markdown import read_markdown
from render.model import Document, Metadata, RenderRequest
from render.slides.author_css import tame
from render.slides.design import design_of
from render.slides.splitting.split_document import Draft

MANY = 100_000


def document_of(tree: Element) -> Document:
    return Document(RenderRequest("pdf", "html", "", "/tmp", "x.pdf"), Metadata(), None, tree)


def test_a_ground_without_an_end():
    css = "a{background:" + "background:x " * MANY + "text-x}"
    assert plain_gradient_text(document_of(make("html")), css) == css


@pytest.mark.parametrize(
    "middle", [" " * MANY, "# " * MANY, "#" * MANY + "x", "{a} " * MANY, "\t" * MANY, " #" * MANY + " x"]
)
def test_blanks_and_number_signs_before_attributes(middle):
    html = read_markdown(f"## a{middle}b {{#costs}}\n\n# a {middle[: MANY // 9]}x{{.b}}").html
    assert '<h2 id="costs">' in html


def test_thousands_of_elements_in_one_word():
    spans = [make("b", None, "x") for _ in range(MANY)]
    for span in spans:
        span.tail = "y"
    row = make("p", None, None, *spans)
    split_long_words(document_of(make("html", None, None, make("body", None, None, row))))
    assert sum(child.tag == "wbr" for child in row) > MANY // 2


def test_a_rule_with_many_selectors_and_many_declarations():
    css = "section," * 9_000 + "p{" + "color:red;" * 9_000 + "}"
    assert design_of(css, [Draft("content", make("section"), authored=True)], markup=True).styled


@pytest.mark.parametrize("blank", [" ", "\n", "! ", " !important"])
def test_a_shadow_with_many_blanks(blank):
    css = f"a{{box-shadow:{blank * MANY}{{}}" + f"b{{box-shadow:1px {blank * 500}x" * 200
    assert "bookmark-label" not in tame(css, 1280)
    small = tame("a{box-shadow: 1px 2px red  !important }", 1280)
    assert 'bookmark-label:"1px 2px red"!important' in small
