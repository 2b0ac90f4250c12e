"""``/forms/chromium/screenshot``: a page of HTML, or of HTML and Markdown, to a picture."""

from proofbox.service.facades.gotenberg.browser_fields import read_browser_fields
from proofbox.service.facades.gotenberg.conversion import INDEX, Source, page_of
from proofbox.service.facades.gotenberg.fields import FieldReader
from proofbox.service.facades.gotenberg.form import FormFile
from proofbox.service.facades.gotenberg.pdf_fields import refuse_unsupported
from proofbox.service.facades.gotenberg.work import Made, render, run_program, with_warnings
from proofbox.service.jobs.one_shot import OneShot

_SIDE_PX_MIN, _SIDE_PX_MAX = 16, 10_000
_SELECTOR_CHARS_MAX = 256


async def take_screenshot(run: OneShot, reader: FieldReader, source: Source) -> Made:
    """Draws a page: its whole height, or with ``clip`` what the viewport shows.

    Raises:
        InvalidFormError, RequestRefusedError: the form is wrong, or its page cannot be rendered.
        ServiceError: the service cannot do it now.
    """
    reader.require_file(INDEX)
    if source == "markdown":
        reader.require_files(".md")
    is_strict = read_browser_fields(reader, media="screen")
    refuse_unsupported(reader)
    selector = reader.text("selector").strip()
    if len(selector) > _SELECTOR_CHARS_MAX:
        reader.refuse(f"form field 'selector' is invalid (it has more than {_SELECTOR_CHARS_MAX} characters)")
    picture_format = reader.choice("format", "png", ("png", "jpeg", "webp"))
    quality = reader.integer("quality", 100, 0, 100)
    params = {
        "format": "html",
        "width": reader.integer("width", 800, _SIDE_PX_MIN, _SIDE_PX_MAX),
        "height": reader.integer("height", 600, _SIDE_PX_MIN, _SIDE_PX_MAX),
        "device_scale_factor": reader.number("deviceScaleFactor", 1.0, 1.0, 4.0),
        "fit": "viewport" if reader.boolean("clip") else "page",
        "background": "transparent" if reader.boolean("omitBackground") else "white",
        "padding_px": 0,
        "selector": selector or None,
    }
    reader.finish()
    html, assets = await page_of(run, reader, source)
    made = await render(run, "png", {"content": html, **params}, assets, is_strict=is_strict)
    if picture_format != "png":
        request = {"format": picture_format, "quality": quality}
        drawn = FormFile("files", "picture.png", made.path)
        made = with_warnings(await run_program(run, "picture", request, [drawn]), made.warnings)
    return with_warnings(made, reader.warnings)
