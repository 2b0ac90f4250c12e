"""What programs import of IPython, where that is not installed: ``display`` and the values that it shows."""

from typing import Any


class _Value:
    """A text, or the bytes of a picture, in a form that can be shown."""

    def __init__(
        self, data: Any = None, url: str | None = None, filename: str | None = None, **_options: Any
    ) -> None:
        if isinstance(data, str) and filename is None and data.startswith("/") and "\n" not in data:
            filename, data = data, None
        if filename is not None:
            with open(filename, "rb") as file:
                data = file.read()
        self.data = data if data is not None else url

    def _as_text(self) -> str:
        return self.data.decode(errors="replace") if isinstance(self.data, bytes) else str(self.data)

    def __repr__(self) -> str:
        return self._as_text()


class HTML(_Value):
    """A page."""

    def _repr_html_(self) -> str:
        return self._as_text()


class SVG(HTML):
    """A drawing."""


class Image(_Value):
    """A picture: of its bytes, or of a file."""

    def __init__(
        self, data: Any = None, url: str | None = None, filename: str | None = None, **options: Any
    ) -> None:
        if isinstance(data, str):
            filename, data = data, None
        super().__init__(data, url, filename, **options)

    def _repr_png_(self) -> bytes | None:
        from io import BytesIO  # noqa: PLC0415 - pictures alone need these two

        from PIL import Image as images  # noqa: N813, PLC0415 - a module

        if not isinstance(self.data, bytes) or self.data.startswith(b"\x89PNG"):
            return self.data if isinstance(self.data, bytes) else None
        buffer = BytesIO()
        images.open(BytesIO(self.data)).convert("RGBA").save(buffer, "PNG")
        return buffer.getvalue()

    def _repr_html_(self) -> str:
        return f'<img src="{self._as_text()}">'


class Markdown(_Value):
    """A text."""


class Latex(Markdown):
    """A formula."""


class Math(Latex):
    """A formula."""


class JSON(Markdown):
    """A value of JSON."""


class Pretty(Markdown):
    """A text."""


class Code(Markdown):
    """A program."""


def clear_output(*_args: Any, **_options: Any) -> None:
    """Does nothing: what was shown stays."""


def fill(module: Any, display: Any) -> None:
    """Gives a module of IPython what programs import from it."""
    module.display = display
    if module.__name__ == "IPython":
        module.get_ipython = lambda: None
        module.version_info = (9, 0, 0, "")  # matplotlib asks for it
        return
    module.clear_output = clear_output
    for shown in (HTML, SVG, Image, Markdown, Latex, Math, JSON, Pretty, Code):
        shown.__module__ = "IPython.display"
        setattr(module, shown.__name__, shown)
