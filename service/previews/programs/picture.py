"""Runs in a sandbox: a picture, scaled down; of one with several frames the first ones as pages. Also SVG."""

from typing import Any

from PIL import Image

from proofbox.service.previews.programs.pages import CannotShowError, PageWriter, run_program

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")


def show_picture(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request.

    Raises:
        CannotShowError: the drawing is not valid.
    """
    writer = PageWriter(request)
    if request["kind"] == "svg":
        writer.numbers(1)
        writer.add(_draw_svg(request["input"], writer.width_px))
        return writer.answer(1, exact=True)
    with Image.open(request["input"], formats=_FORMATS) as picture:
        total = getattr(picture, "n_frames", 1) if picture.format == "TIFF" else 1
        for number in writer.numbers(total):
            picture.seek(number)
            writer.add(picture.copy())
    return writer.answer(total, exact=True)


def _draw_svg(path: str, width_px: int) -> Image.Image:
    import io  # noqa: PLC0415

    import resvg_py  # noqa: PLC0415 - other pictures are shown without it

    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    try:
        drawn = resvg_py.svg_to_bytes(svg_string=text, width=width_px)
    except (ValueError, OverflowError, RuntimeError) as exc:
        raise CannotShowError("it is not a valid SVG drawing") from exc
    return Image.open(io.BytesIO(bytes(drawn)), formats=("PNG",))


if __name__ == "__main__":
    run_program(show_picture)
