import io
import struct
import zlib

import pytest
from inspector_run import Case, compared, verdicts_of
from inspector_samples import PNG_HEADER, image
from PIL import Image

NOT_BLANK = {"not_blank": True}
BLANK = "is blank: all its pixels are alike"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" %b>%b</svg>'
BILLION_LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY %c "%b">' % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9))
    + b']><svg xmlns="http://www.w3.org/2000/svg"><text>&j;</text></svg>'
)
XXE = b'<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]><svg xmlns="http://www.w3.org/2000/svg"><text>&x;</text></svg>'


def png_chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png_claiming(width: int, height: int) -> bytes:
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return PNG_HEADER + header + png_chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + png_chunk(b"IEND", b"")


def animation(kind: str, levels: list[int]) -> bytes:
    frames = [Image.new("L", (8, 8), level) for level in levels]
    out = io.BytesIO()
    frames[0].save(out, kind, save_all=True, append_images=frames[1:], lossless=True)
    return out.getvalue()


def webp(*, lossless: bool) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (300, 17), (9, 9, 9)).save(out, "WEBP", lossless=lossless)
    return out.getvalue()


def webp_claiming(side: int) -> bytes:
    """An animation of one small frame on a square canvas of that side."""
    canvas = (side - 1).to_bytes(3, "little") * 2
    picture = image("WEBP")[12:]
    place = bytes(6) + (39).to_bytes(3, "little") + (29).to_bytes(3, "little") + bytes(4)
    body = b"WEBPVP8X" + struct.pack("<I", 10) + b"\x02\0\0\0" + canvas + b"ANIM" + struct.pack("<I", 6) + bytes(6)
    body += b"ANMF" + struct.pack("<I", len(place) + len(picture)) + place + picture
    return b"RIFF" + struct.pack("<I", len(body)) + body


def transparent() -> bytes:
    picture = Image.new("RGBA", (8, 8), (1, 2, 3, 0))
    picture.putpixel((0, 0), (200, 0, 0, 0))
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


GOOD = [
    Case(f"opens a {extension}", f"a.{extension}", image(kind), None, NOT_BLANK, {"width": 40, "height": 30})
    for extension, kind in [
        ("png", "PNG"),
        ("jpg", "JPEG"),
        ("jpeg", "JPEG"),
        ("gif", "GIF"),
        ("webp", "WEBP"),
        ("bmp", "BMP"),
        ("tif", "TIFF"),
        ("tiff", "TIFF"),
        ("PNG", "PNG"),
    ]
]
EVEN = [
    Case(f"sees that a {extension} is all one colour", f"a.{extension}", image(kind, even=True), BLANK, NOT_BLANK)
    for extension, kind in [("png", "PNG"), ("jpg", "JPEG"), ("gif", "GIF"), ("webp", "WEBP"), ("bmp", "BMP")]
]
MODES = [
    Case(f"sees content in mode {mode}", "a.png", image("PNG", mode=mode), None, NOT_BLANK)
    for mode in ("L", "P", "RGBA")
]
CUT = [
    Case(
        f"sees that a {extension} is cut off",
        f"a.{extension}",
        image(kind, (300, 200))[:-size],
        f"could not be opened as a {name} image: …",
    )
    for extension, kind, name, size in [
        ("png", "PNG", "PNG", 40),
        ("jpg", "JPEG", "JPEG", 900),
        ("gif", "GIF", "GIF", 300),
        ("webp", "WEBP", "WebP", 200),
        ("bmp", "BMP", "BMP", 2000),
        ("tiff", "TIFF", "TIFF", 100000),
    ]
]
RASTER = [
    Case(
        "sees that a PNG's end chunk is missing",
        "a.png",
        image("PNG")[:-12],
        "could not be opened as a PNG image: …",
    ),
    Case(
        "sees that only the start is a PNG's",
        "a.png",
        PNG_HEADER + b"\0" * 50,
        "is damaged: it starts like a PNG image, and what follows is none",
    ),
    Case("sees that a GIF is not a PNG", "a.png", image("GIF"), "is not a PNG image: it is a GIF image"),
    Case("sees that a PNG is not a JPEG", "a.jpg", image("PNG"), "is not a JPEG image: it is a PNG image"),
    Case("sees that a WebP is not a GIF", "a.gif", image("WEBP"), "is not a GIF image: it is a WebP image"),
    Case(
        "sees that a text is not a PNG",
        "a.png",
        b"BMW sells cars",
        "is not a PNG image: it starts with 'BMW sells cars'",
    ),
    Case(
        "refuses 50,000 x 50,000 pixels before it decodes them",
        "a.png",
        png_claiming(50_000, 50_000),
        "is 50,000 x 50,000 px, 2,500,000,000 pixels: more than the 200,000,000 decoded",
        facts={"width": 50_000, "height": 50_000},
    ),
    Case(
        "refuses the largest canvas of a WebP before room is made for it",
        "a.webp",
        webp_claiming(16_384),
        "is 16,384 x 16,384 px, 268,435,456 pixels: more than the 200,000,000 decoded",
        facts={"width": 16_384, "height": 16_384},
    ),
    Case(
        "opens a small picture on a larger canvas of a WebP",
        "a.webp",
        webp_claiming(100),
        None,
        NOT_BLANK,
        {"width": 100, "height": 100},
    ),
    *[
        Case(
            f"measures a WebP that is {'lossless' if lossless else 'lossy'}",
            "a.webp",
            webp(lossless=lossless),
            None,
            {"min_width": 300},
            {"width": 300, "height": 17},
        )
        for lossless in (True, False)
    ],
    Case(
        "names the width and the bound",
        "a.png",
        image("PNG"),
        "is 40 px wide, the contract asks for at least 41 px",
        {"min_width": 41, "min_height": 31},
    ),
    Case(
        "names the height and the bound",
        "a.png",
        image("PNG"),
        "is 30 px high, the contract asks for at least 31 px",
        {"min_width": 40, "min_height": 31},
    ),
    Case("holds the size to its bounds", "a.png", image("PNG"), None, {"min_width": 40, "min_height": 30}),
    Case("lets one colour pass if nobody minds", "a.png", image("PNG", even=True)),
    Case("takes hidden colours under full transparency for blank", "a.png", transparent(), BLANK, NOT_BLANK),
    Case("sees frames that differ from each other", "a.gif", animation("GIF", [0, 200]), None, NOT_BLANK),
    Case("sees an animation of one colour", "a.webp", animation("WEBP", [9, 9]), BLANK, NOT_BLANK),
]
VECTOR = [
    Case(
        "measures an SVG by its attributes",
        "a.svg",
        SVG % (b'width="2in" height="30"', b'<path d="M0 0h9"/>'),
        None,
        NOT_BLANK | {"min_width": 192, "min_height": 30},
        {"width": 192, "height": 30},
    ),
    Case(
        "measures an SVG by its viewBox",
        "a.svg",
        SVG % (b'width="100%" viewBox="0 0 640 480"', b""),
        None,
        {},
        {"width": 640, "height": 480},
    ),
    Case(
        "names the width of an SVG and the bound",
        "a.svg",
        SVG % (b'width="50" height="9"', b""),
        "is 50 px wide, the contract asks for at least 51 px",
        {"min_width": 51},
    ),
    Case(
        "says that an SVG states no size",
        "a.svg",
        SVG % (b"", b""),
        "states no width, the contract asks for at least 1 px",
        {"min_width": 1},
        {"width": None},
    ),
    Case(
        "sees that an SVG draws nothing",
        "a.svg",
        SVG % (b"", b"<g/><text> </text>"),
        "is blank: it draws nothing",
        NOT_BLANK,
    ),
    Case(
        "takes what is only defined for blank",
        "a.svg",
        SVG % (b"", b"<defs><path/></defs>"),
        "is blank: it draws nothing",
        NOT_BLANK,
    ),
    Case(
        "refuses an SVG outside of its namespace",
        "a.svg",
        b"<svg><path/></svg>",
        "is not an SVG drawing: its root element is 'svg'; the SVG namespace is missing",
    ),
    Case(
        "refuses another root",
        "a.svg",
        b"<html><body/></html>",
        "is not an SVG drawing: its root element is 'html'",
    ),
    Case("refuses an SVG that is not well-formed", "a.svg", SVG[:-6] % (b"", b""), "is not well-formed XML: …"),
    Case("refuses a PNG named .svg", "a.svg", image("PNG"), "is not an SVG drawing: it is a PNG image"),
    Case(
        "refuses a billion laughs",
        "a.svg",
        BILLION_LAUGHS,
        "declares XML entities, which are not read for safety",
    ),
    Case("refuses an external entity", "a.svg", XXE, "declares XML entities, which are not read for safety"),
    Case(
        "refuses entities in UTF-16 as well",
        "a.svg",
        BILLION_LAUGHS.decode().replace('<?xml version="1.0"?>', "").encode("utf-16"),
        "declares XML entities, which are not read for safety",
    ),
    Case(
        "lets the SVG document type of old pass, fetching nothing",
        "a.svg",
        b'<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">'
        + SVG % (b"", b"<path/>"),
        None,
        NOT_BLANK,
    ),
    Case(
        "opens an SVG that holds a large picture",
        "a.svg",
        SVG % (b"", b'<image href="data:image/png;base64,%b"/>' % (b"A" * 12_000_000)),
        None,
        NOT_BLANK,
    ),
    Case("opens XML", "a.xml", b"<?xml version='1.0'?><a><b/></a>", None, NOT_BLANK),
    Case("opens an XML schema", "a.xsd", b"<a><b/></a>", None, NOT_BLANK),
    Case("opens a GPX track", "a.gpx", b"<gpx version='1.1'><trk/></gpx>", None, NOT_BLANK),
    Case("refuses text named .kml", "a.kml", b"hello", "is not a KML document: it starts with 'hello'"),
    Case("sees that XML is blank", "a.xml", b"<a> </a>", "is blank: its root element holds nothing", NOT_BLANK),
    Case("refuses XML that is not well-formed", "a.xml", b"<a><b></a>", "is not well-formed XML: …"),
    Case("refuses text named .xml", "a.xml", b"hello", "is not an XML document: it starts with 'hello'"),
    Case("refuses entities in XML", "a.xml", XXE, "declares XML entities, which are not read for safety"),
    Case(
        "answers for XML that is nested a million deep",
        "a.xml",
        b"<a>" * 1_000_000 + b"</a>" * 1_000_000,
        "is not well-formed XML: Excessive depth in document: …",
    ),
]
CASES = [*GOOD, *EVEN, *MODES, *CUT, *RASTER, *VECTOR]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    return verdicts_of(CASES, tmp_path_factory.mktemp("out"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_image(case, verdicts):
    actual, expected = compared(verdicts[case.claim], case)
    assert actual == expected
