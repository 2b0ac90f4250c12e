# ruff: noqa: E501 - attacks are data, a line each
"""Style sheets that make a layout engine work without end, or with numbers that are none."""

from attack import ALL, Attack

VARIABLES = "--a0: x x;" + "".join(f"--a{n}: {f'var(--a{n - 1}) ' * 10};" for n in range(1, 30))
"""Each variable is ten times the one before: the last would have 10^29 words."""
CYCLE = "".join(f"--c{n}: var(--c{(n + 1) % 500}) 1px;" for n in range(500))
SIZES = ("1e9px", "1000000px", "1e308px", "-1e308px", "1e999px", "0.0000001px", "calc(1px / 0)", "calc(0px / 0)", "calc(1e308px * 1e308)", "999999999999999999999999px", "1000000%", "-1000000em", "1e30rem", "1e9vw")  # fmt: skip
PROPERTIES = ("width", "height", "min-width", "max-height", "font-size", "line-height", "padding", "margin", "margin-left", "border", "letter-spacing", "word-spacing", "text-indent", "top", "border-radius", "column-gap", "border-spacing", "outline", "tab-size", "vertical-align")  # fmt: skip
TEXT = "<h1>Head</h1><p>One two three four.</p><ul><li>a<li>b</ul><table><tr><td>c<td>d</table>"


def styled(css: str, body: str = TEXT) -> str:
    return f"<style>{css}</style>{body}"


def all_sizes(properties: tuple[str, ...]) -> str:
    rules = [
        f".s{n}{p} {{ {p}: {size}{' solid red' if p in ('border', 'outline') else ''} }}"
        for p in properties
        for n, size in enumerate(SIZES)
    ]
    boxes = "".join(f"<div class='s{n}{p}'>x</div>" for p in properties for n in range(len(SIZES)))
    return styled(" ".join(rules), boxes)


SHEETS = {
    "variables-exponential": f":root {{ {VARIABLES} }} p {{ font-family: var(--a29); color: var(--a29) }}",
    "variables-in-cycles": f":root {{ {CYCLE} --self: var(--self); --x: var(--y, var(--x)); --y: var(--x) }} p {{ width: var(--c0); color: var(--self, var(--x)) }}",
    "variables-deep-fallbacks": f"p {{ color: {'var(--x, ' * 3_000}red{')' * 3_000} }}",
    "calc-nested": f"p {{ width: {'calc(1px + ' * 2_000}1px{')' * 2_000} }}",
    "calc-long": f"p {{ width: calc({'1px + ' * 20_000}1px) }}",
    "functions-nested": f"p {{ background: {'linear-gradient(' * 2_000}; width: {'min(' * 3_000}1px }} ",
    "brackets-nested": f"p {{ {'(' * 20_000} }} {'[' * 20_000} {'{' * 20_000}",
    "blocks-nested": "p { " * 5_000,
    "at-rules-nested": "@media print { " * 2_000 + "p { color: red }",
    "selectors-not": f"{':not(' * 400}p{')' * 400} {{ color: red }}",
    "selectors-is-exponential": f"{'div :is(p, :is(h1, ' * 300}p{'))' * 300} {{ color: red }}",
    "selectors-has": "".join(f":has(> * + * ~ p:nth-child({n}n+1)) * ~ * :has(p) {{ color: red }}" for n in range(150)),
    "selectors-nth": "".join(f"*:nth-child({n}n+{n}):nth-last-of-type(2n+1):nth-child(999999999n-999999999) {{ color: red }}" for n in range(400)),
    "selectors-long-chain": " ".join(["*"] * 3_000) + " { color: red } " + " > ".join(["div"] * 3_000) + " { color: red }",
    "selectors-siblings": "* ~ " * 60 + "* { color: red }",
    "selectors-list": ", ".join(f".c{n}" for n in range(20_000)) + " { color: red }",
    "nesting": "p { " + "& & { " * 20 + "color: red" + "}" * 21,
    "nesting-exponential": "p, h1 { " + "&, & { " * 25 + "color: red" + "}" * 26,
    "declarations-many": "p { " + "color: red; " * 50_000 + "}",
    "rules-many": "".join(f".r{n} {{ color: red }}" for n in range(20_000)),
    "invalid-many": "".join(f"p {{ x{n}: url(( ; }} " for n in range(5_000)),
    "strings-open": "p { content: '" + "x" * 100_000,
    "comment-open": "/*" + "*" * 100_000,
    "escapes": "p { content: '" + "\\10ffff \\0 \\d800 \\110000 " * 3_000 + "' }",
    "numbers-long": "p { width: " + "9" * 100_000 + "px; opacity: 0." + "1" * 100_000 + "; z-index: " + "9" * 5_000 + " }",
    "unicode-range": "@font-face { font-family: x; src: local(x); unicode-range: " + ", ".join("U+0-10FFFF" for _ in range(2_000)) + " }",
    "font-families": "p { font-family: " + ", ".join(f"f{n}" for n in range(3_000)) + " }",
    "font-features": "p { font-feature-settings: " + ", ".join(f"'a{n:03}' 99999999" for n in range(999)) + "; font-variation-settings: 'wght' 1e999; font-weight: 99999 }",
    "counters-huge": "p { counter-increment: c 2147483647; counter-reset: d 99999999999999999999 } p::before { content: counter(c, upper-roman) counter(d, hebrew) counters(c, '" + "." * 20_000 + "') }",
    "counter-style-loop": "@counter-style a { system: extends b } @counter-style b { system: extends a } ol, ul { list-style: a } @counter-style c { system: symbolic; symbols: 'x'; } ul { counter-reset: list-item 30000; list-style: c }",
    "counter-pad": "@counter-style p { system: numeric; symbols: '0' '1'; pad: 100000000 'x'; } ul { list-style: p }",
    "content-long": "p::before { content: '" + "word " * 15_000 + "' }",
    "content-leaders": "p::after { content: leader('.') leader(dotted) leader('') target-counter('#x', page) target-text('#x') } h1::before { content: leader('" + "x" * 5_000 + "') }",
    "quotes": "p { quotes: " + "'a' 'b' " * 3_000 + " } p::before { content: " + "open-quote " * 3_000 + " }",
    "string-set": "p { string-set: s content(text) content(before) attr(x), s content(); content: string(s) element(x); position: running(x) } @page { @top-center { content: element(x) string(s, last) } }",
    "running-loop": "body { position: running(r) } @page { @top-center { content: element(r) } @bottom-left { content: element(r) } }",
    "footnote-float": "p, li, td { float: footnote } ::footnote-call { content: counter(footnote) } @page { @footnote { max-height: 0; border: 1px solid; float: footnote } }",
    "page-size-huge": "@page { size: 1e9px 1e9px; margin: 1e9px }",
    "page-size-none": "@page { size: 0 0; margin: 5000px }",
    "page-size-tiny": "@page { size: 1px 1px; margin: 0 } p, h1, li, td { font-size: 40px }",
    "page-margins-negative": "@page { margin: -10000px } body { margin: -99999px }",
    "page-names": "".join(f".n{n} {{ page: p{n} }} @page p{n}:nth({n}n+1) {{ size: {n + 10}px }}" for n in range(500)) + "p { page: p1 } li { page: p2 } td { page: p3 }",
    "margin-boxes": "@page { " + " ".join(f"@{edge}-{side} {{ content: '{'w ' * 500}'; width: 1e9px; height: 999999px }}" for edge in ("top", "bottom") for side in ("left", "center", "right")) + " }",
    "breaks-forced": "* { break-before: page; break-after: page; break-inside: avoid; page-break-before: always }",
    "breaks-avoided": "* { break-before: avoid; break-after: avoid; break-inside: avoid; orphans: 999999; widows: 999999 }",
    "breaks-left-right": "p, li { break-before: left; break-after: right } td { break-before: recto; break-after: verso }",
    "floats": "* { float: left; clear: both; width: 100%; margin: -50% }",
    "floats-thousand": "p, li, td { float: right; width: 99999px; height: 0; margin-left: -99999px }",
    "positions": "* { position: absolute; top: 1e9px; left: -1e9px; right: 0; bottom: 0; z-index: 2147483648 }",
    "positions-fixed": "* { position: fixed; inset: -1000000px }",
    "positions-relative": "* { position: relative; top: 100%; left: calc(100% * 1e30) }",
    "display-none": "html, head, body, style { display: none }",
    "display-odd": "* { display: table-cell } p { display: inline-table } li { display: table-column } td { display: flex } html { display: contents } body { display: list-item inline flow-root }",
    "display-table-all": "head, style, title, * { display: table }",
    "display-block-head": "head, style, script, title { display: block !important } style { columns: 5 }",
    "columns-many": "body { columns: 100000; column-gap: 0 }",
    "columns-thin": "body { columns: 0.001px; column-fill: balance; height: 10px } p { column-span: all }",
    "columns-with-breaks": "body { columns: 3; column-fill: auto } p { break-before: column; break-inside: avoid; height: 99999px }",
    "grid-repeat": "body { display: grid; grid-template-columns: repeat(1000000, 1fr); grid-template-rows: repeat(1000000, 1px) }",
    "grid-nested-repeat": "body { display: grid; grid-template-columns: repeat(999, 1fr 1fr [a] minmax(0, 1e9px)); grid-auto-rows: 1e9px; gap: 1e9px }",
    "grid-lines": "body { display: grid } p { grid-column: 100000000 / span 100000000; grid-row: -99999999 } h1 { grid-area: 999999 / 999999 / 9999999 / 9999999 }",
    "grid-auto-fill": "body { display: grid; grid-template-columns: repeat(auto-fill, 0.0001px) }",
    "grid-areas": "body { display: grid; grid-template-areas: '" + "a " * 20_000 + "' } p { grid-area: a }",
    "flex-factors": "body { display: flex; flex-wrap: wrap-reverse } * { flex: 1e38 1e38 1e38px; order: -2147483648; gap: -1px }",
    "flex-all": "* { display: flex; flex-direction: column-reverse; flex-wrap: wrap }",
    "inline-flex-all": "* { display: inline-flex; width: max-content; height: min-content }",
    "transforms": "p { transform: matrix(nan, 1e999, 0, 0, inf, 1) } h1 { transform: scale(0) rotate(1e308deg) skew(90deg) translate(1e308px) } li { transform: " + "rotate(1deg) " * 5_000 + "}",
    "gradients": "p { background: linear-gradient(" + ", ".join("red" for _ in range(5_000)) + ") } h1 { background: repeating-linear-gradient(red 0, blue 0.000001px) } li { background: repeating-radial-gradient(circle, red 0 0.00001px, blue 0.00002px) } td { background: conic-gradient(red, blue) }",
    "gradient-sizes": "p { background: linear-gradient(red, blue) 0 0 / 0.001px 0.001px repeat } h1 { background: radial-gradient(circle at 1e9px, red 1e308px, blue -1e308px) } td { background: linear-gradient(1e400deg, red calc(1% / 0), blue nan) }",
    "shadows-and-filters": "* { text-shadow: " + ", ".join("1px 1px 999px red" for _ in range(500)) + "; box-shadow: 0 0 1e9px 1e9px red; filter: blur(1e9px); opacity: 1e-99; mix-blend-mode: x }",
    "decorations": "p { text-decoration: underline wavy red 1e9px; text-underline-offset: -1e9px; border: 1e9px dotted; outline: 999999px dashed red; border-radius: 1e9px }",
    "dotted-borders": "p { border: 0.001px dotted red; border-image: linear-gradient(red, blue) 99999 / 1e9px / 1e9px round }",
    "tables": "table { border-spacing: 1e9px; table-layout: fixed; width: 0 } td { width: 1e9px; height: 1e9px; rowspan: 9 } td::before { display: table-row; content: 'x' } table { border-collapse: collapse } td { border: 999999px solid }",
    "text-options": "p { word-break: break-all; overflow-wrap: anywhere; hyphens: auto; hyphenate-limit-chars: 0 0 0; hyphenate-character: '" + "-" * 20_000 + "'; text-align-all: justify-all; white-space: pre; tab-size: 2147483647; text-indent: 1e9px }",
    "bookmarks": "* { bookmark-level: 1000000; bookmark-label: content(text) attr(id) '" + "x" * 2_000 + "'; anchor: attr(id); link: attr(href); lang: attr(x) }",
    "bookmark-levels": "p { bookmark-level: 2147483647 } li { bookmark-level: -5 } td { bookmark-level: 1; bookmark-state: closed }",
    "images": "p { image-resolution: 0.0000001dppx; image-rendering: x; object-fit: x; object-position: 1e999px } p::before { content: linear-gradient(red, blue); width: 1e9px; height: 1e9px; display: block }",
    "environment": "p { width: env(x); height: attr(width px, 1e9px); color: color-mix(in srgb, red 1e999%, blue); background: color(from red srgb r g b); color: lab(1e999 nan inf); color: hsl(1e999deg 1e9% -5%) }",
    "important-everywhere": "* { all: unset !important; font-size: 1e9px !important; display: block !important }",
    "line-clamp": "p { max-lines: 0; line-clamp: 0 'x'; block-ellipsis: '" + "x" * 10_000 + "'; continue: discard; -webkit-line-clamp: 99999999999; overflow: hidden }",
    "box-decoration": "p { box-decoration-break: clone; padding: 5000px; margin: -4999px; height: 1px; overflow: visible }",
    "padding-over-page": "* { padding: 90vh; box-sizing: border-box; min-height: 200vh }",
    "heights-over-page": "p { height: 500000px } li { min-height: 300000px; break-inside: avoid }",
    "lines-over-page": "p { line-height: 200000px } li { font-size: 9000px } td { vertical-align: 99999px }",
}  # fmt: skip
"""One style sheet each, over a page of text."""
BOTH = frozenset({"variables-exponential", "grid-repeat", "flex-all", "positions", "display-none", "important-everywhere"})  # fmt: skip
STYLES = (
    *(Attack(f"css-{name}", styled(css), outputs=ALL if name in BOTH else ("pdf",)) for name, css in SHEETS.items()),
    Attack("css-sizes-of-boxes", all_sizes(PROPERTIES[:4]), outputs=("pdf", "png")),
    Attack("css-sizes-of-text", all_sizes(PROPERTIES[4:8]), outputs=("pdf", "pptx")),
    Attack("css-sizes-of-edges", all_sizes(PROPERTIES[8:14]), outputs=("pdf",)),
    Attack("css-sizes-of-the-rest", all_sizes(PROPERTIES[14:]), outputs=("pdf",)),
    Attack("css-of-two-megabytes", lambda: styled("p { color: red }\n" * 130_000), outputs=("pdf",), warns=("dropped_css",)),
    Attack("css-in-ten-thousand-attributes", "".join(f'<p style="color:#{n:06x};width:calc({n}px + 1%);background:linear-gradient(red,blue)">p' for n in range(400)), outputs=("pdf", "docx")),
    Attack("css-in-a-thousand-style-elements", "".join(f"<style>.a{n} {{ color: red }}</style>" for n in range(1_000)) + TEXT, outputs=("pdf", "docx")),
    Attack("css-has-over-many-elements", styled(":has(.no ~ .no) p:has(+ p) { color: red } * * * * * * * .no { color: red }", "<div><p>x</div>" * 500), outputs=("pdf",)),
    Attack("css-nth-over-many-elements", styled("p:nth-child(2n+1 of .a):nth-last-child(3n) { color: red } p:nth-last-of-type(7n) ~ p { color: blue }", "<p class=a>x" * 800), outputs=("pdf",)),
    Attack("css-options-of-the-request", "<h1>Options</h1>", outputs=("png",), ends="invalid_option", request={"options": {"selector": "p:has(" * 400, "width": 5000}}),
    Attack("png-of-a-size-beyond-bounds", "<h1>Large</h1><div style='height:40000px;width:7000px;background:red'></div>", outputs=("png",), ends="image_too_large", request={"options": {"width": 8000, "device_scale_factor": 4}}),
    Attack("png-options-that-are-none", "<h1>None</h1>", outputs=("png",), ends="invalid_option", request={"options": {"width": float("nan")}}),
    Attack("pdf-page-size-that-is-none", "# None", "markdown", ("pdf",), ends="invalid_page_size", request={"options": {"page_size": "0 0 0; } @import 'x'; @page {"}}),
    Attack("pdf-options-of-odd-types", "# Odd", "markdown", ("pdf",), request={"options": {"margins": {"top": "1e9mm", "left": [], "right": {"a": 1}, "bottom": "-5mm"}, "header": {"left": 7, "center": ["x"]}, "footer": 9, "toc": "yes", "attachments": "x", "landscape": "no"}}),
)  # fmt: skip
