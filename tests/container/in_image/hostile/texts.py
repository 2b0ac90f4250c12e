# ruff: noqa: E501, Q003, RUF001 - attacks are data, a line each
"""Texts that would be markup, code, a field or a formula in the file; formulas, diagrams and data that explode."""

import json
import math

from attack import ALL, OFFICE, Attack

XML = '</w:t></w:r><evil/>&amp;&#0;&#x1;]]><![CDATA[x]]><!--x--><?x?>&lt;"\'<a:hlinkClick r:id="rId1"/>'
FIELD_CODES = (
    '{ DDEAUTO c:\\\\windows\\\\system32\\\\cmd.exe "/k calc" }', "{INCLUDETEXT \"file:///etc/passwd\"}", "{ INCLUDEPICTURE \\\\server\\x.png \\d }",
    "=cmd|' /C calc'!A0", "+cmd|'/c calc'!A1", "@SUM(1+9)*cmd|'/c calc'!A0", "=HYPERLINK(\"http://x.example\",\"x\")", "MACROBUTTON x", "\x13 HYPERLINK \"http://x.example\" \x14x\x15",
    "=WEBSERVICE(\"http://x.example\")", "{\\rtf1{\\object\\objlink x}}", "\\o\\x13QUOTE", "=1+1",
)  # fmt: skip
TEMPLATES = "{title.__class__} {0} {page!r:>999999999} {author.__init__.__globals__} {{7*7}} ${7*7} #{7*7} <%= 7*7 %> {% include '/etc/passwd' %} %(x)s %s %n {} {page} {pages"
ODD_LETTERS = "a\x00b\x01c\x08d\x0be\x0cf\x1bg\x7fh\x85i\ud800j\udfffk\ufffel\uffffm\ufdd0n\u202eevil\u2066x\u2069\u200b\u2028\u2029\ufeff\u0301e\u0301\U000e0041\U0010ffff\U0001f468\u200d\U0001f469\u200d\U0001f467\r\n\t end"  # fmt: skip
TEX = (
    "\\newcommand{\\a}{\\a\\a}\\a", "\\def\\x{\\x\\x}\\x", "\\newcommand{\\a}[1]{#1#1}" + "\\a{" * 40 + "x" + "}" * 40, "\\input{/etc/passwd}", "\\include{../../etc/passwd}",
    "\\immediate\\write18{id}", "\\openin5=/etc/passwd", "\\includegraphics{/etc/passwd}", "\\href{javascript:alert(1)}{x}", "\\url{file:///etc/passwd}", "\\catcode`\\%=0", "\\loop\\repeat", "\\csname x\\endcsname",
    "\\frac{" * 60 + "1" + "}{2}" * 60, "\\sqrt{" * 60 + "x" + "}" * 60, "x^{" * 60 + "x" + "}" * 60, "{" * 600, "}" * 600, "\\left(" * 80 + "x" + "\\right)" * 80, "\\left(" * 300, "^" * 500, "_" * 500, "&" * 500, "\\\\" * 500,
    "\\begin{matrix}" + "&".join("x" * 60) + "\\\\" * 20 + "\\end{matrix}", "\\begin{matrix}" * 30 + "x" + "\\end{matrix}" * 30, "\\begin{x}" * 50, "\\rule{99999999cm}{99999999cm}", "\\hspace{1e9cm}x", "\\kern 99999999pt x", "\\Huge" * 200 + "x",
    "\\text{" + "w" * 1_500 + "}", "\\unicode{x110000}", "\\char\"110000", "\\color{url(file:///etc/passwd)}x", "\\style{background:url(file:///etc/passwd)}{x}", "\\class{\"><script>}{x}", "<script>alert(1)</script>", "</m:t></m:r>", "\\", "%", "#", "\\begin{array}{" + "c" * 800 + "}x\\end{array}",
    "\\overbrace{" * 40 + "x" + "}" * 40, "\\binom{" * 40 + "x" + "}{y}" * 40, "x" * 1_500,
)  # fmt: skip
MATHML = (
    '<math><maction actiontype="statusline#javascript:x()">x</maction></math>', '<math href="javascript:x()"><mi xlink:href="javascript:x()">x</mi></math>', '<math><mglyph src="file:///etc/passwd"/></math>',
    '<math><annotation-xml encoding="text/html"><img src="file:///tmp/elsewhere/canary.png"></annotation-xml></math>', "<math>" + "<mrow>" * 150 + "<mi>x</mi>", "<math>" + "<mfrac><mi>x</mi>" * 60,
    "<math><mspace width='1e9em' height='1e9em'/></math>", "<math><mtable>" + "<mtr><mtd>x</mtd></mtr>" * 200 + "</mtable></math>", "<math><semantics><annotation encoding='application/x-tex'>\\input{/etc/passwd}</annotation></semantics></math>", "<math></math>", "<math><mi></math>",
)  # fmt: skip
DIAGRAMS = {
    "many-nodes": "flowchart TD\n" + "\n".join(f"a{n} --> a{n + 1}" for n in range(250)),
    "all-to-all": "flowchart LR\n" + "\n".join(f"a{n} --> a{m}" for n in range(22) for m in range(22) if n < m),
    "ampersands": "flowchart TD\n" + " & ".join(f"a{n}" for n in range(60)) + " --> " + " & ".join(f"b{n}" for n in range(60)),
    "subgraphs": "flowchart TD\n" + "\n".join(f"subgraph s{n}" for n in range(150)) + "\na-->b\n" + "end\n" * 150,
    "long-label": "flowchart TD\nA[\"" + "word " * 2_000 + "\"] --> B",
    "sequence": "sequenceDiagram\n" + "\n".join(f"A->>B: m{n}" for n in range(400)) + "\n" + "loop x\n" * 60 + "A->>B: y\n" + "end\n" * 60,
    "gantt-far": "gantt\ndateFormat YYYY-MM-DD\nsection a\nx :a, 0001-01-01, 9999-12-31\ny :b, after a, 999999999d\naxisFormat %s\ntickInterval 1millisecond",
    "pie-numbers": "pie\n\"a\" : 1e999\n\"b\" : -5\n\"c\" : nan\n\"d\" : 0",
    "xychart-numbers": "xychart-beta\nx-axis [a, b]\ny-axis 0 --> 1e999\nbar [1e308, -1e308]\nline [nan, inf]",
    "mindmap-deep": "mindmap\n" + "\n".join("  " * n + f"n{n}" for n in range(1, 150)),
    "state-loop": "stateDiagram-v2\n" + "state x {\n" * 60 + "a --> a\n" + "}\n" * 60,
    "class-cycle": "classDiagram\n" + "\n".join(f"A{n} <|-- A{(n + 1) % 60}" for n in range(60)),
    "init-bomb": "%%{init: " + "{\"a\": " * 300 + "1" + "}" * 300 + "}%%\nflowchart TD\na-->b",
    "init-huge-font": "%%{init: {\"themeVariables\": {\"fontSize\": \"99999999px\"}, \"flowchart\": {\"nodeSpacing\": 1e9, \"rankSpacing\": 1e300, \"curve\": \"x\"}}}%%\nflowchart TD\na-->b",
    "front-matter": "---\nconfig:\n  theme: x\n  layout: elk\n" + "  a: &a [1]\n" * 20 + "---\nflowchart TD\na-->b",
    "brackets": "flowchart TD\n" + "a[" * 2_000, "arrows": "flowchart TD\na" + "-" * 4_000 + ">b", "nothing": "flowchart TD", "noise": "erDiagram\n" + "\x01\ud800}o--||{ " * 100,
    "script": "flowchart TD\na[\"<script>x()</script><img src=x onerror=y()>\"] --> b[\"</text></svg><evil/>\"]",
    "git": "gitGraph\n" + "\n".join(f"branch b{n}\ncommit" for n in range(120)), "timeline": "timeline\n" + "\n".join(f"{n} : e" for n in range(200)), "quadrant": "quadrantChart\n" + "\n".join(f"p{n}: [1e9, -5]" for n in range(100)),
    "sankey": "sankey-beta\n" + "\n".join(f"a{n},a{(n + 1) % 20},1e300" for n in range(20)), "block": "block-beta\ncolumns 100000\n" + "a " * 200, "packet": "packet-beta\n0-99999: \"x\"\n", "journey": "journey\n" + "a: 99999999: b\n" * 100, "kanban": "kanban\n" + "  a\n    b\n" * 100,
}  # fmt: skip
CODE = {
    "python": "'''" * 3_000, "python3": "(" * 20_000, "html": "<" * 20_000, "perl": "$x =~ s{" * 2_000, "ruby": "<<A " * 3_000, "js": "/" * 15_000, "ts": "`${" * 6_000, "css": "a{" * 8_000, "cpp": "#if " * 6_000 + "R\"x(" * 500,
    "bash": "$(" * 8_000, "sql": "'" * 15_001, "json": "[" * 15_000, "yaml": "- " * 8_000, "xml": "<a " * 8_000, "latex": "\\begin{" * 4_000, "markdown": "[" * 12_000, "lisp": "(" * 15_000, "haskell": "{-" * 6_000, "swift": "\\(" * 6_000, "kotlin": "\"${" * 4_000,
    "scala": "s\"" * 5_000, "php": "<?php " * 3_000 + "<<<A\n" * 500, "java": "@" * 15_000, "c": "x(" * 8_000, "go": "`" * 9_001, "rust": "r#\"" * 4_000, "diff": "@@ " * 6_000, "ini": "[" * 12_000, "http": "GET " * 4_000, "console": ">>> " * 4_000,
    "matlab": "'" * 9_001, "r": "%" * 9_001, "dart": "'${" * 4_000, "lua": "--[[" * 4_000, "tcl": "[" * 9_000, "make": "$(" * 6_000, "smarty": "{" * 9_000, "erlang": "$" * 9_000, "odin": "\\" * 9_000, "sml": "(*" * 5_000, "adl": "a=" * 4_000, "archetype": "|" * 5_000, "objc": "@\"" * 4_000, "devicetree": "/" * 9_000, "mosel": "'" * 9_000,
    "../../etc/passwd": "x", "a" * 3_000: "x", "python\" onload=\"x": "x", "no-such": "x" * 10_000,
}  # fmt: skip
CHARTS = (
    {"type": "bar", "categories": ["a"] * 30_000, "series": [{"name": "s", "values": [1] * 30_000}]}, {"type": "pie", "categories": ["a", "b"], "series": [{"name": XML, "values": [0, 0]}]},
    {"type": "line", "categories": ["=cmd|' /C calc'!A0", "<x>", "\u202e"], "series": [{"name": "=1+1", "values": [1e308, -1e308, None]}]}, {"type": "x", "series": 5}, {"type": "bar", "categories": [{"a": 1}, None], "series": [{"name": ["x"], "values": ["x", {}]}]},
    {"type": "scatter", "categories": [1e308, 2], "series": [{"name": "s", "values": [5e-324, 1e-300]}] * 300}, {"type": "bar", "categories": [], "series": []}, {"type": "bar", "title": "t" * 50_000, "categories": ["c" * 50_000], "series": [{"name": "n" * 50_000, "values": [1]}]},
    {"type": "area", "data": {"labels": ["a"], "datasets": [{"label": "x", "data": [math.nan, math.inf]}]}},
)  # fmt: skip
YAML = {
    "aliases": "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)) + "title: *i\nkeywords: *i\n",
    "python-tags": "title: !!python/object/apply:os.system ['id > /tmp/elsewhere/x']\nauthor: !!python/name:os.system\nx: !!python/module:subprocess\n", "brackets": "title: " + "[" * 9_000 + "\n", "closed": "title: " + "[" * 9_000 + "]" * 9_000 + "\n", "itself": "title: &t [*t]\nkeywords: &k {a: *k}\n", "deep": "title: " + "[" * 900 + "\n", "merge": "a: &a {x: 1}\n" + "b: {<<: [" + ", ".join(["*a"] * 3_000) + "]}\n",
    "odd-types": "title: 2026-01-01\nauthor: {a: b}\nkeywords: {x: y}\nlang: [en]\ndate: 0001-01-01\ntheme: [dark]\nmarp: {a: 1}\nsize: 9e999\npaginate: x\nsubject: !!binary aGVsbG8=\ntoc: 1\n", "sexagesimal": "title: " + "1:" * 5_000 + "1\nx: 0b" + "1" * 5_000 + "\n", "keys": "".join(f"k{n}: v\n" for n in range(1_500)), "complex-keys": "? [a, {b: c}]\n: x\n? {a: 1}\n: y\n1: z\nnull: n\n.nan: m\n",
    "markup": "title: '</title><script>x()</script><w:t>'\nauthor: '\"><evil/>'\nkeywords: ['</x>', '&#0;']\nlang: 'en\"><script>'\ndate: '{title.__class__}'\n", "regex": "title: '" + " " * 15_000 + "x'\n", "large": "title: " + "x" * 19_000 + "\n", "digits": "title: " + "9" * 6_000 + "\n", "timestamps": "title: 9999-12-31T23:59:60+99:99\ndate: 2026-13-45\n",
}  # fmt: skip
METADATA = {
    "title": XML + ODD_LETTERS,
    "author": XML,
    "subject": "s" * 100_000,
    "keywords": [XML, "\x00", "k" * 1_000] * 30,
    "language": 'en"><x>',
}

TEXTS = (
    Attack("markup-of-office-in-texts", f"# {XML}\n\n{XML}\n\n| {XML} | b |\n|---|---|\n| {XML} | c |\n\n- {XML}\n\n```\n{XML}\n```\n\n![{XML}](nowhere)\n\n[{XML}](http://x.example/?{XML.replace(' ', '').replace(')', '')})\n\n[^a]\n\n[^a]: {XML}", "markdown", ALL, request={"metadata": METADATA}),
    Attack("markup-of-office-in-attributes", "".join(f"<{tag} {key}='{XML.replace(chr(39), '&apos;')}'>x</{tag}>" for tag, key in (("a", "href"), ("a", "title"), ("img", "alt"), ("td", "style"), ("p", "class"), ("p", "id"), ("p", "lang"), ("p", "dir"), ("ol", "type"), ("table", "data-chart"), ("pre", "class"), ("div", "data-tex"), ("span", "data-sid"), ("abbr", "title"), ("aside", "class"), ("figure", "data-chart"), ("font", "color"), ("font", "face"))), outputs=ALL),
    Attack("field-codes-and-formulas", "\n\n".join(FIELD_CODES) + "\n\n| a |\n|---|\n" + "\n".join(f"| {code} |" for code in FIELD_CODES), "markdown", ALL, request={"metadata": {"title": FIELD_CODES[0], "author": FIELD_CODES[3]}}),
    Attack("marks-of-ours-forged", '<a class="pb-cite" data-sid="1" href="javascript:x()">1</a><img data-pb="svg" src="file:///tmp/elsewhere/canary.png"><img data-pb="svg" src="data:image/svg+xml;base64,%%%"><img data-pb="1" src="data:image/svg+xml,<svg xmlns=\'http://www.w3.org/2000/svg\'><image href=\'file:///tmp/elsewhere/canary.png\'/></svg>"><span class="pb-math" data-tex="x" data-mathml="<!DOCTYPE x [<!ENTITY y SYSTEM \'file:///etc/passwd\'>]><math>&y;</math>">m</span><figure class="pb-chart" data-chart="{&quot;kind&quot;:&quot;bar&quot;,&quot;series&quot;:[[]]}">c</figure><figure class="pb-chart" data-chart="[[[">c</figure><figure class="pb-diagram" data-source="x">d</figure><span class="pb-missing" data-path="/etc/passwd">p</span><nav class="pb-toc"><a href="file:///etc/passwd">t</a></nav><section class="pb-sources"><li id="pb-source-1">s</li></section><section class="footnotes"><li id="fn1"><a class="pb-footnote-ref" href="#fn1">1</a></li></section><a class="pb-footnote-ref" href="#fn1">1</a><template class="pb-directive" data-directive="{">t</template><aside class="pb-notes">n</aside><div class="pb-columns"><div class="pb-column">c</div></div><div class="pb-page-break">b</div><html data-marp="true" data-front-matter="[">', outputs=ALL),
    Attack("templates-in-headers-and-footers", f"# {TEMPLATES}", "markdown", ("pdf",), request={"options": {"header": TEMPLATES, "footer": {"left": TEMPLATES, "center": "\\\"} @page { } @import 'x'; \n\r\f", "right": "</style><script>" + "{title}" * 400}}, "metadata": {"title": TEMPLATES, "author": "\"); } * { display: none } \\"}}),
    Attack("letters-that-no-file-holds", f"# {ODD_LETTERS}\n\n{ODD_LETTERS}\n\n```\n{ODD_LETTERS}\n```\n\n[{ODD_LETTERS}](http://x.example/{ODD_LETTERS[:12]})", "markdown", ALL, request={"metadata": {"title": ODD_LETTERS, "author": ODD_LETTERS}}),
    Attack("letters-that-no-file-holds-in-html", f"<title>{ODD_LETTERS}</title><h1 id='{ODD_LETTERS}'>{ODD_LETTERS}&#0;&#xd800;&#x110000;&#xffff;&#1;&#x80;</h1><p title='{ODD_LETTERS}'>{ODD_LETTERS}<img alt='{ODD_LETTERS}' src='{ODD_LETTERS}'>"),
    Attack("marks-without-end", "e" + "\u0301" * 3_000 + " " + "\u0e33\u0e49" * 800 + " \u202e" * 800 + "\u2066" * 800 + "\U0001f468\u200d" * 300, "markdown", ALL),
    Attack("spaces-of-all-kinds", "\u00a0" * 8_000 + "\u200b" * 2_000 + "\u3000" * 1_000 + "\u00ad" * 2_000 + "a", "markdown", ("pdf", "docx")),
    Attack("scripts-mixed", "".join(chr(c) for c in range(0x21, 0x3000) if not 0x80 <= c < 0xA0), "markdown", ("pdf", "docx")),
    Attack("a-content-of-one-zero", "\x00", "markdown", ALL), Attack("a-content-of-nothing", "", "markdown", ALL), Attack("an-html-of-nothing", "", "html", ALL), Attack("a-content-of-blanks", " \n\t\u00a0\r\n" * 50, "markdown", ALL),
    Attack("a-content-of-lone-surrogates", "\ud800\udc00\ud800 \udfff" * 500, "html", ALL), Attack("bytes-that-are-no-utf-8", bytes(range(256)).decode("latin-1") * 20 + bytes(range(128, 256)).decode("utf-8", "surrogateescape") * 20, "html", ALL),
    Attack("an-empty-diagram", "", "mermaid", ("pdf", "png")), Attack("an-empty-drawing", "", "svg", ("png",), ends="invalid_svg"), Attack("a-drawing-that-is-none", "<svg" * 3_000, "svg", ("png",), ends="invalid_svg"),
    Attack("a-drawing-with-a-document-type", '<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><text y="9">&b;</text></svg>', "svg", ("png",)),
    Attack("citations-of-a-billion", "[[S:1-999999999]] [[S:0-99999999999999999999999]] [[S:-5--9]] [[S:1,,,,;;--3]] [[s:1–3,9—2]] [[S:" + "1," * 190 + "1]] [[S:" + "9" * 300 + "]] [[S:٣]] [[S:1]](x) `[[S:1]]`\n\n" + "[[S:1-999999999]] " * 60, "markdown", ALL, request={"sources": [{"sid": n, "title": f"t{n}", "url": "http://x.example/"} for n in range(1, 6)]}),
    Attack("a-pool-of-hundreds", "[[S:1-999999999]] " * 3, "markdown", ALL, request={"sources": [{"sid": n, "title": f"Title {n}", "url": f"http://x.example/{n}"} for n in range(1, 301)]}),
    Attack("sids-that-are-no-numbers", "x", "markdown", ("pdf",), ends="invalid_request", request={"sources": [{"sid": "1; DROP", "title": "x"}]}),
    Attack("a-request-of-odd-types", "x", "markdown", ALL, ends="invalid_request", request={"metadata": [[1]], "missing": 5}),
    Attack("a-request-with-more-fields", "x", "markdown", ("pdf",), ends="invalid_request", request={"__class__": "x", "base_url": "file:///"}),
    Attack("a-list-of-missing-paths", "![x](../../etc/passwd)", "markdown", ALL, request={"missing": ["../../etc/passwd", "\x00", "<x>"] * 500}),
    Attack("formulas-that-recurse-and-read", "\n\n".join(f"$${tex}$$" for tex in TEX if "$" not in tex), "markdown", ("docx",)),
    Attack("formulas-of-mathml", "".join(f"<p>{math_}</p>" for math_ in MATHML)),
    Attack("two-thousand-formulas", "$x$ " * 2_100, "markdown", ("docx",), warns=("formula_limit",)),
    *(Attack(f"diagram-{name}", source, "mermaid", ("pdf",)) for name, source in DIAGRAMS.items()),
    Attack("diagrams-on-slides-and-in-word", "\n\n".join(f"```mermaid\n{DIAGRAMS[name]}\n```" for name in ("pie-numbers", "xychart-numbers", "script", "nothing", "long-label", "init-huge-font")), "markdown", OFFICE),
    Attack("sixty-diagrams", "```mermaid\nflowchart TD\na-->b\n```\n\n" * 60, "markdown", ("docx",)),
    Attack("many-different-formulas", " ".join(f"$x_{{{n}}}$" for n in range(1_100)), "markdown", ("docx",), warns=("formula_limit",)),
    Attack("perl-without-end", f"~~~perl\n{'$x =~ s{' * 2_400}\n~~~\n\n" * 3, "markdown", ("docx",)),
    Attack("code-that-lexers-fear", "\n\n".join(f"~~~{language}\n{text[:1_500]}\n~~~" for language, text in CODE.items()), "markdown", ("docx",)),
    Attack("charts-of-odd-numbers", "\n\n".join(f"```chart\n{json.dumps(chart)}\n```" for chart in CHARTS), "markdown", ("docx", "pptx")),
    Attack("charts-that-are-no-json", "\n\n".join(f"```chart\n{text}\n```" for text in ("[" * 5_000, "{", "null", "1e999", '{"type": "bar"', "a,b\n1,2\n", "x" * 100_000)), "markdown", ("docx",)),
    Attack("chart-tables-of-odd-numbers", "<table data-chart=bar><tr><th>a<th>b<tr><td>=cmd|'x'!A0<td>1e999<tr><td>x<td>-<tr><td>y<td>٣</table><table data-chart=pie></table><table data-chart='<x>'><tr><td>1</table><table data-chart=line><tr>" + "<td>1" * 600 + "<tr>" + "<td>2" * 600 + "</table>", outputs=("pdf", "docx")),
    *(Attack(f"yaml-{name}", f"---\n{text}---\n\n# Head\n\nText.", "markdown", ALL if name == "markup" else ("docx",)) for name, text in YAML.items()),
    Attack("marp-comments-of-yaml", "---\nmarp: true\n---\n" + "".join(f"<!-- {text.strip()} -->\n\n# A\n\n---\n\n" for text in YAML.values()), "markdown", OFFICE),
    Attack("speaker-notes-of-markup", f"# A\n\n::: notes\n{XML}\n:::\n\n<aside class=notes>{XML}<script>x</script><img src='file:///etc/passwd'></aside>", "markdown", OFFICE),
)  # fmt: skip
