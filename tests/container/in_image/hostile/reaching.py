# ruff: noqa: E501, Q003, RUF028 - attacks are data, a line each
"""Documents that reach for files outside OUT_DIR, for the network, and for what a reader's program would run."""

import base64

from attack import ALL, ELSEWHERE, OFFICE, PAGES, PORT, Attack, Folder, Link, Pipe, UnixSocket

PLACE = f"{ELSEWHERE}/canary"
UP = "../" * 8
ADDRESSES = (
    "file:///etc/passwd", "file:/etc/passwd", "FILE:///etc/passwd", "file://localhost/etc/passwd", "file:////etc/passwd",
    "file:///out-dir/../etc/passwd", "file:///out-dir/%2e%2e/etc/passwd", "/etc/passwd", "//etc/passwd", "///etc/passwd",
    f"file://{PLACE}.png", f"file:{PLACE}.png", f"{PLACE}.png", f"{UP}{PLACE[1:]}.png", f"{UP}{PLACE[1:]}.svg",
    f"turn_1/files/{UP}{PLACE[1:]}.png", f"files/{UP}{PLACE[1:]}.png", f"fi:turn_1.files/{UP}{PLACE[1:]}.png",
    f"fi:turn_1.user.attachments/{UP}{PLACE[1:]}.png", f"%2e%2e/{'%2e%2e/' * 8}{PLACE[1:]}.png",
    f"..%2f{'..%2f' * 8}tmp%2felsewhere%2fcanary.png", f"..%252f{'..%252f' * 8}tmp%252felsewhere%252fcanary.png",
    f"..%c0%af{'..%c0%af' * 8}tmp%c0%afelsewhere%c0%afcanary.png", f"....//{'....//' * 8}{PLACE[1:]}.png",
    "..\\..\\..\\..\\..\\tmp\\elsewhere\\canary.png", "\\\\127.0.0.1\\share\\canary.png", "C:\\Windows\\win.ini",
    "\\\\?\\C:\\Windows\\win.ini", f"{PLACE}.png?x#y", f"{PLACE}.png%00.jpg", "/proc/self/environ", "/proc/self/fd/0",
    f"/proc/self/root{PLACE}.png", f"/proc/self/cwd/{UP}{PLACE[1:]}.png", "/dev/zero", "/dev/stdin", "/dev/fd/0",
    f" file://{PLACE}.png", f"\tfile://{PLACE}.png", f"local-file://{PLACE}.png", f"jar:file://{PLACE}.png!/x",
    f"netdoc:{PLACE}.png", f"php://filter/resource={PLACE}.png", f"view-source:file://{PLACE}.png", "~/.bashrc", "~root/x",
    "$HOME/x", "-", ".", "..", "/", "", "turn_1", "x" * 5_000, "a/" * 3_000,
)  # fmt: skip
"""Ways to name a file that is not below OUT_DIR."""
HERE = f"127.0.0.1:{PORT}"
REMOTE = (
    f"http://{HERE}/x.png", f"HTTP://{HERE}/x.png", f"https://{HERE}/x.png", f"ftp://{HERE}/x.png", f"//{HERE}/x.png",
    f"\\\\{HERE}\\x.png", f"http:{HERE}/x.png", f"http:/{HERE}/x.png", f"http:\\\\{HERE}\\x.png", f" http://{HERE}/x.png",
    f"ht\ntp://{HERE}/x.png", f"http://user:secret@{HERE}/x.png", f"http://localhost:{PORT}/x.png", f"http://[::1]:{PORT}/x",
    f"http://2130706433:{PORT}/x.png", f"http://0x7f.1:{PORT}/x.png", f"http://127.1:{PORT}/x", f"http://0:{PORT}/x.png",
    f"http://[::ffff:127.0.0.1]:{PORT}/x.png", "http://169.254.169.254/latest/meta-data/", "http://metadata.internal./x",
    "http://[fd00:ec2::254]/x", "http://203.0.113.7/x.png", f"gopher://{HERE}/_x", f"dict://{HERE}/x", f"ldap://{HERE}/x",
    f"sftp://{HERE}/x", f"tftp://{HERE}/x", f"smb://{HERE}/x", f"ws://{HERE}/x", f"blob:http://{HERE}/x",
    f"filesystem:http://{HERE}/x", f"feed:http://{HERE}/x", f"urn:x-{HERE}", f"cid:x@{HERE}", f"about:{HERE}",
    f"data:text/html,<img src=http://{HERE}/x>", f"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><image href='http://{HERE}/x'/></svg>",
)  # fmt: skip
"""Ways to name what is on another computer."""
LINKS = (
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", "java\nscript:alert(1)", "java&#10;script:alert(1)", "\x01javascript:alert(1)",
    "&#106;avascript:alert(1)", "javascript&colon;alert(1)", "vbscript:msgbox(1)", "data:text/html,<script>x</script>",
    "file:///etc/passwd", "file://server/share/x.docx", "\\\\server\\share\\x.docx", "//server/share/x.docx", "blob:x", "about:blank",
    "ms-word:ofe|u|http://x.example/x.docm", "ms-excel:ofe|u|http://x.example/x", "ms-msdt:/id x", "search-ms:query=x", "smb://server/x",
    "view-source:file:///etc/passwd", "jar:http://x.example/x!/y", "mk:@MSITStore:x", "res://x", "shell:startup", "cmd:/c calc",
    "ppaction://program", "ppaction://macro?name=x", "ppaction://hlinkshowjump?jump=endshow", "#x\" TargetMode=\"Internal",
    "http://x.example/\"><evil/>", "http://x.example/?a=1&b=<c>'\"", "mailto:a@x.example?subject=x&body=</w:t>", "x:y", "telnet://x",
)  # fmt: skip
"""Targets that a link in a file must not have, and some that it may have if they are escaped."""


def each(form: str, addresses: tuple[str, ...]) -> str:
    """A document with one use of each address: ``form`` has ``%s`` in its place."""
    rows = (form.replace("%s", address) for address in addresses)
    return "<!doctype html><h1>Addresses</h1>" + "\n".join(
        f"<p>{number} {row}</p>" for number, row in enumerate(rows)
    )


def in_css(form: str, addresses: tuple[str, ...]) -> str:
    """A style sheet with one rule for each address."""
    rows = [
        form.replace("%s", address.replace("\n", "")).replace("%n", f"c{n}") for n, address in enumerate(addresses)
    ]
    boxes = "".join(f"<div class=c{number}>box {number}</div>" for number in range(len(addresses)))
    return f"<style>{' '.join(rows)}</style><h1>Styles</h1>{boxes}"


def data_svg(inner: str, encoding: str = "base64") -> str:
    """An SVG with ``inner`` as a data URI."""
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="80" height="60">{inner}</svg>'
    if encoding == "base64":
        return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
    return "data:image/svg+xml;utf8," + svg.replace("%", "%25").replace('"', "%22").replace("#", "%23").replace(
        "<", "%3C"
    )


SVG_USES = (
    '<image href="%s" width="60" height="60"/>', '<image xlink:href="%s" width="60" height="60"/>', '<use href="%s#x"/>',
    '<use xlink:href="%s"/>', '<filter id="f"><feImage href="%s"/></filter><rect filter="url(#f)" width="9" height="9"/>',
    '<rect fill="url(%s#p)" width="9" height="9"/>', '<rect clip-path="url(%s#p)" mask="url(%s)" width="9" height="9"/>',
    "<style>@import url(%s); rect { fill: url(%s) }</style><rect width='9' height='9'/>", '<a href="%s"><text y="9">x</text></a>',
    '<foreignObject width="60" height="60"><img xmlns="http://www.w3.org/1999/xhtml" src="%s"/></foreignObject>',
    '<text><textPath href="%s">x</textPath></text>', '<linearGradient id="g" href="%s"/><rect fill="url(#g)" width="9" height="9"/>',
    '<script href="%s"/>', '<style>@font-face { font-family: x; src: url(%s) } text { font-family: x }</style><text y="9">x</text>',
    '<text y="9" style="font-family:x;background:url(%s)">x</text>', '<cursor href="%s"/>', '<animate href="%s"/>',
)  # fmt: skip
REACHED = (
    f"file://{PLACE}.png",
    f"file://{PLACE}.svg",
    f"{PLACE}.png",
    f"{UP}{PLACE[1:]}.svg",
    "file:///etc/passwd",
)


def svg_bodies(addresses: tuple[str, ...]) -> list[str]:
    """The insides of SVGs that use the addresses in every way that SVG has."""
    return [use.replace("%s", address) for use in SVG_USES for address in addresses]


def svg_pictures(addresses: tuple[str, ...], encoding: str) -> str:
    rows = "".join(f'<img src="{data_svg(body, encoding)}">' for body in svg_bodies(addresses))
    return f"<h1>Drawings</h1>{rows}"


def svg_within_svg(depth: int, address: str) -> str:
    body = f'<image href="{address}" width="60" height="60"/>'
    for _ in range(depth):
        body = f'<image href="{data_svg(body)}" width="60" height="60"/>'
    return f'<h1>Nested</h1><img src="{data_svg(body)}">'


def svg_file(inner: str, prologue: str = "") -> bytes:
    return (
        f'{prologue}<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="80" height="60">{inner}</svg>'
    ).encode()


CSS_USES = (
    ".%n { background: url('%s') }", ".%n { background-image: url(\"%s\"), linear-gradient(red, blue) }",
    ".%n { list-style: url('%s'); display: list-item }", ".%n { border-image: url('%s') 3 }", ".%n::before { content: url('%s') }",
    ".%n { mask-image: url('%s'); cursor: url('%s'), auto }", ".%n { filter: url('%s#f'); clip-path: url('%s#c') }",
    "@page { @top-center { content: url('%s'); background: url('%s') } }", ".%n { shape-outside: url('%s'); float: left }",
    ".%n::after { content: target-text(url('%s')) target-counter('%s', page) }", ".%n { background: image-set('%s' 1x) }",
    "@counter-style x%n { system: cyclic; symbols: url('%s') } .%n { list-style: x%n }", ".%n { --u: url('%s'); background: var(--u) }",
)  # fmt: skip
FONT_FACES = (
    "@font-face { font-family: %n; src: url('%s') format('woff2'), url(%s), local('%s') } .%n { font-family: %n }"
)
IMPORTS = (
    "@import url('%s');", '@import "%s";', "@import url(%s) print;", "@IMPORT/**/url(%s);", "@\\69mport url('%s');", "@im\\port '%s';",
    "@media print { @import url('%s'); }", "@charset 'x'; @import '%s' supports(display: block);", "@import '%s' layer(x)",
    "@namespace url('%s');", "@color-profile x { src: url('%s') }", "@\\63olor-profile --x { src: url('%s'); }", "@document url('%s') { p { color: red } }",
)  # fmt: skip
SHEETS = (f"file://{PLACE}.css", f"{PLACE}.css", f"{UP}{PLACE[1:]}.css", f"\\66ile://{PLACE}.css", f"http://{HERE}/x.css", f"//{HERE}/x.css", f"h\\74tp://{HERE}/x.css")  # fmt: skip
EMBEDS = "".join(
    f'<iframe src="{a}"></iframe><object data="{a}"></object><embed src="{a}"><video src="{a}" poster="{a}"></video>'
    f'<audio src="{a}"></audio><portal src="{a}"></portal><applet code="{a}" archive="{a}"></applet><input type=image src="{a}">'
    f'<picture><source srcset="{a}"><img srcset="{a} 2x" src="{a}"></picture><iframe srcdoc="<img src={a}>"></iframe>'
    f'<table background="{a}"><tr><td background="{a}">x</table><q cite="{a}">q</q><img longdesc="{a}" usemap="{a}" lowsrc="{a}">'
    f'<isindex action="{a}"><form action="{a}"><button formaction="{a}">b</button></form><math><mglyph src="{a}"/></math>'
    f'<xml src="{a}"></xml><bgsound src="{a}"><layer src="{a}"></layer><svg><image href="{a}"/><script href="{a}"/></svg>'
    for a in (f"file://{PLACE}.html", f"file://{PLACE}.png", f"{PLACE}.svg", f"http://{HERE}/x", f"//{HERE}/x")
)
HEAD = "".join(
    f'<link rel=stylesheet href="{a}"><link rel="alternate stylesheet" href="{a}"><link rel=attachment href="{a}">'
    f'<link rel="stylesheet attachment" href="{a}"><link rel=icon href="{a}"><link rel=preload as=style href="{a}">'
    f'<link rel=import href="{a}"><link rel=dns-prefetch href="{a}"><meta http-equiv=refresh content="0;url={a}">'
    f'<meta http-equiv=Link content="<{a}>; rel=stylesheet">'
    for a in (*SHEETS, f"file://{PLACE}.txt", "file:///etc/passwd", f"http://{HERE}/x")
)
PICTURE = "turn_1/files/p.png"
LINKED = {
    PICTURE: Link(f"{PLACE}.png"), "turn_1/files/d": Link(str(ELSEWHERE)), "turn_1/files/a.png": Link("b.png"),
    "turn_1/files/b.png": Link("c.png"), "turn_1/files/c.png": Link("d/canary.png"), "turn_1/files/root": Link("/"),
    "turn_1/files/up": Link("../../../../../tmp"), "turn_1/files/self.png": Link("self.png"), "turn_1/files/env.png": Link("/proc/self/environ"),
    "turn_1/files/zero.png": Link("/dev/zero"), "turn_1/files/s.svg": Link(f"{PLACE}.svg"), "turn_1/files/s.css": Link(f"{PLACE}.css"),
    "turn_0/files/old.png": Link(f"{PLACE}.png"), "turn_0/files/gone.png": Link("/nowhere"),
}  # fmt: skip
LINKED_NAMES = ("p.png", "d/canary.png", "d/../../../../tmp/elsewhere/canary.png", "a.png", "root/tmp/elsewhere/canary.png", "up/elsewhere/canary.png", "self.png", "env.png", "zero.png", "s.svg", "turn_0/files/old.png", "turn_0/files/gone.png")  # fmt: skip
SPECIAL = {
    "turn_1/files/pipe.png": Pipe(), "turn_1/files/pipe.css": Pipe(), "turn_1/files/pipe.ttf": Pipe(), "turn_1/files/pipe.svg": Pipe(),
    "turn_1/files/socket.png": UnixSocket(), "turn_1/files/folder.png": Folder(), "turn_1/files/empty.png": b"", "turn_1/files/empty.css": b"",
}  # fmt: skip
TARGET_TEXT = "# Targets\n\nText."

REACHING = (
    Attack("pictures-by-paths-outside", each('<img src="%s">', ADDRESSES), warns=("asset_refused",)),
    Attack("markdown-pictures-by-paths-outside", "\n\n".join(f"![p](<{a.strip()}>)" for a in ADDRESSES), "markdown"),
    Attack("pictures-on-other-computers", each('<img src="%s" srcset="%s 2x">', REMOTE), warns=("remote_refused",)),
    Attack("markdown-pictures-on-other-computers", "\n\n".join(f"![p](<{a.strip()}>)" for a in REMOTE if "\n" not in a), "markdown"),
    Attack("frames-objects-players", EMBEDS, warns=("embed_ignored",)),
    Attack("head-links-and-refresh", f"{HEAD}<title>x</title><h1>Head</h1>"),
    Attack("attachment-links", each('<a rel="attachment" href="%s">a</a>', ADDRESSES), outputs=PAGES),
    Attack("base-to-the-file-system", f'<base href="file://{ELSEWHERE}/"><img src="canary.png"><img src="canary.svg"><h1>Base</h1>'),
    Attack("base-to-another-computer", f'<base href="http://{HERE}/"><img src="x.png"><link rel=stylesheet href=x.css><h1>Base</h1>'),
    Attack("imports-everywhere", "".join(f"<style>{form.replace('%s', a)}</style>" for form in IMPORTS for a in SHEETS) + "<h1>Imports</h1>"),
    Attack("imports-in-a-style-sheet-file", '<link rel=stylesheet href="s.css"><h1>Sheet</h1>', files={"turn_1/files/s.css": "\n".join(form.replace("%s", a) for form in IMPORTS for a in SHEETS).encode()}),
    Attack("imports-that-import-themselves", '<link rel=stylesheet href="s.css"><h1>Loop</h1>', files={"turn_1/files/s.css": b"@import 's.css'; @import 't.css';", "turn_1/files/t.css": b"@import 's.css'; @import 't.css';"}),
    Attack("fonts-outside", in_css(FONT_FACES, (*ADDRESSES[:40], *REMOTE)), outputs=PAGES),
    Attack("css-addresses-outside", "".join(in_css(form, REACHED) for form in CSS_USES)),
    Attack("css-addresses-remote", "".join(in_css(form, REMOTE[:12]) for form in CSS_USES)),
    Attack("inline-style-addresses", each("<span style=\"background:url('%s');content:url('%s')\">s</span>", (*REACHED, *REMOTE))),
    Attack("color-profile", "<style>@color-profile --x { src: url(file:///etc/passwd) } p { color: color(--x 1 0 0) } @color-profile{} @color-profile</style><p>Colour</p>", outputs=PAGES),
    Attack("inline-svg-references", "<h1>Inline</h1>" + "".join(f"<svg width=80 height=60>{body}</svg>" for body in svg_bodies((*REACHED, f"http://{HERE}/x.svg")))),
    Attack("svg-data-references-base64", svg_pictures(REACHED, "base64")),
    Attack("svg-data-references-plain", svg_pictures((f"file://{PLACE}.png", f"http://{HERE}/x.svg", f"//{HERE}/x"), "plain")),
    Attack("svg-in-svg-in-svg", svg_within_svg(5, f"file://{PLACE}.png")),
    Attack("svg-file-references", "".join(f'<img src="{n}.svg">' for n in range(len(SVG_USES) * 2)), files={f"turn_1/files/{n}.svg": svg_file(body) for n, body in enumerate(svg_bodies((f"file://{PLACE}.png", "../../../../tmp/elsewhere/canary.png")))}),
    Attack("svg-as-the-document", f'<svg xmlns="http://www.w3.org/2000/svg" width="80" height="60">{"".join(svg_bodies(REACHED))}</svg>', "svg", ("png",)),
    Attack("svg-style-sheet-instruction", '<img src="s.svg"><h1>Instruction</h1>', files={"turn_1/files/s.svg": svg_file("<text y='9'>x</text>", f'<?xml version="1.0"?><?xml-stylesheet href="file://{PLACE}.css"?>')}),
    Attack("symbolic-links-out", each('<img src="%s">', LINKED_NAMES), files=LINKED, warns=("asset_refused",)),
    Attack("symbolic-links-in-markdown-and-css", '<link rel=stylesheet href="s.css"><style>p { background: url(p.png) } @font-face { font-family: x; src: url(zero.png) } h1 { font-family: x }</style><h1>Links</h1><p>x', files=LINKED),
    Attack("pipes-sockets-folders", '<link rel=stylesheet href="pipe.css"><style>@font-face { font-family: x; src: url(pipe.ttf) } p { font-family: x; background: url(pipe.svg) }</style>' + each('<img src="%s">', ("pipe.png", "pipe.svg", "socket.png", "folder.png", "empty.png")), files=SPECIAL),
    Attack("a-file-of-sixty-megabytes", '<img src="large.png"><h1>Large</h1>', files={"turn_1/files/large.png": b"\x89PNG\r\n\x1a\n" + bytes(60_000_000)}, warns=("asset_too_large",)),
    Attack("links-that-act", each("<a href=\"%s\">l</a>", tuple(link.replace('"', "&quot;") for link in LINKS)), warns=("link_dropped",)),
    Attack("markdown-links-that-act", "\n\n".join(f"[l](<{link}>) <{link}>" for link in LINKS if "\n" not in link and "<" not in link), "markdown"),
    Attack("picture-links-that-act", each('<a href="%s"><img alt="i" src="p.svg"></a>', tuple(link.replace('"', "&quot;") for link in LINKS)), files={"turn_1/files/p.svg": svg_file("<rect width='9' height='9'/>")}),
    Attack("svg-and-area-links-that-act", each('<svg width=50 height=20><a href="%s" xlink:href="%s"><text y=9>x</text></a></svg><map name=m><area href="%s"></map>', tuple(link.replace('"', "&quot;") for link in LINKS))),
    Attack("links-with-credentials", each('<a href="%s">l</a>', ("http://user:secret@x.example/", "https://a@b@c.example/", "http://x.example\\@y.example/", "http://x.example#@y.example/", "https://\u202eexample.com/", "http://[::1", "http://x.example:99999/", "http://%00/", "http://"))),
    Attack("scripts-and-handlers", "<script>x()</script><p onclick=x() onmouseover=y()>p</p><svg onload=x()><script>y()</script><set attributeName=onclick to=x()></svg><img src=x onerror=x()><body onload=x()><details ontoggle=x() open>d</details><canvas></canvas><h1>S</h1>", warns=("script_ignored",)),
    Attack("svg-with-scripts", '<img src="s.svg"><h1>Script</h1>', files={"turn_1/files/s.svg": svg_file("<script>x()</script><script href='http://x.example'/><rect onload='x()' width='9' height='9'/><foreignObject width='9' height='9'><iframe xmlns='http://www.w3.org/1999/xhtml' src='file:///etc/passwd'/></foreignObject><handler/><set attributeName='href' to='javascript:x()'/><a xlink:href='javascript:x()'><text>x</text></a>")}),
    Attack("attachments-outside", "# Attached", "markdown", ("pdf",), files={**LINKED, **SPECIAL}, request={"options": {"attachments": [*ADDRESSES[:40], *LINKED_NAMES, "pipe.png", "socket.png", "http://x.example/", 7, None, {}]}}),
    Attack("a-theme-outside", "# Theme", "markdown", ("pdf",), ends="unknown_theme", request={"theme": f"{UP}{PLACE[1:]}.json"}),
    Attack("a-theme-by-a-link", "# Theme", "markdown", ("pdf",), files={"turn_1/files/t.json": Link(f"{PLACE}.json")}, ends="unknown_theme", request={"theme": "turn_1/files/t.json"}),
    Attack("a-theme-that-is-a-pipe", "# Theme", "markdown", ("pdf",), files={"turn_1/files/t.json": Pipe()}, ends="unknown_theme", request={"theme": "turn_1/files/t.json"}),
    Attack("a-theme-of-the-front-matter", f"---\ntheme: {PLACE}.json\nlogo: {PLACE}.png\ncss: {PLACE}.css\nstyle: '@import \"{PLACE}.css\"'\n---\n# T", "markdown", ALL),
    Attack("a-theme-with-a-logo-outside", "# Logo", "markdown", ALL, files={"turn_1/files/t.json": f'{{"logo": "{UP}{PLACE[1:]}.png"}}'.encode()}, request={"theme": "turn_1/files/t.json"}),
    Attack("a-theme-that-injects-css", "# Inject", "markdown", ("pdf",), files={"turn_1/files/t.json": f'{{"name": "x*/}}</style>", "logo": "a\\") }} @import \\"{PLACE}.css\\"; p {{ x: (\\"", "fonts": {{"body": "x; }} @import url({PLACE}.css); y {{"}}, "colours": {{"text": "red; }} * {{ background: url({PLACE}.png)", "accent": {{"a": 1}}}}, "series": [[], 7, "url({PLACE}.png)"]}}'.encode()}, ends="invalid_theme", request={"theme": "turn_1/files/t.json"}),
    Attack("a-theme-nested-deep", "# Deep", "markdown", ("pdf",), files={"turn_1/files/t.json": b"[" * 100_000}, ends="unknown_theme", request={"theme": "turn_1/files/t.json"}),
    Attack("a-theme-of-long-numbers", "# Toml", "markdown", ("pdf",), files={"turn_1/files/t.toml": b"x = " + b"9" * 150_000}, ends="unknown_theme", request={"theme": "turn_1/files/t.toml"}),
    Attack("a-target-above", TARGET_TEXT, "markdown", ("pdf",), ends="invalid_request", request={"target": "../x.pdf"}),
    Attack("a-target-by-a-linked-folder", TARGET_TEXT, "markdown", ("pdf",), files={"turn_1/files/out": Link(str(ELSEWHERE))}, ends="invalid_request", request={"target": "turn_1/files/out/x.pdf"}),
    Attack("a-target-that-is-a-folder", TARGET_TEXT, "markdown", ("pdf",), files={"turn_1/files/x/y": b""}, ends="write_failed", request={"target": "turn_1/files/x"}),
    Attack("a-target-below-a-file", TARGET_TEXT, "markdown", ("pdf",), files={"turn_1/files/x": b""}, ends="write_failed", request={"target": "turn_1/files/x/y.pdf"}),
    Attack("a-target-with-a-pipe-in-its-way", TARGET_TEXT, "markdown", ALL, files={f"turn_1/files/.x.{o}.part": Pipe() for o in ALL} | {f"turn_1/files/x.{o}": Pipe() for o in ALL}),
    Attack("a-target-with-a-link-in-its-way", TARGET_TEXT, "markdown", ALL, files={f"turn_1/files/.x.{o}.part": Link(f"{PLACE}.txt") for o in ALL} | {f"turn_1/files/x.{o}": Link(f"{PLACE}.png") for o in ALL}),
    Attack("sources-that-lead-elsewhere", "# S\n\n[[S:1-6]]", "markdown", ALL, request={"sources": [
        {"sid": 1, "title": "<script>&'\"]]>", "url": "javascript:alert(1)"}, {"sid": 2, "title": "b", "url": "file:///etc/passwd"},
        {"sid": 3, "title": "c\x00\x0b\ud800", "url": "http://x.example/\"><evil/>"}, {"sid": 4, "title": "", "path": f"{UP}{PLACE[1:]}.png"},
        {"sid": 5, "title": "e" * 100_000, "url": "https://x.example/" + "y" * 100_000}, {"sid": 6, "title": "\u202ef", "url": "//x.example"},
    ], "options": {"include_sources_section": True, "include_sources_slide": True}}),  # fmt: skip
    Attack("marp-directives-outside", f"---\nmarp: true\nbackgroundImage: url({PLACE}.png)\nheader: '![]({PLACE}.png)'\nstyle: |\n  section {{ background: url(file://{PLACE}.png) }}\n---\n# A\n\n![bg](file://{PLACE}.png)\n\n<!-- _backgroundImage: \"url('file://{PLACE}.png')\" -->\n\n---\n\n![bg right](http://{HERE}/x)\n\n<!-- footer: '<img src=file://{PLACE}.png>' -->", "markdown", OFFICE),
    Attack("mermaid-that-reaches", f"```mermaid\n%%{{init: {{\"themeCSS\": \"@import url(file://{PLACE}.css)\", \"securityLevel\": \"loose\"}}}}%%\nflowchart TD\n A[\"<img src='file://{PLACE}.png'/>\"] --> B@{{ img: \"file://{PLACE}.png\", w: 60, h: 60 }}\n click A href \"javascript:alert(1)\"\n click B \"file:///etc/passwd\" _blank\n style A fill:url(file://{PLACE}.png)\n```", "markdown", ALL),
)  # fmt: skip
