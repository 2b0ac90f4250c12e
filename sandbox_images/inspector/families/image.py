"""Raster images: Pillow must find the extension's own format, and decode every pixel of it."""

from __future__ import annotations

from typing import Any

from model import Problem, Subject, Unmet
from PIL import Image, UnidentifiedImageError

_PILLOW_FORMATS = {
    "image/png": "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
}
_WEBP_HEAD_BYTES = 30
_WEBP_SIDE_BITS = 0x3FFF

_STRIP_ROWS = 512
"""Rows examined at once: converting a whole picture would double its memory."""


def inspect(subject: Subject) -> None:
    """Decode the image (``facts.width``, ``facts.height``: pixels as stored, before any EXIF rotation).

    Frames of an animation are decoded until the pixel bound is spent; one alone must stay within it. An image
    is blank if all its frames are of one single colour, or wholly transparent.
    """
    pillow_format = _PILLOW_FORMATS[subject.format.mime]
    # Our own bound decides, with a sentence of its own; Pillow's would warn first and raise at twice its figure.
    Image.MAX_IMAGE_PIXELS = None
    if pillow_format == "WEBP":
        _refuse_too_large(subject, _webp_canvas(subject.head(_WEBP_HEAD_BYTES)))
    with _open(subject, pillow_format) as image:
        _refuse_too_large(subject, image.size)
        blank = _decode(image, subject.limits.image_pixels_max)
    if pillow_format == "PNG":
        # Decoding stops at the last pixel; this reads on to the end chunk and checks every checksum.
        subject.file.seek(0)
        Image.open(subject.file, formats=["PNG"]).verify()
    if blank and subject.must_not_be_blank():
        raise Unmet("is blank: all its pixels are alike")


def _refuse_too_large(subject: Subject, size: tuple[int, int]) -> None:
    """Record an image's size, and refuse it if it has more pixels than are decoded."""
    width, height = size
    subject.facts.update(width=width, height=height)
    pixels, pixels_max = width * height, subject.limits.image_pixels_max
    if pixels > pixels_max:
        raise Problem(f"is {width:,} x {height:,} px, {pixels:,} pixels: more than the {pixels_max:,} decoded")


def _webp_canvas(head: bytes) -> tuple[int, int]:
    """Return the canvas that a WebP file declares; one of 1 x 1 px where the head is none, which Pillow reports.

    Pillow makes room for the whole canvas when it opens such a file, before its size could be asked for. The
    offsets are those of RFC 9649, sections 2.5 to 2.7.
    """
    if head[12:16] == b"VP8X" and len(head) == _WEBP_HEAD_BYTES:
        return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
    if head[12:16] == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return 1 + (bits & _WEBP_SIDE_BITS), 1 + (bits >> 14 & _WEBP_SIDE_BITS)
    if head[12:16] == b"VP8 ":
        sides = head[26:28], head[28:30]
        width, height = (int.from_bytes(side, "little") & _WEBP_SIDE_BITS for side in sides)
        return width, height
    return 1, 1


def _open(subject: Subject, pillow_format: str) -> Image.Image:
    try:
        return Image.open(subject.file, formats=[pillow_format])
    except UnidentifiedImageError as error:
        raise subject.wrong_format() from error


def _decode(image: Image.Image, pixels_max: int) -> bool:
    """Decode the frames within the bound; returns whether there is nothing to be seen in them."""
    blank, spent, frame = True, 0, 0
    colours: set[tuple[float, ...]] = set()
    while spent + image.width * image.height <= pixels_max:
        image.load()
        spent += image.width * image.height
        blank = blank and _is_even(image, colours)
        frame += 1
        try:
            image.seek(frame)
        except EOFError:
            break
    return blank


def _is_even(image: Image.Image, colours: set[tuple[float, ...]]) -> bool:
    """Return whether a frame shows one colour only, the same as the frames before it; adds it to ``colours``."""
    for top in range(0, image.height, _STRIP_ROWS):
        strip = image.crop((0, top, image.width, min(top + _STRIP_ROWS, image.height)))
        if strip.mode in {"P", "PA", "LA", "La", "RGBa"} or "transparency" in strip.info:
            strip = strip.convert("RGBA")
        ranges = _ranges(strip)
        if strip.mode == "RGBA" and ranges[3] == (0, 0):
            colours.add((0,))
        elif any(low != high for low, high in ranges):
            return False
        else:
            colours.add(tuple(low for low, _ in ranges))
        if len(colours) > 1:
            return False
    return True


def _ranges(image: Image.Image) -> list[tuple[float, float]]:
    """Return the lowest and highest value of each band; Pillow leaves out the list for a single one."""
    extrema: Any = image.getextrema()
    return list(extrema) if isinstance(extrema[0], tuple) else [extrema]
