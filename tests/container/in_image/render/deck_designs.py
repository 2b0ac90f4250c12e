# ruff: noqa: E501, ISC004, Q003, SIM905 - sources of documents, as they would be sent
"""Decks made of parts: designs as language models write them, slides of every kind in each, from a fixed seed."""

import base64
import random
import struct
import zlib
from collections.abc import Callable
from html import escape

WORDS = (
    "growth market revenue customer platform strategy product team quarter launch pricing region delivery quality "
    "partner support security pipeline roadmap margin forecast retention onboarding experience data model insight "
    "capacity budget hiring channel brand process risk review target baseline infrastructure migration automation "
    "compliance feedback release adoption engagement operations supplier logistics research"
).split()
CHINESE = "市场增长显著,客户满意度持续提高。我们计划在下一季度推出新产品,并扩大合作伙伴网络。"
JAPANESE = "新しい製品は来月発売され、顧客の期待に応えます。品質とサービスを大切にします。"
ARABIC = "نمت الإيرادات بنسبة كبيرة هذا العام ونخطط لإطلاق منتجات جديدة في الأسواق الإقليمية"


def phrase(r: random.Random, least: int, most: int) -> str:
    """A sentence without its full stop."""
    return " ".join(r.choice(WORDS) for _ in range(r.randint(least, most))).capitalize()


def png(width: int, height: int) -> str:
    """A picture of two colours as a data URI."""
    row = b"\x00" + b"".join(bytes((40 + 150 * x // width, 90, 170)) for x in range(width))
    raw = zlib.compress(row * height)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", raw) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode()


WIDE, TALL, LOGO = png(320, 140), png(120, 300), png(60, 60)

# ---- designs: a style sheet, and what stands around slides and in each of them ----

_RESET = "*{margin:0;padding:0;box-sizing:border-box}"
_SHARED = """.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:24px}.row{display:flex;gap:40px;align-items:flex-start}
.row>*{flex:1}.kpis{display:flex;justify-content:space-between;gap:20px}.kpi .value{font-size:2em;font-weight:800}.bar{height:14px;border-radius:7px;background:#8883}
.fill{height:100%;border-radius:7px;background:#e0562f}.steps{display:flex;gap:12px;list-style:none}.steps>*{flex:1;text-align:center}.note{border-left:6px solid #e0a52f;padding:14px 20px}
img{max-width:100%}"""
DESIGNS: dict[str, tuple[str, str, str]] = {
    "corporate": (
        f"{_RESET}body{{font-family:'Segoe UI',Arial,sans-serif;background:#ddd}}.slide{{width:1280px;height:720px;padding:60px 80px;background:#fff;color:#223;position:relative;"
        "margin:20px auto;box-shadow:0 4px 20px rgba(0,0,0,.2);overflow:hidden}.slide h1{font-size:54px;color:#0b3d91}.slide h2{font-size:38px;color:#0b3d91;border-bottom:3px solid #0b3d91;"
        "padding-bottom:10px;margin-bottom:26px}li{font-size:24px;line-height:1.5;margin-left:30px}p{font-size:22px;line-height:1.5}.card{background:#f2f6fc;border-radius:12px;padding:24px}"
        "table{width:100%;border-collapse:collapse;font-size:18px}td,th{padding:10px 14px;border:1px solid #ccd}th{background:#0b3d91;color:#fff}pre{background:#1e1e2e;color:#cdd6f4;padding:20px;font-size:17px;border-radius:8px}",
        "{}",
        "<div class='slide'>{}</div>",
    ),
    "glass": (
        f"{_RESET}:root{{--a:#7c3aed;--b:#06b6d4}}body{{font-family:Inter,system-ui,sans-serif;color:#fff}}.slide{{width:1920px;height:1080px;padding:100px 120px;display:flex;flex-direction:column;"
        "justify-content:center;background:linear-gradient(135deg,#0f0c29,#302b63 50%,#24243e)}h1{font-size:96px;background:linear-gradient(90deg,var(--a),var(--b));-webkit-background-clip:text;"
        "-webkit-text-fill-color:transparent}h2{font-size:64px;margin-bottom:40px}h3{font-size:36px}p,li,td,th{font-size:32px;line-height:1.4}.card{background:rgba(255,255,255,.08);border:1px solid rgba(255,255,255,.2);"
        "border-radius:24px;padding:36px;box-shadow:0 8px 32px rgba(0,0,0,.4);backdrop-filter:blur(10px)}ul,ol{padding-left:48px}td,th{padding:12px;border-bottom:1px solid #fff4}table{width:100%}pre{font-size:26px;background:#0006;padding:30px;border-radius:16px}",
        "{}",
        "<div class='slide'>{}</div>",
    ),
    "snap": (
        "html{scroll-snap-type:y mandatory}body{margin:0;font-family:Georgia,serif}section{width:100vw;height:100vh;scroll-snap-align:start;padding:6vh 7vw;box-sizing:border-box;background:#fbf7ef;color:#2b2118}"
        "h1{font-size:clamp(2rem,6vw,5rem);margin:0}h2{font-size:3.4vw;margin:0 0 3vh;color:#8c2f1b}p,li{font-size:1.7vw;line-height:1.5}.card{background:#fff;padding:2vw;border:1px solid #e2d6c0}td,th{padding:.5vw 1vw;border-bottom:1px solid #cbb;font-size:1.4vw}"
        "table{border-collapse:collapse;width:100%}pre{font-size:1.3vw;background:#f0e8da;padding:1.5vw}",
        "{}",
        "<section>{}</section>",
    ),
    "reveal": (
        ".reveal{font-size:34px;font-family:'Source Sans Pro',Helvetica,sans-serif;color:#222}.reveal h1{font-size:2.2em;text-transform:uppercase}.reveal h2{font-size:1.5em}.reveal pre{font-size:.55em}.card{border:2px solid #42affa;padding:.6em}"
        "td,th{padding:.2em .5em;font-size:.7em}",
        "<div class='reveal'><div class='slides'>{}</div></div><script src='reveal.js'></script><script>Reveal.initialize()</script>",
        "<section>{}</section>",
    ),
    "small": (
        f"{_RESET}.slide{{width:960px;height:540px;padding:40px 50px;background:#101820;color:#f2f2f2;font-family:Verdana,sans-serif;position:relative}}h1{{font-size:42px;color:#fee715}}h2{{font-size:30px;color:#fee715;margin-bottom:18px}}"
        "p,li,td,th{font-size:17px;line-height:1.45}ul,ol{padding-left:26px}.card{background:#1d2b38;padding:16px;border-top:4px solid #fee715}td,th{padding:6px 10px;border-bottom:1px solid #456}table{width:100%}pre{font-size:13px;background:#000;padding:14px}",
        "<main class='deck'>{}</main>",
        "<div class='slide'><div class='circle' style='position:absolute;right:-60px;top:-60px;width:180px;height:180px;border-radius:50%;background:#fee71533'></div>{}<div style='position:absolute;right:24px;bottom:14px;font-size:12px'>Acme</div></div>",
    ),
    "framed": (
        f"{_RESET}.slide{{width:1280px;height:720px;display:grid;grid-template-rows:90px 1fr 50px;background:#fff;font-family:Calibri,sans-serif}}.top{{background:#264653;color:#fff;padding:20px 60px}}.mid{{padding:34px 60px}}.foot{{background:#e9ecef;color:#555;padding:12px 60px;font-size:15px}}"
        "h1,h2{font-size:36px}p,li{font-size:22px;line-height:1.45}ul,ol{padding-left:30px}.card{background:#f4a26122;border:1px solid #f4a261;border-radius:8px;padding:18px}td,th{padding:8px 12px;border:1px solid #ccc;font-size:18px}table{border-collapse:collapse;width:100%}pre{background:#f6f8fa;padding:16px;font-size:17px}",
        "{}",
        "<div class='slide'><div class='mid'>{}</div><div class='foot'>Confidential · Acme Corporation</div></div>",
    ),
    "plain": ("", "{}", "<section>{}</section>"),
    "utility": (
        "body{font-family:sans-serif}.w-full{width:100%}.p-12{padding:3rem}.text-5xl{font-size:3rem}.flex{display:flex}.h-screen{height:100vh}.bg-slate{background:#f1f5f9}.card{background:white;padding:1.5rem;border-radius:.75rem;box-shadow:0 10px 15px -3px rgb(0 0 0/.1)}"
        "h2{font-size:2.25rem;margin:0 0 1.5rem}p,li{font-size:1.35rem}td,th{padding:.5rem 1rem;font-size:1.1rem;border-bottom:1px solid #cbd5e1}table{width:100%}pre{background:#0f172a;color:#e2e8f0;padding:1.5rem;font-size:1.05rem}",
        "<div id='presentation'>{}</div>",
        "<div class='slide w-full h-screen p-12 bg-slate'>{}</div>",
    ),
}

# ---- kinds of slides ----


def _list(r: random.Random, count: int, words: tuple[int, int], depth: int = 0) -> str:
    rows = []
    for n in range(count):
        inner = _list(r, 2, words, depth - 1) if depth and n % 2 == 0 else ""
        rows.append(f"<li>{phrase(r, *words)}{inner}</li>")
    return f"<ul>{''.join(rows)}</ul>"


def _table(r: random.Random, rows: int, columns: int, extra: str = "") -> str:
    head = "".join(f"<th>{phrase(r, 1, 2)}</th>" for _ in range(columns))
    body = "".join(
        "<tr>"
        f"<td>{phrase(r, 1, 3)}</td>"
        + "".join(f"<td>{r.randint(1, 9999)}</td>" for _ in range(columns - 1))
        + "</tr>"
        for _ in range(rows)
    )
    return f"<table{extra}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _code(r: random.Random, lines: int) -> str:
    return escape(
        "\n".join(f"def {r.choice(WORDS)}_{n}(x): return x < {n}  # {phrase(r, 2, 6)}" for n in range(lines))
    )


HTML_SLIDES: dict[str, Callable[[random.Random], str]] = {
    "title": lambda r: f"<h1>{phrase(r, 2, 6)}</h1><p>{phrase(r, 5, 12)}</p><p><em>{phrase(r, 2, 3)}</em> · 2026</p>",
    "bullets": lambda r: f"<h2>{phrase(r, 2, 5)}</h2>{_list(r, r.randint(3, 6), (3, 9))}",
    "nested": lambda r: f"<h2>{phrase(r, 2, 5)}</h2>{_list(r, 4, (3, 7), 2)}",
    "long": lambda r: f"<h2>{phrase(r, 4, 10)}</h2>{_list(r, r.randint(9, 16), (12, 28))}",
    "numbered": lambda r: f"<h2>{phrase(r, 2, 4)}</h2>{_list(r, 6, (4, 12)).replace('ul>', 'ol>')}",
    "columns": lambda r: f"<h2>{phrase(r, 2, 4)}</h2><div class='row'><div><h3>{phrase(r, 1, 2)}</h3>{_list(r, 4, (2, 7))}</div><div><h3>{phrase(r, 1, 2)}</h3><p>{phrase(r, 15, 30)}.</p></div></div>",
    "cards": lambda r: f"<h2>{phrase(r, 2, 4)}</h2><div class='cards'>" + "".join(f"<div class='card'><h3>{icon} {phrase(r, 1, 2)}</h3><p>{phrase(r, 6, 14)}.</p></div>" for icon in r.sample("🚀📈🔒💡🤝⚙️", 4)) + "</div>",
    "kpis": lambda r: f"<h2>{phrase(r, 2, 4)}</h2><div class='kpis'>" + "".join(f"<div class='kpi card'><div class='value'>{r.randint(1, 99)}%</div><div class='label'>{phrase(r, 1, 3)}</div></div>" for _ in range(4)) + f"</div><p>{phrase(r, 8, 20)}.</p>",
    "table": lambda r: f"<h2>{phrase(r, 2, 4)}</h2>{_table(r, r.randint(3, 6), 4)}",
    "big-table": lambda r: f"<h2>{phrase(r, 2, 4)}</h2>{_table(r, r.randint(18, 40), 6)}",
    "code": lambda r: f"<h2>{phrase(r, 2, 4)}</h2><pre><code>{_code(r, r.randint(4, 9))}</code></pre>",
    "long-code": lambda r: f"<h2>{phrase(r, 2, 4)}</h2><pre><code>{_code(r, 34)}</code></pre>",
    "quote": lambda r: f"<blockquote>“{phrase(r, 10, 22)}.”</blockquote><p>— {phrase(r, 2, 2)}</p>",
    "picture": lambda r: f"<h2>{phrase(r, 2, 4)}</h2><div class='row'><img src='{WIDE}' alt='{phrase(r, 2, 4)}'><div><p>{phrase(r, 12, 25)}.</p></div></div>",
    "portrait": lambda r: f"<h2>{phrase(r, 2, 4)}</h2><img src='{TALL}' alt='{phrase(r, 2, 4)}' style='height:900px'><p>{phrase(r, 5, 9)}</p>",
    "chart": lambda r: f"<h2>{phrase(r, 2, 4)}</h2>{_table(r, 5, 3, ' data-chart=column')}",
    "timeline": lambda r: f"<h2>{phrase(r, 2, 4)}</h2><ol class='steps'>" + "".join(f"<li><strong>Q{n}</strong><p>{phrase(r, 3, 8)}</p></li>" for n in range(1, 5)) + "</ol>",
    "progress": lambda r: f"<h2>{phrase(r, 2, 4)}</h2>" + "".join(f"<p>{phrase(r, 1, 3)}</p><div class='bar'><div class='fill' style='width:{r.randint(10, 95)}%'></div></div>" for _ in range(4)),
    "callout": lambda r: f"<h2>{phrase(r, 2, 4)}</h2><p>{phrase(r, 10, 25)}.</p><div class='note'><strong>{phrase(r, 1, 2)}</strong> {phrase(r, 8, 16)}</div>",
    "absolute": lambda r: f"<div style='position:relative;height:420px'><h2 style='position:absolute;left:0;top:0'>{phrase(r, 2, 3)}</h2><p style='position:absolute;left:20px;top:130px;width:320px'>{phrase(r, 8, 14)}</p><p style='position:absolute;left:420px;top:130px;width:320px'>{phrase(r, 8, 14)}</p></div>",
    "drawing": lambda r: f"<h2>{phrase(r, 2, 4)}</h2><svg viewBox='0 0 400 160' width='600'><rect width='120' height='70' fill='#2a9d8f'/><circle cx='260' cy='70' r='60' fill='#e76f51'/><path d='M120 35H200' stroke='#333'/></svg><p>{phrase(r, 5, 9)}</p>",
    "notes": lambda r: f"<h2>{phrase(r, 2, 4)}</h2>{_list(r, 3, (3, 7))}<aside class='notes'>{phrase(r, 20, 40)}.</aside>",
    "chinese": lambda _r: f"<h2>第一季度回顾</h2><ul><li>{CHINESE}</li><li>{JAPANESE}</li></ul><p>{CHINESE * 2}</p>",
    "arabic": lambda _r: f"<div dir='rtl'><h2>النتائج المالية</h2><ul><li>{ARABIC}</li><li>{ARABIC}</li></ul></div>",
    "emoji": lambda r: f"<h2>🎉 {phrase(r, 2, 4)}</h2><ul>" + "".join(f"<li>{icon} {phrase(r, 3, 8)}</li>" for icon in "✅⚠️❌🔥👩‍🚀") + "</ul>",
    "mixed": lambda r: f"<h2>{phrase(r, 2, 4)}</h2><p>{phrase(r, 10, 18)} <a href='https://example.com/'>{phrase(r, 1, 2)}</a> <code>x = 1</code> <mark>{phrase(r, 1, 2)}</mark>.</p>{_list(r, 3, (4, 9))}{_table(r, 3, 3)}",
    "end": lambda r: f"<h1>Thank you</h1><p>{phrase(r, 2, 4)}? <a href='mailto:a@example.com'>a@example.com</a></p>",
}  # fmt: skip

MARKDOWN_SLIDES: dict[str, Callable[[random.Random], str]] = {
    "bullets": lambda r: "\n".join(f"- {phrase(r, 3, 12)}" for _ in range(r.randint(3, 7))),
    "long": lambda r: "\n".join(f"- **{phrase(r, 1, 2)}**: {phrase(r, 15, 30)}" for _ in range(12)),
    "nested": lambda r: f"1. {phrase(r, 2, 5)}\n   - {phrase(r, 3, 6)}\n   - {phrase(r, 3, 6)}\n     - {phrase(r, 3, 6)}\n2. {phrase(r, 2, 5)}",
    "prose": lambda r: f"{phrase(r, 20, 40)}.\n\n{phrase(r, 30, 80)}.",
    "story": lambda r: "\n\n".join(f"{phrase(r, 60, 90)}." for _ in range(5)),
    "table": lambda r: f"| {phrase(r, 1, 1)} | {phrase(r, 1, 1)} | n |\n|:--|:-:|--:|\n" + "\n".join(f"| {phrase(r, 1, 3)} | {phrase(r, 1, 4)} | {n} |" for n in range(5)),
    "big-table": lambda r: "| a | b | c | d | e |\n|---|---|---|---|--:|\n" + "\n".join(f"| {phrase(r, 1, 3)} | {phrase(r, 1, 9)} | {phrase(r, 1, 2)} | {n} | {n * n} |" for n in range(r.randint(20, 75))),
    "code": lambda r: f"```python\n{chr(10).join(f'{r.choice(WORDS)} = {n}  # {phrase(r, 2, 9)}' for n in range(r.randint(4, 30)))}\n```",
    "quote": lambda r: f"> {phrase(r, 10, 20)}\n>\n> — {phrase(r, 2, 2)}",
    "callout": lambda r: f"> [!{r.choice(['NOTE', 'TIP', 'WARNING'])}]\n> {phrase(r, 10, 20)}\n\n{phrase(r, 5, 9)}",
    "columns": lambda r: f"::: columns\n::: column\n- {phrase(r, 3, 6)}\n- {phrase(r, 3, 6)}\n:::\n::: column\n![{phrase(r, 2, 3)}]({WIDE})\n:::\n:::",
    "picture": lambda r: f"![{phrase(r, 2, 3)}]({TALL})\n\n{phrase(r, 4, 9)}",
    "chart": lambda r: f"```chart\ntype: {r.choice(['bar', 'line', 'pie', 'column', 'area'])}\nlabels: [A, B, C, D]\nseries:\n  - name: {phrase(r, 1, 1)}\n    data: [{r.randint(1, 9)}, 3, 5, {r.randint(1, 9)}]\n```\n\n{phrase(r, 3, 6)}",
    "mermaid": lambda r: f"```mermaid\npie title {phrase(r, 1, 2)}\n  \"A\" : {r.randint(1, 60)}\n  \"B\" : 40\n```",
    "flow": lambda r: f"```mermaid\ngraph LR\n  A[{phrase(r, 1, 2)}] --> B[{phrase(r, 1, 2)}]\n  B --> C\n```\n\n{phrase(r, 4, 8)}",
    "formula": lambda r: f"{phrase(r, 3, 6)} $\\frac{{a}}{{b}}$ {phrase(r, 3, 9)} $E = mc^2$\n\n$$\\sum_{{i=1}}^n i^2$$",
    "tasks": lambda r: f"- [x] {phrase(r, 3, 6)}\n- [ ] {phrase(r, 3, 6)}",
    "notes": lambda r: f"{phrase(r, 6, 12)}\n\n::: notes\n{phrase(r, 10, 20)}\n:::",
    "footnote": lambda r: f"{phrase(r, 4, 9)}[^n{{0}}] {phrase(r, 3, 6)}\n\n[^n{{0}}]: {phrase(r, 5, 9)}",
    "definitions": lambda r: f"{phrase(r, 1, 2)}\n: {phrase(r, 6, 12)}\n\n{phrase(r, 1, 2)}\n: {phrase(r, 6, 12)}",
    "scripts": lambda _r: f"- {CHINESE}\n- {JAPANESE}\n- {ARABIC}\n- 🎉 ✅ 👩‍🚀",
    "rich": lambda r: f"{phrase(r, 3, 6)} **{phrase(r, 1, 2)}** *{phrase(r, 1, 2)}* ~~{phrase(r, 1, 2)}~~ `code` [{phrase(r, 1, 2)}](https://example.com/a)\n\n* {phrase(r, 2, 6)}\n* {phrase(r, 2, 6)}",
}  # fmt: skip


def html_deck(seed: int) -> str:
    """A deck of one design with several kinds of slides."""
    r = random.Random(seed)
    name = list(DESIGNS)[seed % len(DESIGNS)]
    css, around, each = DESIGNS[name]
    middle = [kind for kind in HTML_SLIDES if kind not in {"title", "end"}]
    kinds = ["title", *r.sample(middle, 5), "end"]
    slides = []
    for kind in kinds:
        inner = HTML_SLIDES[kind](r)
        if name == "framed":
            head, mark, rest = inner.partition("</h2>")
            if mark:
                slides.append(
                    each.replace(
                        "<div class='mid'>", f"<div class='top'>{head}</h2></div><div class='mid'>"
                    ).replace("{}", rest)
                )
                continue
        slides.append(each.replace("{}", inner))
    return f"<!DOCTYPE html><html><head><title>{phrase(r, 2, 4)}</title><style>{css}{_SHARED if css else ''}</style></head><body>{around.replace('{}', ''.join(slides))}</body></html>"


def markdown_deck(seed: int) -> str:
    """A deck cut by rules, by headings, or by Marp's rules."""
    r = random.Random(seed)
    kinds = r.sample(list(MARKDOWN_SLIDES), 6)
    bodies = [MARKDOWN_SLIDES[kind](r).replace("{0}", str(n)) for n, kind in enumerate(kinds)]
    slides = [f"## {phrase(r, 2, 6)}\n\n{body}" for body in bodies]
    way = seed % 4
    if way == 0:
        return f"# {phrase(r, 2, 5)}\n\n{phrase(r, 3, 6)}\n\n---\n\n" + "\n\n---\n\n".join(slides) + "\n"
    if way == 1:
        return f"# {phrase(r, 2, 5)}\n\n" + "\n\n".join(slides) + "\n"
    if way == 2:
        marks = [
            "<!-- _class: invert -->\n",
            "<!-- _backgroundColor: #123456 -->\n<!-- _color: white -->\n",
            f"![bg right:40%]({TALL})\n",
            f"![bg]({WIDE})\n",
            "<!-- footer: Acme -->\n",
            "",
        ]
        marked = [mark + slide for mark, slide in zip(marks, slides, strict=True)]
        return (
            f"---\nmarp: true\ntheme: {r.choice(['default', 'gaia', 'uncover'])}\npaginate: true\n---\n\n<!-- _class: lead -->\n# {phrase(r, 2, 5)}\n\n---\n\n"
            + "\n\n---\n\n".join(marked)
            + "\n"
        )
    return (
        f"---\ntitle: {phrase(r, 2, 5)}\nauthor: Ann Example\n---\n\n# {phrase(r, 1, 3)}\n\n"
        + "\n\n".join(slides[:3])
        + f"\n\n# {phrase(r, 1, 3)}\n\n"
        + "\n\n".join(slides[3:])
        + "\n"
    )
