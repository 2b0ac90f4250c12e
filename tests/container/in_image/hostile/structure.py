# ruff: noqa: E501 - attacks are data, a line each
"""Documents of too much of one thing: depth, cells, items, words, and Markdown on which parsers turn quadratic."""

from attack import ALL, OFFICE, PAGES, Attack

DEEP = 10_000


def nested(tag: str, depth: int = DEEP) -> str:
    return f"<h1>Deep</h1>{f'<{tag}>' * depth}inside{f'</{tag}>' * depth}"


def table(rows: int, columns: int) -> str:
    row = f"<tr>{'<td>x' * columns}</tr>"
    return f"<table>{row * rows}</table>"


NESTING = ("div", "ul", "ol", "li", "blockquote", "span", "em", "b", "a", "table", "section", "dl", "figure", "details", "p", "font", "svg", "math", "button", "ruby", "h1", "pre", "sup", "unknown")  # fmt: skip
MARKDOWN = {
    "brackets": "[" * 20_000, "brackets-closed": "[" * 5_000 + "a" + "]" * 5_000, "links-unclosed": "[a](<b" * 8_000, "links-in-links": "[a](b" * 8_000,
    "pictures": "![" * 15_000, "emphasis": "*a **a " * 8_000, "emphasis-runs": "*" * 30_000 + "a" + "*" * 30_000, "underscores": "_a __a " * 8_000,
    "tildes": "~~a ~" * 8_000, "backticks": "".join("e" + "`" * n for n in range(1, 350)), "backticks-long": "`" * 40_000, "quotes": ">" * 8_000 + "a",
    "quotes-lines": "\n".join("> " * (n % 90) + "a" for n in range(2_000)), "lists": "\n".join("  " * n + "* x" for n in range(300)), "lists-mixed": "* 1. - + " * 2_000,
    "bullets": "-" * 4_000 + "\n" + "- " * 4_000, "references": "".join(f"[{n}]: /u{n}\n" for n in range(6_000)) + "".join(f"[{n}] " for n in range(6_000)),
    "reference-bomb": f"[a]: /{'u' * 10_000}\n\n" + "[a] " * 3_000, "same-definition": "[a]: b\n" * 15_000, "footnotes": "".join(f"x[^{n}]\n\n[^{n}]: y[^{n + 1}]\n\n" for n in range(700)),
    "footnote-loop": "x[^a]\n\n[^a]: y[^b]\n\n[^b]: z[^a]\n", "footnote-many-uses": "[^a] " * 2_500 + "\n\n[^a]: one", "inline-footnotes": "^[" * 3_000 + "a" + "]" * 3_000,
    "comments": "<!--" * 10_000, "comments-closed": "<!-- a -" * 10_000, "declarations": "<!A" * 12_000, "cdata": "<![CDATA[" * 8_000, "instructions": "<?" * 15_000,
    "tags": "<a " * 8_000 + ">", "attributes": "<a" + " a='b'" * 5_000, "autolinks": "<http://" * 8_000, "linkify": "http://" * 6_000, "linkify-dots": "http://a" + ".a" * 8_000,
    "linkify-brackets": "http://a.example/" + "(" * 5_000 + "a" + ")" * 5_000, "mails": "a@" * 8_000, "www": "www." * 8_000, "entities": "&" * 20_000 + "&amp" * 8_000 + "&#x" * 8_000, "escapes": "\\" * 40_000,
    "tables": "|" * 8_000 + "\n" + "|-" * 4_000 + "\n", "table-columns": "|".join(["a"] * 500) + "\n" + "|".join(["-"] * 500) + "\n" + "|".join(["b"] * 500), "table-lines": "a|b\n-|-\n" + "|\n" * 6_000,
    "table-candidates": "|a\n" * 6_000, "definition-lists": "a\n: b\n" * 1_500, "definitions-deep": "".join(" " * (4 * n) + f"a\n{' ' * (4 * n)}:   " for n in range(60)), "setext": "a\n" * 8_000 + "===",
    "headings": "# a\n" * 1_500, "rules": "***\n" * 1_500, "rules-spaces": "* " * 20_000 + "a", "dollars": "$" * 12_000, "dollars-apart": "$a " * 8_000, "math-brackets": "\\(" * 8_000 + "\\[" * 8_000,
    "attributes-braces": "*a*{" * 5_000 + "a" + "}" * 5_000, "attribute-classes": "*a*{" + ".a " * 6_000 + "}", "colons": ":::" * 8_000, "containers": "::: a\n" * 400 + "x", "containers-long": "".join(":" * (3 + n % 50) + " note\n" for n in range(600)),
    "front-matter-open": "---\n" + "a: b\n" * 8_000, "fences": "```\n" * 3_001, "fences-long": "`" * 20_000 + "\na\n", "indented-code": "    a\n\n" * 5_000, "blank-lines": "\n" * 100_000 + "a", "spaces": " " * 200_000 + "a", "tabs": "\t" * 30_000 + "a",
    "hard-breaks": "a\\\n" * 4_000, "soft-breaks": "a\n" * 12_000, "lazy-quotes": ">a\n" * 3_000, "tasks": "- [ ] " * 2_000, "citations": "[[S:" * 10_000, "citations-open": "[[S:1," + "1," * 30_000, "callouts": "> [!NOTE]\n" * 1_000, "toc": "[TOC]\n\n" * 60 + "# a\n" * 60,
}  # fmt: skip
"""Inputs on which one Markdown parser or another has taken quadratic time, or worse."""

STRUCTURE = (
    *(Attack(f"ten-thousand-{tag}-deep", nested(tag), outputs=("docx",) if tag not in {"div", "table"} else ALL) for tag in NESTING),
    Attack("deep-of-all-kinds", "<h1>Mixed</h1>" + "<div><table><tr><td><ul><li><blockquote><span>" * 600 + "inside", outputs=("pdf", "docx", "pptx")),
    Attack("deep-formatting-misnested", "<h1>Mess</h1>" + "<b><i><u><a href=x><font>" * 500 + "x" + "</b></a></i></u>" * 500, outputs=("pdf", "docx")),
    Attack("adoption-agency", "<p>" + "<a><b><div>" * 300 + "x", outputs=("pdf", "docx")),
    Attack("five-thousand-flex-boxes-deep", '<div style="display:flex">' * 5_000 + "x", outputs=("pdf", "docx")),
    Attack("grids-in-columns-in-tables", "<style>.g{display:grid}.c{columns:2}.i{display:inline-flex}</style>" + "<div class=g><div class=c><table><tr><td class=i>" * 2 + "x", outputs=("pdf", "pptx")),
    Attack("grids-in-columns-in-tables-deep", "<style>.g{display:grid}.c{columns:2}.i{display:inline-flex}</style>" + "<div class=g><div class=c><table><tr><td class=i>" * 6 + "x", outputs=("pdf",)),
    Attack("floats-and-positions-deep", '<div style="float:left"><div style="position:absolute"><span style="display:inline-block">' * 40 + "x", outputs=("pdf", "pptx")),
    Attack("tables-in-tables", "<table><tr><td>x" * 60 + "</table>" * 60, outputs=("pdf", "docx", "pptx")),
    Attack("columns-in-columns", '<div style="columns:3">x' * 30, outputs=("pdf",)),
    Attack("spans-of-a-billion", "<table><tr><td colspan=1000000000 rowspan=1000000000>a<td rowspan=65534>b<tr><th colspan=-1>c<td colspan=1e9>d<td colspan=x rowspan=0>e<col span=1000000000><colgroup span=999999999></table><h1>x</h1>"),
    Attack("spans-in-every-cell", "<table>" + ("<tr>" + "<td colspan=150 rowspan=20000>x" * 4) * 8 + "</table>", outputs=("pdf", "docx", "pptx")),
    Attack("a-table-of-a-million-cells", lambda: table(1_000, 1_000), outputs=("docx",), ends="too_many_elements"),
    Attack("a-table-of-a-thousand-columns", table(3, 1_000), outputs=("docx",)),
    Attack("a-table-of-empty-rows", "<table>" + "<tr></tr>" * 1_000 + "<tr><td>x</table>", outputs=ALL),
    Attack("a-table-of-long-words", "<table><tr>" + f"<td>{'w' * 400}" * 6 + "</table>", outputs=("pdf", "docx")),
    Attack("fifty-thousand-list-items-for-word", "<ul>" + "<li>x" * 50_000 + "</ul>", outputs=("docx",)),
    Attack("a-list-of-far-numbers", "<ol start=999999999999><li value=-99999999999>a<li value=1e9>b<li value=x>c</ol><ol type=i start=100000000><li>r</ol><ol type=a start=2147483647><li>s</ol><ol reversed><li>t</ol>"),
    Attack("roman-numbers-of-a-billion", "<style>ol{list-style:upper-roman}li::marker{content:counter(list-item,hebrew)}</style><ol start=2000000000><li>a<li>b</ol>", outputs=PAGES),
    Attack("a-word-of-a-million-letters", lambda: "w" * 1_000_000, "markdown", ("docx",)),
    Attack("a-word-of-twenty-thousand-letters", lambda: "w" * 20_000, "markdown", ("pptx", "pdf")),
    Attack("a-heading-of-three-thousand-words", lambda: f"# {'head ' * 3_000}", "markdown", ("pdf", "docx", "pptx")),
    Attack("thirty-megabytes-of-text", lambda: "word " * 6_000_000, "markdown", ("pdf",), ends="content_too_large"),
    Attack("thirty-megabytes-of-html", lambda: "<p>w" * 7_500_000, "html", ("pptx",), ends="content_too_large"),
    Attack("four-megabytes-of-elements", lambda: "<b></b>" * 650_000, "html", ("pdf",), ends="too_many_elements"),
    Attack("three-thousand-slides", "\n\n---\n\n".join(f"# Slide {n}" for n in range(3_000)), "markdown", ("pptx",), ends="too_many_slides"),
    Attack("thousands-of-forced-pages", '<p style="break-after:page">p' * 3_000, outputs=("pdf",), ends="too_many_pages"),
    Attack("three-hundred-forced-pages", '<p style="break-after:page">p' * 300, outputs=("pdf",)),
    Attack("two-thousand-footnotes", "".join(f"x[^{n}] " for n in range(2_000)) + "".join(f"\n\n[^{n}]: note" for n in range(2_000)), "markdown", ("docx",)),
    Attack("a-thousand-links-to-one-place", "<h1 id=a>A</h1>" + '<a href="#a">l</a> ' * 1_000, outputs=("pdf", "docx")),
    Attack("ids-that-are-all-the-same", '<h2 id="x">h</h2><p id=x><a href="#x">x</a>' * 100, outputs=("pdf", "docx", "pptx")),
    *(Attack(f"markdown-{name}", text, "markdown", ("docx",)) for name, text in MARKDOWN.items()),
    Attack("markdown-all-of-it-on-slides", "\n\n".join(text[:120] for text in MARKDOWN.values()), "markdown", ("pptx",)),
    Attack("tags-never-closed", "<" * 50_000, outputs=OFFICE),
    Attack("attributes-without-end", "<p " + "a=b " * 20_000 + ">x", outputs=OFFICE),
    Attack("one-attribute-of-a-megabyte", f"<p title='{'x' * 1_000_000}' class='{'c ' * 100_000}' id='{'i' * 100_000}' style='{'color:red;' * 20_000}'>x", outputs=ALL),
    Attack("doctypes-and-conditional-comments", "<!DOCTYPE html [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><![if IE]>&x;<![endif]><?php system('id') ?><?xml-stylesheet href='file:///tmp/elsewhere/canary.css'?><%= x %><h1>D</h1>"),
    Attack("framesets", "<frameset><frame src='file:///etc/passwd'><noframes>n</noframes></frameset>"),
    Attack("templates-and-forms", "<template><img src='file:///etc/passwd'></template><form><input value=x><select><option>o<optgroup label=g></select><textarea>t</textarea><progress value=1e999></progress><meter></meter></form><dialog open>d</dialog><h1>F</h1>"),
    Attack("plaintext-and-raw-text", "<h1>R</h1><xmp><b></xmp><noembed><b></noembed><listing>x</listing><plaintext></html><script>", outputs=ALL),
)  # fmt: skip
