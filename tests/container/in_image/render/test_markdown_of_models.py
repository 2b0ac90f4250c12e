"""Markdown as pandoc, GitHub and Quarto have it, and as models write it for all of them."""

from urllib.parse import unquote

import pytest
from docx_reading import opened_source, png_uri, written
from page_looks import codes, page_words, rendered
from render.frontend.element_tree import body_of, text_of
from render.frontend.headings import entries_of


def first(document, tag):
    return next(document.tree.iter(tag))


@pytest.mark.parametrize(
    ("text", "shown", "anchor", "names"),
    [
        ("## Costs {#costs}", "Costs", "costs", None),
        ("## Costs ## {#c .wide}", "Costs", "c", "wide"),
        ("Costs {#my_costs}\n---", "Costs", "my_costs", None),
        ("## *Costs* {.unnumbered .unlisted}", "Costs", "costs", "unnumbered unlisted"),
        ("## Costs {-}", "Costs", "costs", "unnumbered"),
        ("## Costs {key=value #c}", "Costs", "c", None),
        ("## The set {x, y}", "The set {x, y}", "the-set-x-y", None),
        ("## Costs \\{#costs}", "Costs {#costs}", "costs-costs", None),
        ("## Use `{#id}`", "Use {#id}", "use-id", None),
    ],
)
def test_attributes_of_a_heading_are_no_words_of_it(tmp_path, text, shown, anchor, names):
    heading = first(opened_source(text, tmp_path), "h2")
    assert (text_of(heading), heading.get("id"), heading.get("class")) == (shown, anchor, names)


def test_a_link_leads_to_the_anchor_that_a_heading_was_given(tmp_path):
    answer, file = rendered(tmp_path, "[see](#costs)\n\n## All costs {#costs}", source_format="markdown")
    assert (codes(answer), page_words(file)[:3]) == ([], ["see", "All", "costs"])


@pytest.mark.parametrize(
    ("link", "heading"),
    [
        ("art--design", "Art & Design"),
        ("art-design", "Art & Design"),
        ("user-content-art--design", "Art & Design"),
        ("%C3%BCber-uns", "Über uns"),
        ("Section_One", "Section One"),
        ("1-scope", "1. Scope"),
    ],
)
def test_a_link_with_any_tool_s_spelling_of_a_heading_leads_there(tmp_path, link, heading):
    document = opened_source(f"- [a](#{link})\n\n## {heading}", tmp_path)
    assert unquote(first(document, "a").get("href")) == "#" + first(document, "h2").get("id")
    assert codes(rendered(tmp_path, f"- [a](#{link})\n\n## {heading}", source_format="markdown")[0]) == []


def test_a_link_to_a_place_that_is_there_stays(tmp_path):
    document = opened_source('[a](#a-b)\n\n## A--B\n\n<p id="a-b">here</p>', tmp_path)
    assert first(document, "a").get("href") == "#a-b"


def test_unnumbered_and_unlisted_headings_are_left_out(tmp_path):
    text = "# T\n\n## One\n\n## Two {-}\n\n## Three {.unlisted}\n\n### Four"
    document = opened_source(text, tmp_path, options={"numbered_sections": True})
    shown = [text_of(item) for item in body_of(document.tree)]
    assert shown == ["T", "1 One", "Two", "2 Three", "2.1 Four"]
    assert [entry.text for entry in entries_of(document.tree)] == ["1 One", "Two", "2.1 Four"]


def test_sections_are_numbered_from_the_highest_level_there_is(tmp_path):
    document = opened_source("## One\n\n### Two\n\n## Three", tmp_path, options={"numbered_sections": True})
    assert [text_of(item) for item in body_of(document.tree)] == ["1 One", "1.1 Two", "2 Three"]


PIXEL = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs="


@pytest.mark.parametrize(
    ("given", "style"),
    [
        ("width=50%", "width:50%"),
        ("#a .b width=120 height=2cm", "width:120px;height:2cm"),
        ("width='3in'", "width:3in"),
    ],
)
def test_a_picture_has_the_size_of_its_attributes(tmp_path, given, style):
    document = opened_source(f"![x]({PIXEL}){{{given}}} after", tmp_path)
    assert first(document, "img").get("style") == style
    assert text_of(first(document, "p")) == "after"


def test_braces_behind_a_picture_that_are_no_attributes_are_text(tmp_path):
    document = opened_source(f"![x]({PIXEL}){{see below}}", tmp_path)
    assert text_of(first(document, "p")) == "{see below}"


def test_a_picture_of_a_width_is_that_wide_in_a_docx(tmp_path):
    made = written(f"![x]({png_uri(40, 40)}){{width=120px}}", tmp_path)
    assert made.body.find(".//{*}extent").get("cx") == str(120 * 9525)


@pytest.mark.parametrize(
    "info", ["{.python .numberLines}", "{python}", "{python, echo=FALSE}", "python {.numberLines}"]
)
def test_a_fence_has_the_language_of_its_attributes(tmp_path, info):
    block = first(opened_source(f"```{info}\nx = 1\n```", tmp_path), "pre")
    assert block.get("data-language") == "python"


def test_a_span_has_its_attributes_and_a_caption_its_anchor(tmp_path):
    document = opened_source("[new]{.mark} [u]{.underline #u} a\n\n| a |\n|-|\n| b |\n\n: Costs {#tbl:c}", tmp_path)
    marks = [(item.tag, item.get("id"), item.text) for item in first(document, "p")]
    assert marks == [("mark", None, "new"), ("u", "u", "u")]
    caption = first(document, "caption")
    assert (caption.get("id"), text_of(caption)) == ("tbl:c", "Costs")


ALIGNED = "\\begin{align}\nx &= 1 \\\\\ny &= 2 \\label{eq:y}\n\\end{align}"


@pytest.mark.parametrize(
    ("text", "texs"),
    [
        (ALIGNED, ["\\begin{align}\nx &= 1 \\\\\ny &= 2 \n\\end{align}"]),
        ("so\n\\begin{equation*}\nE=mc^2\n\\end{equation*}\nand", ["E=mc^2"]),
        ("- item\n\n  \\begin{equation}a=b\\tag{1}\\end{equation}.", ["a=b\\qquad(\\text{1})."]),
        ("> \\begin{multline}\n> a \\\\ b\n> \\end{multline}", ["\\begin{gather}\na \\\\ b\n\\end{gather}"]),
        ("\\begin{pmatrix} 1 & 2 \\end{pmatrix}", ["\\begin{pmatrix} 1 & 2 \\end{pmatrix}"]),
        ("`\\begin{align} a \\end{align}`", []),
        ("```\n\\begin{align}\na\n\\end{align}\n```", []),
        ("\\begin{align} never ends", []),
        ("\\begin{itemize}\n\\item a\n\\end{itemize}", []),
    ],
)
def test_environments_of_latex_are_formulas(tmp_path, text, texs):
    document = opened_source(text, tmp_path)
    assert [item.get("data-tex") for item in document.tree.iter() if item.get("class") == "pb-math"] == texs
    assert [warning.code for warning in document.warnings] == []


def test_environments_of_latex_are_formulas_in_html_too(tmp_path):
    source = f"<p>so {ALIGNED} and</p><pre>{ALIGNED}</pre>".replace("&", "&amp;")
    document = opened_source(source, tmp_path, source_format="html")
    assert sum(item.get("class") == "pb-math" for item in document.tree.iter()) == 1


def test_environments_without_an_end_are_read_in_time_that_grows_with_their_number(tmp_path):
    document = opened_source("\\begin{align}\n" * 5_000, tmp_path)
    assert text_of(body_of(document.tree)).count("begin") == 5_000
