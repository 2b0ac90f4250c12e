"""Pages to pictures: size, format, clip, background."""

import io

import pytest
from PIL import Image

from tests.container.gotenberg.conftest import Post

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

HTML = "chromium/screenshot/html"
TALL = b"<html><body style='margin: 0'><div style='height: 1000px; background: #f00'></div></body></html>"


def picture_of(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content))


@pytest.mark.parametrize(
    ("fields", "size"),
    [
        ({}, (800, 1000)),
        ({"clip": "true"}, (800, 600)),
        ({"width": "320", "height": "1200"}, (320, 1200)),
        ({"width": "320", "height": "240", "clip": "true", "deviceScaleFactor": "2"}, (640, 480)),
    ],
)
async def test_a_picture_has_the_size_of_the_form(
    post: Post, fields: dict[str, str], size: tuple[int, int]
) -> None:
    answer = await post(HTML, ("index.html", TALL), **fields)
    assert answer.headers["Content-Type"] == "image/png"
    picture = picture_of(answer.content)
    assert (picture.format, picture.size) == ("PNG", size)
    assert picture.convert("RGB").getpixel((10, 10)) == (255, 0, 0)


@pytest.mark.parametrize(("name", "kind"), [("jpeg", "JPEG"), ("webp", "WEBP"), ("png", "PNG")])
async def test_a_picture_has_the_format_of_the_form(post: Post, name: str, kind: str) -> None:
    answer = await post(HTML, ("index.html", TALL), format=name, quality="80")
    picture = picture_of(answer.content)
    assert (picture.format, picture.size) == (kind, (800, 1000))
    assert answer.headers["Content-Type"] == f"image/{name}"
    assert f'filename="result.{name}"' in answer.headers["Content-Disposition"]


async def test_quality_makes_a_jpeg_smaller(post: Post) -> None:
    page = ("index.html", b"<p>" + b"word &eacute; <b>bold</b> " * 300)
    low, high = [await post(HTML, page, format="jpeg", quality=quality) for quality in ("5", "95")]
    assert len(low.content) * 2 < len(high.content)


async def test_a_selector_names_the_element(post: Post) -> None:
    page = b"<body><p>x</p><div id='a' style='width: 120px; height: 70px; background: #00f'></div></body>"
    answer = await post(HTML, ("index.html", page), selector="#a")
    assert picture_of(answer.content).size == (120, 70)
    refused = await post(HTML, ("index.html", page), selector="#gone", status=400)
    assert "#gone" in refused.text


async def test_the_background_may_be_left_out(post: Post) -> None:
    answer = await post(HTML, ("index.html", b"<p>x"), omitBackground="true")
    assert picture_of(answer.content).convert("RGBA").getpixel((790, 590)) == (255, 255, 255, 0)


async def test_markdown_is_drawn(post: Post) -> None:
    page = ("index.html", b'<style>h1 { background: #0f0 }</style>{{ toHTML "a.md" }}')
    answer = await post("chromium/screenshot/markdown", page, ("a.md", b"# Head"), clip="true")
    colours = picture_of(answer.content).convert("RGB").getcolors(1 << 20)
    assert (0, 255, 0) in {colour for _, colour in colours or ()}
