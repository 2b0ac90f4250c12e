"""What a content is counts, not its ``format``; a document is never empty for the wrong one."""

import textwrap

import pytest
from docx_reading import opened_source
from page_looks import codes, page_words, rendered
from render.frontend.content_format import recognised
from render.frontend.element_tree import body_of, text_of

PAGE = """<!DOCTYPE html>
<html>
<head>
    <style>
        h1{color:red}

        p{color:blue}
    </style>
</head>
<body>

    <h1>Title</h1>

    <p>Words</p>
</body>
</html>"""
FRAGMENT = '<div class="a">\n\n    <h1>Title</h1>\n\n    <p>Words</p>\n\n</div>'
STYLED = "<section>\n<style>\nh1{color:red}\n\np{color:blue}\n</style>\n<h1>Title</h1>\n</section>"
README = '<div align="center">\n\n# Title\n\n    code\n\n</div>\n\n- a\n- b'
DECK = "# Title\n\n---\n\n## Two\n\n- a\n\n<div>x</div>"
MARP = "---\nmarp: true\nstyle: |\n  h1 { color: red }\n---\n\n<div>\n<p>a</p>\n</div>\n<!-- note -->"
SVG = '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'
FLOW = "graph TD\n A-->B"


@pytest.mark.parametrize(
    ("given", "content", "found"),
    [
        ("markdown", PAGE, "html"),
        ("markdown", f"\ufeff\n<!-- made by x -->\n{PAGE}", "html"),
        ("markdown", f"```html\n{PAGE}\n```", "html"),
        ("markdown", FRAGMENT, "html"),
        ("markdown", STYLED, "html"),
        ("markdown", SVG, "svg"),
        ("markdown", f"<!-- a -->\n{DRAWING}\n<!-- b -->\n", "svg"),
        ("markdown", DRAWING.upper(), "svg"),
        ("markdown", f"{DRAWING}\n\n# Title\n\n- **a**", "markdown"),
        ("markdown", f"{DRAWING}\n\nwords\n\n{DRAWING}", "markdown"),
        ("mermaid", DRAWING, "html"),
        ("mermaid", f"{DRAWING}\n\n```mermaid\ngraph TD\n A-->B\n```", "markdown"),
        ("markdown", README, "markdown"),
        ("markdown", "<p>one</p>\n\n<p>two</p>", "markdown"),
        ("markdown", "<p>a **b**</p>\n\n    code", "markdown"),
        ("markdown", "```html\n<p>a</p>\n```", "markdown"),
        ("markdown", f"Page:\n\n```html\n{PAGE}\n```", "markdown"),
        ("markdown", textwrap.indent(PAGE, "    "), "html"),
        ("markdown", "word", "markdown"),
        ("html", DECK, "markdown"),
        ("html", MARP, "markdown"),
        ("html", "Intro\n\n- a\n- b\n\n| a | b |\n|---|---|\n| 1 | 2 |", "markdown"),
        ("html", "One paragraph.\n\nAnother one with <b>bold</b>.", "markdown"),
        ("html", "```markdown\n# T\n```", "markdown"),
        ("html", "Text\n\n```mermaid\ngraph TD\n A-->B\n```", "markdown"),
        ("html", FLOW, "mermaid"),
        ("html", f"```html\n{PAGE}\n```", "html"),
        ("html", PAGE, "html"),
        ("html", "<h1>a</h1>\n\n# b\n\n- c", "html"),
        ("html", "Loose words <p>and</p>\n\n<ul><li>- a</ul>", "html"),
        ("html", "word", "html"),
        ("html", "", "html"),
        ("mermaid", FLOW, "mermaid"),
        ("mermaid", f"```mermaid\n{FLOW}\n```", "mermaid"),
        ("mermaid", "pie\n 'a': 1", "mermaid"),
        ("mermaid", f"# Flow\n\n```mermaid\n{FLOW}\n```", "markdown"),
        ("mermaid", PAGE, "html"),
        ("svg", SVG, "svg"),
    ],
)
def test_the_content_shows_what_it_is(given, content, found):
    assert recognised(content, given) == found


@pytest.mark.parametrize("content", [PAGE, FRAGMENT])
def test_a_page_that_comes_as_markdown_is_written_with_a_warning(tmp_path, content):
    answer, file = rendered(tmp_path, content, source_format="markdown")
    assert (codes(answer), page_words(file)[:2]) == (["format_recognised"], ["Title", "Words"])
    assert answer["warnings"][0]["message"] == (
        "The content is HTML, not Markdown, and was read as HTML; give format=html."
    )


def test_markdown_that_comes_as_html_keeps_its_structure(tmp_path):
    document = opened_source(DECK, tmp_path, source_format="html")
    assert [next(document.tree.iter(tag)).text for tag in ("h1", "h2", "li")] == ["Title", "Two", "a"]
    assert [warning.code for warning in document.warnings] == ["format_recognised"]


def test_a_short_content_is_never_a_path(tmp_path):
    (tmp_path / "note.txt").write_text("SECRET")
    path = str(tmp_path / "note.txt")
    for source in (path, "\u6211" * 150):
        document = opened_source(source, tmp_path, source_format="html")
        assert text_of(body_of(document.tree)) == source
