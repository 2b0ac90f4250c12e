"""From a source to the tree: Markdown, HTML, marks, citations, and what is refused."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from PIL import Image
from render.frontend.element_tree import body_of, text_of
from render.frontend.figures.svg_image import svg_of
from render.frontend.html import unfence
from render.frontend.pipeline import open_document
from render.model import Document, RenderError, RenderRequest, Source

SOURCES = (
    Source(1, "One", "https://one.example/a"),
    Source(3, "Three"),
    Source(4, "Four", "http://four.example"),
    Source(7, "Seven"),
)


def open_text(tmp_path: Path, content: str, source_format="markdown", **fields) -> Document:
    fields = {"output": "pdf", "sources": SOURCES, "root": str(tmp_path), "target": "turn_1/files/a.pdf", **fields}
    return open_document(RenderRequest(source_format=source_format, content=content, **fields))


def codes(document: Document) -> list[str]:
    return [warning.code for warning in document.warnings]


def test_citations_are_numbered_in_the_order_of_their_first_use_and_only_cited_sources_are_listed(tmp_path):
    document = open_text(tmp_path, "A [[S:4]] b [[s: 1, 3-4 ]] c.")
    assert text_of(next(document.tree.iter("p"))) == "A [1] b [2, 3, 1] c."
    assert [source.sid for source in document.cited] == [4, 1, 3]
    links = [a.get("href") for a in document.tree.iter("a") if a.get("class") == "pb-cite"]
    assert links == ["http://four.example", "https://one.example/a", "#pb-source-3", "http://four.example"]
    section = next(s for s in document.tree.iter("section") if s.get("class") == "pb-sources")
    assert [text_of(row) for row in section.iter("li")] == [
        "Four http://four.example",
        "One https://one.example/a",
        "Three",
    ]


@pytest.mark.parametrize(
    ("token", "sids"),
    [("[[S:1\u20133]]", [1, 3]), ("[[S:4-3]]", [3, 4]), ("[[s:7]]", [7]), ("[[S:1-999999999999]]", [1, 3, 4, 7])],
)
def test_ranges_are_read_in_every_spelling_and_bounded_by_the_pool(tmp_path, token, sids):
    assert [source.sid for source in open_text(tmp_path, f"x {token}").cited] == sids


def test_citation_tokens_in_code_are_left_alone(tmp_path):
    document = open_text(tmp_path, "`[[S:1]]`\n\n```\n[[S:1]]\n```\n\n<pre>[[S:3]]</pre><kbd>[[S:3]]</kbd>")
    assert document.cited == []
    assert "".join(document.tree.itertext()).count("[[S:") == 4


def test_an_unresolved_citation_is_visible_and_reported(tmp_path):
    document = open_text(tmp_path, "x [[S:99]] and [[S:1,2]]")
    assert text_of(next(document.tree.iter("p"))) == "x [99?] and [1, 2?]"
    assert codes(document) == ["unresolved_citation", "unresolved_citation"]


def test_a_token_before_a_parenthesis_is_no_link(tmp_path):
    document = open_text(tmp_path, "see [[S:1]](https://x.example)")
    assert [source.sid for source in document.cited] == [1]


def test_the_sources_section_is_left_out_where_the_request_says_so(tmp_path):
    document = open_text(tmp_path, "x [[S:1]]", options={"include_sources_section": False})
    assert list(document.tree.iter("section")) == []


@pytest.mark.parametrize(
    ("content", "inner"),
    [
        ("```markdown\n# A\n```", "# A\n"),
        ("```\n# A\n\n```python\nx\n```\n\nb\n```\n", "# A\n\n```python\nx\n```\n\nb\n"),
        ("```md\na\n```\n\ntext\n\n```md\nb\n```", None),
        ("```python\nx\n```", None),
        ("text\n```\nx\n```", None),
        ("    ```\n    a\n    ```", None),
        ("```md\n# A\n    ```", None),
        ("```\noutput 1\n```", None),
        ("```\n``` aaa\n```", None),
    ],
)
def test_only_a_content_fenced_as_a_whole_is_unfenced(content, inner):
    assert unfence(content, ("", "md", "markdown")) == (content if inner is None else inner)


def test_front_matter_overrides_the_metadata_of_the_request(tmp_path):
    text = "---\ntitle: A title\nauthor: [Ada, Grace]\nlang: de-AT\nkeywords: x, y\n---\n\n# Heading"
    metadata = open_text(tmp_path, text).metadata
    assert (metadata.title, metadata.author, metadata.language) == ("A title", "Ada, Grace", "de-AT")
    assert metadata.keywords == ("x", "y")


def test_lines_between_rules_that_set_nothing_are_text(tmp_path):
    document = open_text(tmp_path, "---\nFoo\n---\nBar")
    assert [(item.tag, item.text) for item in body_of(document.tree)] == [("hr", None), ("h2", "Foo"), ("p", "Bar")]
    first_slide = open_text(tmp_path, "---\n\n# One\n\n---\n\n# Two")
    assert [item.text for item in first_slide.tree.iter("h1")] == ["One", "Two"]


@pytest.mark.parametrize(
    "shape", ["---\n{}\n---\n", "---\nmarp: true\n---\n\n<!-- {} -->\n", "```chart\n{}\n```\n"]
)
def test_yaml_that_multiplies_itself_is_not_read(tmp_path, shape):
    rows = ["color: &a [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"{name}: &{name} [{', '.join(['*' + before] * 10)}]" for before, name in pairwise("abcdefghijkl")]
    document = open_text(tmp_path, shape.format("\n".join(rows)) + "\n\n# After", output="pptx")
    assert [text_of(item) for item in document.tree.iter("h1")] == ["After"]


def test_a_title_with_a_colon_is_a_title_though_it_is_not_yaml(tmp_path):
    document = open_text(tmp_path, "---\ntitle: One: two\nauthor: 'Ada'\n---\n\ntext")
    assert (document.metadata.title, document.metadata.author) == ("One: two", "Ada")


@pytest.mark.parametrize("text", ["> [!WARNING]\n> Mind.", "::: warning\nMind.\n:::", ":::: danger\nMind.\n::::"])
def test_callouts_of_every_spelling_become_one_mark(tmp_path, text):
    callout = next(open_text(tmp_path, text).tree.iter("aside"))
    assert callout.get("class") == "pb-callout"
    assert callout.get("data-kind") in {"warning", "caution"}
    assert text_of(callout).endswith("Mind.")


def test_bare_colon_fences_close_the_innermost_block(tmp_path):
    text = "::: columns\n::: column\nleft\n:::\n::: {.column width=30%}\nright\n:::\n:::\n\nafter"
    document = open_text(tmp_path, text)
    columns = next(div for div in document.tree.iter("div") if div.get("class") == "pb-columns")
    assert [text_of(column) for column in columns] == ["left", "right"]
    assert columns[1].get("data-width") == "30%"
    assert [text_of(p) for p in body_of(document.tree).findall("p")] == ["after"]


def test_formulas_become_pictures_and_prices_do_not(tmp_path):
    document = open_text(tmp_path, r"$x^2$ and \(y\) cost $5 or $6. \[z\]" + "\n\n$$\n\\frac12\n$$")
    marked = [item for item in document.tree.iter() if item.get("class") == "pb-math"]
    assert [item.get("data-tex") for item in marked] == ["x^2", "y", "z", "\\frac12"]
    assert all(svg_of(item[0]).startswith("<svg") for item in marked)
    assert "cost $5 or $6." in text_of(body_of(document.tree))


def test_escaped_brackets_around_words_and_links_are_no_formula(tmp_path):
    document = open_text(tmp_path, r"http \[[RFC 1](https://x.example/)\], \[optional\], \(see below\)")
    assert text_of(body_of(document.tree)) == "http [RFC 1], [optional], (see below)"
    assert [a.get("href") for a in document.tree.iter("a")] == ["https://x.example/"]


def test_addresses_without_a_scheme_are_links(tmp_path):
    document = open_text(
        tmp_path,
        "See www.example.com/a_(b). Ask a.b@example.museumx about code.py and x.y. "
        "(Also www.example.org/?q=(c))+d, e@f.g, not h@i+j.example, k@l.m_ or n@o.)",
    )
    assert [a.get("href") for a in document.tree.iter("a")] == [
        "http://www.example.com/a_(b)",
        "mailto:a.b@example.museumx",
        "http://www.example.org/?q=(c))+d",
        "mailto:e@f.g",
    ]


def test_a_formula_that_cannot_be_set_stays_as_text_with_a_warning(tmp_path):
    document = open_text(tmp_path, r"a $\frac{1}{$ b")
    assert r"\frac{1}{" in text_of(body_of(document.tree))
    assert codes(document) == ["formula_failed"]


def test_brackets_around_a_sum_are_as_high_as_the_sum(tmp_path):
    document = open_text(tmp_path, r"$$\left[\sum_{i} x_i\right] \left.y\right|$$")
    style = next(document.tree.iter("img")).get("style")
    height = float(style.split("height:")[1].split("em")[0])
    assert 1.5 < height < 4


def test_mathml_is_set_too(tmp_path):
    math = "<math><mi>x</mi><mo>=</mo><mfrac><mn>1</mn><mn>2</mn></mfrac></math>"
    document = open_text(tmp_path, math, "html")
    assert [svg_of(image)[:4] for image in document.tree.iter("img")] == ["<svg"]


def test_a_mermaid_flowchart_is_drawn_in_a_font_of_the_image(tmp_path):
    document = open_text(tmp_path, "```mermaid\nflowchart LR\n A-->B\n```")
    figure = next(document.tree.iter("figure"))
    assert figure.get("class") == "pb-diagram"
    assert figure.get("data-source") == "flowchart LR\n A-->B"
    assert "Noto Sans" in svg_of(figure[0])
    assert "Recursive" not in svg_of(figure[0])


def test_a_diagram_that_has_a_height_of_its_own_is_drawn(tmp_path):
    document = open_text(tmp_path, "```mermaid\njourney\n title Day\n section Go\n  Make tea: 5: Me\n```")
    assert codes(document) == []
    drawn = svg_of(next(document.tree.iter("figure"))[0]).split(">")[0]
    assert (drawn.count(" width="), drawn.count(" height=")) == (1, 1)


def test_a_diagram_that_cannot_be_drawn_stays_as_code(tmp_path):
    document = open_text(tmp_path, "```mermaid\nflowchart LR\n A--\n```")
    assert codes(document) == ["diagram_failed"]
    assert text_of(next(document.tree.iter("pre"))) == "flowchart LR A--"


CHARTS = [
    ('```chart\n{"type":"bar","categories":["a","b"],"series":[{"name":"s","values":[1,2]}]}\n```', "column"),
    ("```chart\ntype: line\nlabels: [a, b]\nseries:\n  s: [1, 2]\n```", "line"),
    ('```chart\n{"type":"bar","data":{"labels":["a","b"],"datasets":[{"label":"s","data":[1,2]}]}}\n```', "column"),
    ("```chart\ntype: hbar\ndata:\n- {label: a, s: 1}\n- {label: b, s: 2}\n```", "bar"),
    ('```mermaid\nxychart-beta\n x-axis ["a", "b"]\n y-axis "t" 0 --> 5\n bar "s" [1, 2]\n```', "column"),
    (
        (
            '<table data-chart="area"><tr><th></th><th>s</th></tr>'
            "<tr><td>a</td><td>1</td></tr><tr><td>b</td><td>2</td></tr></table>"
        ),
        "area",
    ),
]


@pytest.mark.parametrize(("text", "kind"), CHARTS)
def test_charts_of_every_spelling_hold_the_same_figures(tmp_path, text, kind):
    figure = next(open_text(tmp_path, text).tree.iter("figure"))
    chart = json.loads(figure.get("data-chart"))
    assert (chart["kind"], chart["categories"]) == (kind, ["a", "b"])
    assert chart["series"] == [{"name": "s", "values": [1.0, 2.0]}]
    assert svg_of(figure[0]).startswith("<svg")


def test_a_mermaid_pie_is_a_chart(tmp_path):
    figure = next(open_text(tmp_path, '```mermaid\npie title T\n "a" : 1\n "b" : 3\n```').tree.iter("figure"))
    assert json.loads(figure.get("data-chart"))["title"] == "T"


def test_scripts_frames_and_dangerous_links_go_with_a_warning(tmp_path):
    html = '<script>a()</script><iframe src="x"></iframe><a href="java\nscript:x()">l</a><a href="file:///etc/passwd">m</a>'
    document = open_text(tmp_path, html + "<p onclick='x()'>t", "html")
    assert sorted(set(codes(document))) == ["embed_ignored", "link_dropped", "script_ignored"]
    assert [a.get("href") for a in document.tree.iter("a")] == [None, None]
    assert [key for item in document.tree.iter() for key in item.attrib if key.startswith("on")] == []


def test_a_picture_is_found_by_every_way_to_write_its_path(tmp_path):
    folder = tmp_path / "turn_1" / "files"
    folder.mkdir(parents=True)
    Image.new("RGB", (4, 4)).save(folder / "a b.png")
    ways = [
        "turn_1/files/a%20b.png",
        "files/a%20b.png",
        "a%20b.png",
        "./a%20b.png?x=1",
        "fi:turn_1.files/a%20b.png",
    ]
    document = open_text(tmp_path, "".join(f'<img src="{way}">' for way in ways), "html")
    assert [image.get("src") for image in document.tree.iter("img")] == ["turn_1/files/a%20b.png"] * len(ways)


def test_nothing_outside_of_the_folder_is_read(tmp_path):
    outside = tmp_path / "secret.png"
    root = tmp_path / "out"
    (root / "turn_1" / "files").mkdir(parents=True)
    outside.write_bytes(b"\x89PNG")
    (root / "turn_1" / "files" / "link.png").symlink_to(outside)
    html = f'<img src="{outside}"><img src="../secret.png"><img src="files/link.png">'
    html += f'<img src="file://{outside}"><img src="http://x.example/a.png">'
    document = open_text(root, html, "html")
    assert list(document.tree.iter("img")) == []
    assert sum(1 for span in document.tree.iter("span") if span.get("class") == "pb-missing") == 5
    assert set(codes(document)) <= {"asset_refused", "missing_asset", "remote_refused"}


def test_a_missing_asset_is_an_error_of_a_strict_request(tmp_path):
    with pytest.raises(RenderError) as caught:
        open_text(tmp_path, "![x](files/none.png)", strict=True)
    assert caught.value.code == "missing_assets"


def test_emoji_get_the_emoji_font_and_digits_do_not(tmp_path):
    document = open_text(
        tmp_path,
        "a 1 \U0001f600 2 1\ufe0f\u20e3 \U0001f1e9\U0001f1ea \u00a9 \u2764\ufe0f \U0001f469\u200d\U0001f680",
    )
    found = [span.text for span in document.tree.iter("span") if span.get("class") == "pb-emoji"]
    assert found == [
        "\U0001f600",
        "1\ufe0f\u20e3",
        "\U0001f1e9\U0001f1ea",
        "\u2764\ufe0f",
        "\U0001f469\u200d\U0001f680",
    ]


def test_deep_nesting_is_flattened_and_keeps_its_text(tmp_path):
    document = open_text(tmp_path, "<div>" * 3000 + "deep", "html")
    assert text_of(body_of(document.tree)) == "deep"
    assert "nesting_flattened" in codes(document)


def test_headings_get_unique_anchors_and_numbers_on_request(tmp_path):
    document = open_text(tmp_path, "# T\n\n## A\n\n### B\n\n## A", options={"numbered_sections": True})
    rows = [(h.get("id"), text_of(h)) for tag in ("h2", "h3") for h in document.tree.iter(tag)]
    assert rows == [("a", "1 A"), ("a-1", "2 A"), ("b", "1.1 B")]


def test_the_last_line_of_a_session_is_kept(tmp_path):
    block = next(open_text(tmp_path, "```console\n$ pip install x\ndone\n```").tree.iter("pre"))
    assert "".join(block.itertext()) == "$ pip install x\ndone"


def test_a_remote_picture_is_named_by_its_file(tmp_path):
    document = open_text(tmp_path, "# Tool ![build](https://img.example/a/b/badge.svg?style=flat)")
    assert text_of(next(document.tree.iter("h1"))) == "Tool build \u2014 missing image: badge.svg"


def test_code_is_coloured_by_short_classes_and_keeps_its_text(tmp_path):
    block = next(open_text(tmp_path, "```python\ndef f():\n    return 1\n```").tree.iter("pre"))
    assert (block.get("class"), block.get("data-language")) == ("pb-code", "python")
    assert "".join(block.itertext()) == "def f():\n    return 1"
    assert next(block.iter("span")).get("class") == "k"


@pytest.mark.parametrize(
    ("content", "source_format"),
    [
        (" \n", "markdown"),
        ("<!-- nothing -->", "markdown"),
        ("```markdown\n```", "markdown"),
        ("---\nauthor: Ann\n---\n", "markdown"),
        ("<p> </p><div><br></div>", "html"),
        ("<script>draw()</script>", "html"),
    ],
)
def test_a_document_that_shows_nothing_has_a_warning(tmp_path, content, source_format):
    assert "blank_document" in codes(open_text(tmp_path, content, source_format))


@pytest.mark.parametrize(
    ("content", "source_format"),
    [
        ("a", "markdown"),
        ("---\ntitle: T\n---\n", "markdown"),
        ("![x](none.png)", "markdown"),
        ("```mermaid\ngraph TD; A-->B\n```", "markdown"),
        ("$x$", "markdown"),
        ("<style>.r{height:9px;background:red}</style><div class=r></div>", "html"),
        ("<div style='height:9px;background:red'></div>", "html"),
        ("<div><hr></div>", "html"),
        ("<p></p>after", "html"),
        ("<svg viewBox='0 0 1 1'></svg>", "svg"),
    ],
)
def test_a_document_that_shows_something_has_no_such_warning(tmp_path, content, source_format):
    assert "blank_document" not in codes(open_text(tmp_path, content, source_format))


@pytest.mark.parametrize("content", ["not svg", "", "<p>x</p>", "<svgx></svgx>", "&lt;svg>"])
def test_what_has_no_drawing_is_refused_as_svg(tmp_path, content):
    with pytest.raises(RenderError) as caught:
        open_text(tmp_path, content, "svg", output="png")
    assert caught.value.code == "invalid_svg"


@pytest.mark.parametrize("start", ["<svg", '<?xml version="1.0"?><!-- x --><svg', "<SVG", "```svg\n<svg"])
def test_a_drawing_is_found_behind_what_stands_before_it(tmp_path, start):
    end = "\n```" if start.startswith("```") else ""
    document = open_text(tmp_path, f"{start} viewBox='0 0 9 9'><rect width='9' height='9'/></svg>{end}", "svg")
    assert codes(document) == []
