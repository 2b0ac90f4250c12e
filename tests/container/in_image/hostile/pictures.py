# ruff: noqa: E501 - attacks are data, a line each
"""Pictures, drawings and fonts that are bombs, broken, or not what they say."""

import io
import struct
import zlib

from attack import ALL, Attack
from PIL import Image
from reaching import data_svg, svg_file


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(width: int, height: int, data: bytes = b"", extra: bytes = b"") -> bytes:
    """A PNG whose header says that size, whatever follows."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n"
        + header
        + extra
        + chunk(b"IDAT", data or zlib.compress(bytes(100)))
        + chunk(b"IEND", b"")
    )


def saved(form: str, size: tuple[int, int] = (40, 30), **options: object) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, "red").save(file, form, **options)
    return file.getvalue()


def gif_frames(count: int) -> bytes:
    """A GIF of many frames that claims a large screen."""
    frame = b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0"
    return b"GIF89a" + struct.pack("<HH", 9_000, 8_000) + b"\x80\0\0\0\0\0\xff\xff\xff" + frame * count + b"\x3b"


def shown(files: dict[str, bytes]) -> tuple[str, dict[str, bytes]]:
    """A document that shows pictures, and the pictures by their paths."""
    rows = "".join(f'<p>{name} <img src="{name}" alt="{name}"></p>' for name in files)
    return f"<h1>Pictures</h1>{rows}", {f"turn_1/files/{name}": data for name, data in files.items()}


def attack(
    name: str, files: dict[str, bytes], outputs: tuple[str, ...] = ALL, warns: tuple[str, ...] = ()
) -> Attack:
    content, beside = shown(files)
    return Attack(name, content, "html", outputs, beside, warns=warns)


WHOLE = saved("PNG", (300, 300))
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "'
    + "x" * 1000
    + '">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True))
    + "]>"
)
SVG_BOMBS = {
    "laughs.svg": svg_file("<text y='9'>&j;</text>", LAUGHS),
    "external.svg": svg_file("<text y='9'>&x;</text>", '<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///tmp/elsewhere/canary.txt">]>'),
    "parameter.svg": svg_file("<text y='9'>x</text>", '<!DOCTYPE svg [<!ENTITY % x SYSTEM "file:///tmp/elsewhere/canary.txt"> %x;]>'),
    "dtd.svg": svg_file("<text y='9'>x</text>", '<!DOCTYPE svg SYSTEM "file:///tmp/elsewhere/canary.txt">'),
    "public.svg": svg_file("<text y='9'>x</text>", '<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://127.0.0.1:8099/svg11.dtd">'),
    "include.svg": svg_file('<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file:///tmp/elsewhere/canary.txt" parse="text"/>'),
    "quadratic.svg": svg_file("<text y='9'>" + "&a;" * 20_000 + "</text>", '<!DOCTYPE svg [<!ENTITY a "' + "x" * 20_000 + '">]>'),
    "utf16.svg": ('<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg xmlns="http://www.w3.org/2000/svg">&x;</svg>').encode("utf-16"),
    "utf7.svg": b'<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE svg+AD4-<svg xmlns="http://www.w3.org/2000/svg"/>',
    "ebcdic.svg": '<?xml version="1.0" encoding="cp037"?><svg xmlns="http://www.w3.org/2000/svg"/>'.encode("cp037"),
    "late.svg": svg_file("<text y='9'>&x;</text>", "<!--" + "-x" * 400 + "--><!DOCTYPE svg [<!ENTITY x SYSTEM 'file:///tmp/elsewhere/canary.txt'>]>"),
    "lower.svg": svg_file("<text y='9'>x</text>", "<!doctype svg [<!entity x 'y'>]>"),
    "cut.svg": svg_file("<g><rect width='9' height='9'/>")[:-10], "none.svg": b"<svg", "words.svg": b"hello", "huge-number.svg": svg_file("<rect width='1e999' height='-1e999' x='nan' y='inf'/>"),
}  # fmt: skip
CHAIN = "".join(f'<g id="g{n}">{f"<use href={chr(34)}#g{n - 1}{chr(34)}/>" * 10}</g>' for n in range(1, 12))
EXPENSIVE_SVG = {
    "uses.svg": svg_file(f'<defs><rect id="g0" width="1" height="1"/>{CHAIN}</defs><use href="#g11"/>'),
    "loop.svg": svg_file('<g id="a"><use href="#b"/></g><g id="b"><use href="#a"/></g><use href="#a"/>'),
    "pattern-loop.svg": svg_file('<pattern id="p" width="1" height="1" patternUnits="userSpaceOnUse"><rect width="9" height="9" fill="url(#p)"/></pattern><rect width="80" height="60" fill="url(#p)"/>'),
    "mask-loop.svg": svg_file('<mask id="m"><rect mask="url(#m)" width="9" height="9"/></mask><rect mask="url(#m)" width="80" height="60"/>'),
    "clip-loop.svg": svg_file('<clipPath id="c"><rect clip-path="url(#c)" width="9" height="9"/></clipPath><rect clip-path="url(#c)" width="80" height="60"/>'),
    "marker-loop.svg": svg_file('<marker id="m" markerWidth="9" markerHeight="9"><path d="M0 0L9 9" marker-end="url(#m)"/></marker><path d="M0 0L9 9" marker-end="url(#m)"/>'),
    "gradient-loop.svg": svg_file('<linearGradient id="a" href="#b"/><linearGradient id="b" href="#a"/><rect fill="url(#a)" width="9" height="9"/>'),
    "href-itself.svg": svg_file('<use id="a" href="#a"/><text><textPath href="#a">x</textPath></text>'),
    "tiny-pattern.svg": svg_file('<pattern id="p" width="0.0001" height="0.0001" patternUnits="userSpaceOnUse"><rect width="1" height="1"/></pattern><rect width="80" height="60" fill="url(#p)"/>'),
    "filter.svg": svg_file('<filter id="f" x="-1000" y="-1000" width="9999" height="9999">' + '<feGaussianBlur stdDeviation="9999"/><feTurbulence numOctaves="9999" baseFrequency="9"/><feMorphology radius="9999"/>' * 40 + '</filter><rect filter="url(#f)" width="80" height="60"/>'),
    "path.svg": svg_file('<path d="M0 0' + "L9 9C1 2 3 4 5 6A1 1 0 0 1 9 9" * 20_000 + '"/>'),
    "dashes.svg": svg_file('<path stroke="red" stroke-dasharray="0.0001" d="M0 0L1000000 1000000"/>'),
    "deep.svg": svg_file("<g transform='scale(1.1)'>" * 3_000 + "<rect width='9' height='9'/>" + "</g>" * 3_000),
    "large.svg": b'<svg xmlns="http://www.w3.org/2000/svg" width="1000000000" height="1000000000" viewBox="0 0 1e9 1e9"><rect width="1e9" height="1e9"/></svg>',
    "nan.svg": b'<svg xmlns="http://www.w3.org/2000/svg" width="nan" height="1e400" viewBox="nan inf -1 0"><rect width="9" height="9" transform="matrix(nan 0 0 inf 1e308 1e308)"/></svg>',
    "thin.svg": b'<svg xmlns="http://www.w3.org/2000/svg" width="0.000001" height="100000"><rect width="9" height="9"/></svg>',
    "text.svg": svg_file("<text>" + "<tspan x='1'>x</tspan>" * 3_000 + "</text>"),
    "attributes.svg": svg_file("<rect " + " ".join(f"a{n}='x'" for n in range(5_000)) + "/>"),
}  # fmt: skip
FONTS = {
    "noise.ttf": bytes(range(256)) * 40, "cut.otf": b"OTTO\0\x0a\0\x80\0\x03\0\x20CFF " + b"\xff" * 200, "tables.ttf": b"\0\1\0\0\xff\xff\0\0\0\0\0\0" + b"glyf\0\0\0\0\x7f\xff\xff\xff\x7f\xff\xff\xff" * 500,
    "bomb.woff": b"wOFF\0\1\0\0" + struct.pack(">IHHIHHIIIII", 500, 1, 0, 0xFFFFFFF0, 1, 0, 0, 0, 0, 0, 0) + b"glyf" + struct.pack(">IIII", 64, 100, 0xFFFFFFF0, 0) + zlib.compress(bytes(100_000)),
    "bomb.woff2": b"wOF2\0\1\0\0" + struct.pack(">IHHIIHHIIIII", 500, 1, 0, 0xFFFFFFF0, 300, 1, 0, 0, 0, 0, 0, 0) + b"\x3f" * 300, "empty.ttf": b"", "text.ttf": b"hello",
}  # fmt: skip

PICTURES = (
    attack("a-png-of-fifty-thousand-a-side", {"bomb.png": png_of(50_000, 50_000)}, warns=("asset_too_large",)),
    attack("a-png-that-claims-too-little-and-unpacks-to-much", {"zip.png": png_of(10, 10, zlib.compress(bytes(100_000_000)))}),
    attack("a-png-of-comments-that-unpack", {"text.png": png_of(2, 2, zlib.compress(bytes(18)), chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(80_000_000))) + chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(80_000_000))))}),
    attack("pngs-of-no-size-and-thin-ones", outputs=("pdf", "docx", "pptx"), files={"zero.png": png_of(0, 0), "wide.png": png_of(2**31 - 1, 1), "line.png": saved("PNG", (60_000, 1)), "tall.png": saved("PNG", (1, 60_000))}),
    attack("pictures-cut-short", {f"{n}.png": WHOLE[:n] for n in (1, 8, 20, 33, 60, len(WHOLE) // 2, len(WHOLE) - 5)} | {f"{f}.x": saved(f)[:-20] for f in ("GIF", "JPEG", "WEBP", "TIFF", "BMP", "ICO")}),
    attack("pictures-of-the-wrong-type", {"gif.png": saved("GIF"), "png.svg": saved("PNG"), "svg.png": svg_file("<rect width='9' height='9'/>"), "html.png": b"<html><img src='file:///etc/passwd'>", "zip.png": b"PK\3\4" + bytes(400), "pdf.png": b"%PDF-1.7\n1 0 obj<</Type/Catalog>>", "ps.png": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) run", "eps.eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage"}),
    attack("rare-formats", {"i.ico": saved("ICO"), "w.webp": saved("WEBP"), "t.tiff": saved("TIFF"), "b.bmp": saved("BMP"), "p.ppm": saved("PPM"), "t.tga": saved("TGA"), "s.sgi": saved("SGI"), "d.dds": saved("DDS"), "c.icns": saved("ICNS", (16, 16)), "j.jp2": b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(200), "x.fli": struct.pack("<IHHHH", 0xFFFFFF, 0xAF12, 60_000, 9_000, 9_000) + bytes(200)}),
    attack("a-gif-of-many-frames", {"many.gif": gif_frames(5_000)}, ("pdf", "docx")),
    attack("a-tiff-of-huge-strips", {"t.tif": b"II*\0\x08\0\0\0\x04\0" + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in ((256, 60_000), (257, 60_000), (273, 8), (279, 0xFFFFFFF0))) + bytes(4)}),
    attack("an-ico-of-many-pictures", {"i.ico": b"\0\0\1\0\xff\xff" + struct.pack("<BBBBHHII", 0, 0, 0, 0, 1, 32, 100, 6) * 5_000}),
    Attack("data-uris-of-all-kinds", "<h1>Data</h1>" + "".join(f'<img src="{u}">' for u in ("data:", "data:,", "data:image/png;base64,", "data:image/png;base64,%%%", "data:image/png,hello", "data:text/html,<b>", "data:image/svg+xml,<svg", "data:;base64;base64,AAAA", "DATA:IMAGE/PNG;BASE64,iVBORw0KGgo=", "data:image/svg+xml;charset=utf-7,x", f"data:image/png;base64,{'A' * 200_000}", data_svg("<text y='9'>&#0;&#xFFFF;</text>")))),
    attack("xml-bombs", SVG_BOMBS),
    *(attack(f"drawing-{name.removesuffix('.svg')}", {name: data}, ("pdf", "docx")) for name, data in EXPENSIVE_SVG.items()),
    Attack("hostile-fonts", "<style>" + "".join(f"@font-face {{ font-family: f{n}; src: url({name}) }} .f{n} {{ font-family: f{n} }}" for n, name in enumerate(FONTS)) + "</style>" + "".join(f"<p class=f{n}>Text in {name}</p>" for n, name in enumerate(FONTS)), outputs=ALL, files={f"turn_1/files/{name}": data for name, data in FONTS.items()}),
    Attack("a-font-face-a-thousand-times", "<style>" + "".join(f"@font-face {{ font-family: f{n}; src: url(noise.ttf) }}" for n in range(300)) + "</style><p style='font-family:f1'>x", outputs=("pdf",), files={"turn_1/files/noise.ttf": FONTS["noise.ttf"]}),
    Attack("one-picture-a-thousand-times", "<p>" + '<img src="p.png" alt="p" width=20>' * 1_000, outputs=("pdf", "docx"), files={"turn_1/files/p.png": saved("PNG", (400, 300))}),
    Attack("missing-pictures-by-the-thousand", "".join(f'<img src="nowhere/{n}.png">' for n in range(600)), outputs=("pdf", "docx"), warns=("missing_asset",)),
    Attack("pictures-of-impossible-sizes", "".join(f'<p><img src="p.png" style="{s}" {a}></p>' for s, a in (("width:1e9px;height:1e9px", ""), ("", "width=99999999 height=1"), ("width:0;height:0", ""), ("width:calc(1px/0)", ""), ("width:-5px", ""), ("height:1000000%", ""), ("aspect-ratio:0/0", ""), ("", "width=1e400 height=-3"), ("transform:scale(1e9)", ""))), outputs=ALL, ends={"png": "image_too_large"}, files={"turn_1/files/p.png": saved("PNG")}),
)  # fmt: skip
