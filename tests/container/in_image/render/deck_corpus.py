# ruff: noqa: E501, ISC004 - sources of documents, as they would be sent
"""Decks as language models write them, and hostile ones: name → (format, source). ``decks()`` has all 200."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from deck_designs import TALL, WIDE, html_deck, markdown_deck

LIST = "\n".join(f"- Point {n}: {'a reason that takes some words to tell ' * (n % 3)}" for n in range(1, 30))
ROWS = "\n".join(f"| {n} | Region {n} | {n * 17} | {'note ' * (n % 7)}|" for n in range(1, 45))
CODE = "\n".join(f"def step_{n}(value):\n    return value + {n}  # adds {n}" for n in range(1, 30))
PROSE = "Every team that ships weekly learns the same lesson about small batches and quick feedback. " * 40
CARDS = "".join(
    f"<div class='card'><h3>Card {n}</h3><p>Text of card {n} with a few words.</p></div>" for n in range(1, 7)
)

BLUE = """<style>*{margin:0;padding:0;box-sizing:border-box}body{font-family:Arial,sans-serif;background:#111}
.slide{width:1280px;height:720px;padding:60px;background:#fff;color:#222;display:flex;flex-direction:column}
.slide h1{font-size:56px;color:#003366}.slide h2{font-size:40px;color:#003366;margin-bottom:24px}
li{font-size:24px;margin-bottom:12px}.grid{display:grid;grid-template-columns:1fr 1fr 1fr;gap:24px}
.card{background:#eef3fb;border-radius:12px;padding:24px;border-left:6px solid #3366cc}.card h3{font-size:22px}.card p{font-size:18px}
.two{display:flex;gap:40px}.two>div{flex:1}</style>"""
REVEAL = "<div class='reveal'><div class='slides'>{}</div></div>"

GOOD: dict[str, tuple[str, str]] = {
    "headings": (
        "markdown",
        "# Deck\n\nBy the team\n\n## One\n\n- a\n- b\n  - c\n\n## Two\n\nText **bold** and *italic* and `code`.\n",
    ),
    "rules": (
        "markdown",
        "# First\n\nHello there\n\n---\n\n## Second\n\n1. one\n2. two\n\n---\n\n## Third\n\n> A quote that matters\n",
    ),
    "marp": (
        "markdown",
        "---\nmarp: true\ntheme: default\npaginate: true\nheader: Head\nfooter: Foot\n---\n\n<!-- _class: lead -->\n# Marp deck\n\n---\n\n"
        "## Next\n\n- x\n- y\n\n<!-- say this aloud -->\n\n---\n<!-- _backgroundColor: #123456 -->\n<!-- _color: white -->\n# Dark one\n\nWords here\n",
    ),
    "front": (
        "markdown",
        "---\ntitle: Yearly plan\nauthor: Ann\ndate: 2026-01-02\n---\n\n## Goals\n\n- grow\n\n## Risks\n\n- churn\n",
    ),
    "notes": ("markdown", "# T\n\n## A\n\nSeen words\n\n::: notes\nSpoken words only\n:::\n\n## B\n\nMore seen\n"),
    "columns": (
        "markdown",
        "## Compare\n\n::: columns\n::: column\n### Left\n\n- l1\n- l2\n:::\n::: column\n### Right\n\n- r1\n- r2\n:::\n:::\n\nAfter the columns\n",
    ),
    "long-list": ("markdown", f"# Deck\n\n## Many points\n\n{LIST}\n\n## End\n\nBye\n"),
    "long-table": (
        "markdown",
        f"# Deck\n\n## Figures\n\n| n | region | sales | notes |\n|--:|---|--:|---|\n{ROWS}\n\n## End\n\nBye\n",
    ),
    "long-code": ("markdown", f"# Deck\n\n## Program\n\n```python\n{CODE}\n```\n"),
    "long-prose": ("markdown", f"# Deck\n\n## Story\n\n{PROSE}\n"),
    "callouts": (
        "markdown",
        "## Care\n\n> [!NOTE]\n> A note.\n\n> [!WARNING]\n> A warning with `code`.\n\n> [!TIP]\n> - one\n> - two\n",
    ),
    "chart": (
        "markdown",
        "## Sales\n\nBefore the chart\n\n```chart\ntype: bar\ntitle: Sales\nlabels: [Q1, Q2, Q3]\nseries:\n  - name: A\n    data: [1, 2, 3]\n```\n",
    ),
    "mermaid": ("markdown", "## Flow\n\nLook at it\n\n```mermaid\ngraph LR\n  A-->B\n```\n"),
    "math": ("markdown", "## Physics\n\nEnergy $E=mc^2$ and\n\n$$\\int_0^1 x\\,dx$$\n\nDone\n"),
    "footnotes": (
        "markdown",
        "## Facts\n\nWater boils[^a] at sea level.\n\n[^a]: At 100 degrees.\n\n## Other\n\nText[^b]\n\n[^b]: Second note.\n",
    ),
    "tasks": ("markdown", "## Tasks\n\n- [x] done thing\n- [ ] open thing\n"),
    "nested": (
        "markdown",
        "## Levels\n\n1. one\n   - a\n     - b\n       1. deep\n2. two\n\n   with a paragraph\n3. three\n",
    ),
    "deflist": ("markdown", "## Terms\n\nTerm\n: What it means\n\nOther\n: Another meaning\n"),
    "links": (
        "markdown",
        "## Links\n\n[site](https://example.com/a?b=1&c=[2]) and <https://example.org> and [in](#more)\n\n## More\n\nText\n",
    ),
    "loose": ("markdown", "Only a paragraph without any heading.\n\nAnd another one.\n"),
    "deep-levels": (
        "markdown",
        "# Part one\n\n## Topic\n\n### Detail\n\ntext\n\n### Detail two\n\ntext two\n\n# Part two\n\n## Topic b\n\ntext three\n",
    ),
    "emoji": ("markdown", "## Launch 🚀\n\n- ✅ ready\n- 👩‍🚀 crew\n- 中文 文本 and العربية\n"),
    "html-in-md": (
        "markdown",
        "## Mix\n\n<div style='background:#eee;padding:10px'>Boxed <b>text</b></div>\n\nAfter\n",
    ),
    "many-h3": ("markdown", "## Plan\n\n### A\n\ntext a\n\n### B\n\ntext b\n\n### C\n\ntext c\n"),
    "sections": (
        "html",
        "<section><h1>Title</h1><p>Sub</p></section><section><h2>Two</h2><ul><li>a<ul><li>b</li></ul></li></ul></section>",
    ),
    "styled": (
        "html",
        f"{BLUE}<div class='slide'><h1>Blue deck</h1><p>Subtitle</p></div><div class='slide'><h2>Cards</h2><div class='grid'>{CARDS}</div></div>",
    ),
    "two-cols": (
        "html",
        f"{BLUE}<div class='slide'><h2>Both</h2><div class='two'><div><ul><li>l1</li><li>l2</li></ul></div><div><p>Right text here</p></div></div></div>",
    ),
    "hidden-slides": (
        "html",
        "<style>.slide{display:none;position:absolute;top:0}.slide.active{display:flex}</style><div class='slide active'><h1>One</h1></div>"
        "<div class='slide'><h2>Two</h2><p>hidden by the script</p></div><script>go()</script>",
    ),
    "reveal": (
        "html",
        REVEAL.format(
            "<section><h2>A</h2><p>x</p></section><section><section><h2>B1</h2></section><section><h2>B2</h2><aside class='notes'>speak</aside></section></section>"
        ),
    ),
    "absolute": (
        "html",
        "<div class='slide' style='position:relative;width:1280px;height:720px'><h1 style='position:absolute;left:80px;top:60px'>Placed</h1>"
        "<p style='position:absolute;left:80px;top:200px;width:500px'>Left text</p><p style='position:absolute;left:700px;top:200px;width:500px'>Right text</p></div>",
    ),
    "full-hd": (
        "html",
        "<style>.slide{width:1920px;height:1080px;padding:100px;background:#fafafa}h1{font-size:96px}p{font-size:40px}</style>"
        "<div class='slide'><h1>Full HD</h1><p>Large design</p></div><div class='slide'><h1>Next</h1><p>More</p></div>",
    ),
    "small-design": (
        "html",
        "<style>.slide{width:960px;height:540px;padding:40px}h2{font-size:32px}</style><div class='slide'><h2>Small</h2><p>Design</p></div>",
    ),
    "viewport": (
        "html",
        "<style>.slide{width:100vw;height:100vh;padding:5vh 5vw}h1{font-size:6vw}</style><div class='slide'><h1>View</h1><p style='font-size:2vw'>port</p></div>",
    ),
    "colours": (
        "html",
        "<style>:root{--c:hsl(200,80%,30%)}</style><section style='background:linear-gradient(45deg,navy,rgb(10 20 30 / .5),var(--nope))'>"
        "<h2 style='color:var(--c)'>Colours</h2><p style='color:hsl(10 50% 50%)'>hsl</p><p style='color:oklch(0.6 0.2 30)'>lch</p>"
        "<p style='color:rebeccapurple;background:color-mix(in srgb,red,blue)'>mixed</p><p style='color:#12345'>bad</p></section>",
    ),
    "table-spans": (
        "html",
        "<section><h2>Spans</h2><table><thead><tr><th rowspan='2'>A</th><th colspan='2'>B</th></tr><tr><th>b1</th><th>b2</th></tr></thead>"
        "<tbody><tr><td>1</td><td>2</td><td rowspan='2'>3</td></tr><tr><td colspan='2'>4</td></tr></tbody></table></section>",
    ),
    "plain-html": (
        "html",
        "<h1>Doc</h1><p>Intro</p><h2>One</h2><p>Text</p><ul><li>x</li></ul><h2>Two</h2><pre><code>a = 1\nb  = 2</code></pre>",
    ),
    "gradient-text": (
        "html",
        "<div class='slide'><h1 style='background:linear-gradient(red,blue);-webkit-background-clip:text;color:transparent'>Shiny</h1><p>x y</p></div>",
    ),
    "marp-directives": (
        "markdown",
        "---\nmarp: true\ntheme: gaia\nclass: invert\nheadingDivider: 2\npaginate: true\nbackgroundColor: #fff8e7\ncolor: '#222'\nheader: '**Acme** report'\n---\n\n# Divided\n\nby headings\n\n"
        f"## Pictures\n\n![bg right:40% opacity:.5]({TALL})\n\n- words beside it\n- ![w:120]({WIDE})\n\n## Two grounds\n\n![bg]({WIDE}) ![bg]({TALL})\n\nSeen words\n\n"
        "## Formula\n\n<!-- _paginate: false -->\n<!-- _header: '' -->\n\nwith $x^2$ inside\n\n<!-- only spoken -->\n\n## Gradient\n\n<!-- _backgroundImage: \"linear-gradient(to right, #000066, #cc0066)\" -->\n<!-- _color: white -->\n\nlast words\n",
    ),
    "css-pictures": (
        "html",
        f"<style>.slide{{width:1280px;height:720px;padding:60px;background:url({WIDE}) center/cover}}.hero{{width:400px;height:200px;background-image:url({TALL});box-shadow:0 10px 30px rgba(0,0,0,.5)}}"
        ".tag{background:linear-gradient(90deg,#f06,#60f);color:#fff;padding:10px;width:300px;border-radius:8px;box-shadow:4px 4px 0 #000}</style>"
        "<div class='slide'><h1>Grounds</h1><div class='hero'></div><div class='tag'>Tagged words</div></div><div class='slide'><h2>Second</h2><p>words</p></div>",
    ),
    "page-design": (
        "html",
        "<style>@page{size:A4 landscape}.slide{width:1024px;height:768px;padding:40px}.slide h2{position:absolute;top:20px}</style><div class='slide'><h2>Four to three</h2><p style='margin-top:90px'>words here</p></div>",
    ),
}

HOSTILE: dict[str, tuple[str, str]] = {
    "deep-divs": ("html", "<section><h2>Deep</h2>" + "<div>" * 400 + "core words" + "</div>" * 400 + "</section>"),
    "deep-lists": ("html", "<h2>Lists</h2>" + "<ul><li>x" * 120 + "</li></ul>" * 120),
    "broken": (
        "html",
        "<section><h2>Broken<p>text <b>bold <i>both</b> still</i><table><tr><td>cell<td>two<div></table>end",
    ),
    "no-slides": ("html", ""),
    "blanks": ("markdown", "\n\n---\n\n---\n\n"),
    "controls": ("markdown", "## Con\x00trol\x0b\n\nbell\x07 and \x1b[31mred\x1b[0m \ufffe end\n"),
    "long-word": ("markdown", "## W\n\n" + "x" * 3000 + "\n"),
    "huge-title": ("markdown", "# " + "long title words " * 60 + "\n\n## Next\n\ntext\n"),
    "wide-table": (
        "html",
        "<section><h2>Wide</h2><table><tr>"
        + "".join(f"<td>column{n}</td>" for n in range(40))
        + "</tr></table></section>",
    ),
    "overlap": (
        "html",
        "<section>"
        + "".join(f"<p style='position:absolute;left:10px;top:10px'>stacked {n}</p>" for n in range(6))
        + "</section>",
    ),
    "off-slide": (
        "html",
        "<section><h2 style='margin-left:-900px'>Gone</h2><p style='position:absolute;left:5000px;top:-400px'>Far away</p></section>",
    ),
    "giant-type": (
        "html",
        "<section><h2 style='font-size:900px'>Giant</h2><p style='font-size:400px'>words do not fit here</p></section>",
    ),
    "nowrap": (
        "html",
        "<section><h2>No wrap</h2><div style='display:flex;white-space:nowrap'>"
        + "<div style='min-width:600px'>cell words</div>" * 6
        + "</div></section>",
    ),
    "negative": (
        "html",
        "<section><h2>Neg</h2><p style='margin-top:-80px'>pulled up</p><p style='text-indent:-9999px'>indented</p></section>",
    ),
    "fixed": (
        "html",
        "<div style='position:fixed;top:0'>bar</div><section><h2>A</h2><p>one</p></section><section><h2>B</h2><p>two</p></section>",
    ),
    "bad-css": (
        "html",
        "<style>}}}{{{ .slide{width:calc(1px*);height:-5px;transform:rotate(NaN)} @media{</style><section><h2>Css</h2><p>still here</p></section>",
    ),
    "bad-links": (
        "html",
        "<section><h2>L</h2><a href='http://[bad'>one</a> <a href='https://x y/<>\"'>two</a> <a href='javascript:x()'>three</a> <a href='#nope'>four</a></section>",
    ),
    "bad-spans": (
        "html",
        "<table><tr><td rowspan='900' colspan='900'>a</td></tr><tr><td>b</td></tr><tr></tr></table><p>tail words</p>",
    ),
    "tall-cell": (
        "html",
        "<section><h2>Cell</h2><table><tr><td>"
        + "many words in one cell " * 300
        + "</td><td>b</td></tr></table></section>",
    ),
    "bad-images": (
        "html",
        "<section><h2>Img</h2><img src='nope.png' alt='alt words'><img src='data:image/png;base64,AAAA' alt='broken'><img><p>after</p></section>",
    ),
    "zero": (
        "html",
        "<section style='width:0;height:0;font-size:0;overflow:hidden'><h2>Zero</h2><p>size words</p></section>",
    ),
    "many-columns": (
        "html",
        "<section><h2>Cols</h2><div style='display:grid;grid-template-columns:repeat(30,1fr)'>"
        + "<p>word</p>" * 60
        + "</div></section>",
    ),
    "floats": (
        "html",
        "<section><h2>Float</h2><p><span style='float:right;width:600px'>floated aside words</span>"
        + "running text " * 60
        + "</p></section>",
    ),
    "nested-tables": (
        "html",
        "<section><h2>Tables</h2>" + "<table><tr><td>level" * 12 + "</td></tr></table>" * 12 + "</section>",
    ),
    "nested-flex-4": (
        "html",
        "<section><h2>Flex</h2>" + "<div style='display:flex;gap:9px'><p>left</p>" * 4 + "core" + "</div>" * 4,
    ),
    "nested-flex": (
        "html",
        "<section><h2>Flex</h2>" + "<div style='display:flex;gap:9px'><p>left</p>" * 25 + "core" + "</div>" * 25,
    ),
    "overlapping-cards": (
        "html",
        "<section style='position:relative;height:720px'><h2>Cards</h2>"
        + "".join(
            f"<div style='position:absolute;left:{60 + 90 * n}px;top:{90 + 40 * n}px;width:400px;background:#eee'><h3>Card {n}</h3>"
            f"<p>Words of the card {n} that lie on others</p></div>"
            for n in range(7)
        )
        + "</section>",
    ),
    "title-of-everything": (
        "html",
        "<section><h1>" + "Title that never ends " * 120 + "</h1><p>body</p></section>",
    ),
    "titles-only": ("markdown", "\n\n".join(f"## Title {n}" for n in range(80))),
    "600-slides": ("markdown", "\n\n---\n\n".join(f"Slide {n}" for n in range(600))),
    "long-cells": (
        "markdown",
        "## Cells\n\n| a | b |\n|---|---|\n" + "\n".join(f"| {'word ' * 150} | {n} |" for n in range(12)),
    ),
    "wide-and-long": (
        "markdown",
        "## Both\n\n|"
        + "|".join(f"c{n}" for n in range(25))
        + "|\n|"
        + "---|" * 25
        + "\n"
        + "\n".join("|" + "|".join(str(n * m) for m in range(25)) + "|" for n in range(90)),
    ),
    "spans-across-cuts": (
        "html",
        "<section><h2>Spans</h2><table><tr><th>g</th><th>v</th></tr>"
        + "".join(
            f"<tr><td rowspan='7'>group {n}</td><td>v</td></tr>" + "<tr><td>w</td></tr>" * 6 for n in range(14)
        )
        + "</table></section>",
    ),
    "hundred-pictures": (
        "html",
        f"<section><h2>Pictures</h2>{f'<img src={WIDE} alt=wide width=200>' * 100}</section>",
    ),
    "tall-pictures": (
        "html",
        f"<section><h2>Tall</h2>{f'<img src={TALL} alt=tall style=height:3000px>' * 3}<p>end</p></section>",
    ),
    "picture-in-text": ("markdown", f"## In text\n\n{f'words ![p]({WIDE}) and more words ' * 30}"),
    "long-code-line": ("markdown", f"## Code\n\n```\n{'x = ' + '1 + ' * 900}1\n```\n"),
    "code-and-list": ("markdown", "## C\n\n" + "- item\n\n  ```\n  code line\n  ```\n\n" * 30),
    "formulas": (
        "markdown",
        "## F\n\n" + "Words $\\frac{\\sqrt{x}}{y^{2^{3}}}$ between $\\sum_{i=0}^n x_i$ them. " * 40,
    ),
    "charts": (
        "markdown",
        "## Charts\n\n" + "```chart\ntype: bar\nlabels: [a, b]\nseries: [{name: s, data: [1, 2]}]\n```\n\n" * 7,
    ),
    "bad-charts": (
        "html",
        "<section><h2>Bad</h2><table data-chart='nonsense'><tr><td>x</td></tr></table><pre><code class='language-chart'>type: {{</code></pre><p>after</p></section>",
    ),
    "rtl-wide": ("html", "<section dir='rtl'><h2>عنوان</h2><p>" + "كلمة " * 900 + "</p></section>"),
    "cjk-wall": ("markdown", f"## 长文\n\n{'汉字没有空格所以很难断行' * 220}\n"),
    "emoji-wall": ("markdown", f"## 🎉\n\n{'👩‍🚀🚀✅' * 300}\n"),
    "notes-wall": ("markdown", f"## N\n\nseen\n\n::: notes\n{'spoken words ' * 4000}\n:::\n"),
    "rotated": (
        "html",
        "<section><h2 style='transform:rotate(90deg)'>Turned</h2><p style='writing-mode:vertical-rl'>down the side</p><p style='zoom:4'>zoomed</p></section>",
    ),
    "negative-grid": (
        "html",
        "<section><h2>Grid</h2><div style='display:grid;grid-template-columns:-1fr 99999px;gap:-20px'><p>one two</p><p>three four</p></div></section>",
    ),
    "huge-padding": (
        "html",
        "<section style='padding:5000px'><h2 style='padding:900px'>Pad</h2><p>inside the padding</p></section>",
    ),
    "footnote-wall": (
        "markdown",
        "## Notes\n\n"
        + " ".join(f"w{n}[^{n}]" for n in range(40))
        + "\n\n"
        + "\n\n".join(f"[^{n}]: note {n} words" for n in range(40)),
    ),
    "callout-wall": ("markdown", "## Care\n\n" + "> [!WARNING]\n> " + "careful words " * 700),
    "marp-nonsense": (
        "markdown",
        "---\nmarp: true\nheader: [1, {a: b}]\nstyle: '}}}{'\n---\n\n<!-- _class: [x, {y: 1}] -->\n<!-- paginate: maybe -->\n# M\n\n![bg left:900%](nope.png)\n\nwords\n",
    ),
}

GENERATED_HTML, GENERATED_MARKDOWN, HOSTILE_COUNT = 70, 40, 50


def decks() -> dict[str, tuple[str, str]]:
    """200 decks by name as (source format, source): 50 of them, named ``hostile-…``, are hostile."""
    found = {f"good-{name}": deck for name, deck in GOOD.items()}
    found |= {f"html-{seed:02}": ("html", html_deck(seed)) for seed in range(GENERATED_HTML)}
    found |= {f"markdown-{seed:02}": ("markdown", markdown_deck(seed)) for seed in range(GENERATED_MARKDOWN)}
    return found | {f"hostile-{name}": deck for name, deck in HOSTILE.items()}
