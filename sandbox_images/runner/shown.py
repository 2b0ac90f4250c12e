"""What a program shows: a sandbox has no screen, so it becomes files of the turn, ``shown_1.png`` and so on.

Libraries are changed when the program imports them, or as soon as it starts if they are loaded already: a program
that shows nothing pays for none. A line of JSON per file, note and value goes into the record, which process 1
reads when the program has ended, whatever ended it.
"""

import atexit
import contextlib
import json
import os
import sys
from types import ModuleType
from typing import Any

import notebook_display
from last_value import describe_value
from shown_figures import Figures

_FILES_MAX = 20
_BYTES_MAX = 64 * 1024 * 1024
_PIXELS_MAX = 16_000_000
_DATA_OF = frozenset({"pandas", "polars", "numpy", "sklearn", "pyarrow", "xarray", "duckdb", "sympy", "builtins"})
_PICTURES_OF = frozenset({"plotly", "altair", "folium", "branca", "bokeh", "pydeck", "pyvis", "graphviz"})
_STYLER = "pandas.io.formats.style"
_TOO_MANY = (
    f"only the first {_FILES_MAX} things that the program shows are stored, and 64 MiB; save others to files/"
)


class Shown:
    """Stores what one program shows.

    Args:
        folder: where the files are written: ``files/`` of the turn.
        record: the path of the record.
        stem: what the names begin with.
        is_child: another program has started this one, and nothing of ours is there at its end.
    """

    def __init__(self, folder: str, record: str, stem: str, *, is_child: bool = False) -> None:
        self._folder = folder
        self._record = record
        self._stem = stem if stem.isidentifier() else "shown"
        self._is_child = is_child
        self._bytes = 0
        self._is_full = False
        self._digests: set[int] = set()
        self._figures = Figures(self)
        self._pid = os.getpid()

    # ---- records and files ----

    def note(self, text: str) -> None:
        """Records a sentence for the report."""
        self._write_record({"note": text})

    def store(self, content: bytes, suffix: str) -> str | None:
        """Stores a file, unless the same was stored just so; its name, None if it is one too many."""
        digest = hash((suffix, content))
        if digest in self._digests:
            return None
        if self._count_stored() >= _FILES_MAX or self._bytes + len(content) > _BYTES_MAX:
            if not self._is_full:
                self._is_full = True
                self.note(_TOO_MANY)
            return None
        name, fd = self._create(suffix)
        with open(fd, "wb") as file:
            file.write(content)
        self._digests.add(digest)
        self._bytes += len(content)
        self._write_record({"file": name})
        return name

    def _count_stored(self) -> int:
        """How many files there are, those of other processes of the program too."""
        try:
            with open(self._record, "rb") as file:
                return file.read().count(b'{"file": ')
        except OSError:
            return 0

    def _create(self, suffix: str) -> tuple[str, int]:
        taken = {name.partition(".")[0] for name in os.listdir(self._folder)}
        number = 1
        while True:
            name = f"{self._stem}_{number}"
            number += 1
            if name in taken:
                continue
            try:
                path = os.path.join(self._folder, name + suffix)
                return name + suffix, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            except FileExistsError:  # another process of the program was faster
                continue

    def _write_record(self, entry: dict[str, str]) -> None:
        try:
            fd = os.open(self._record, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError:  # too many files are open, or no space is left
            return
        with open(fd, "wb", buffering=0) as file:
            file.write(json.dumps(entry).encode() + b"\n")

    def attempt(self, what: str, action: Any, *args: Any) -> str | None:
        """The name of the file that an action stores, if any; a failure costs no more than that, and is noted."""
        try:
            name: str | None = action(*args)
        except Exception as exc:  # noqa: BLE001 - of a library, or no space is left
            self.note(f"{what} cannot be shown: {type(exc).__name__}: {str(exc)[:200]}")
            return None
        return name

    # ---- values ----

    def display(self, *values: object, **_options: object) -> None:
        """Shows values as IPython's function of that name: pictures and pages become files, others are printed."""
        for value in values:
            self.display_one(value)

    def display_one(self, value: Any) -> None:
        """Shows one value."""
        top = type(value).__module__.partition(".")[0]
        if self._is_picture(value) or (top not in _DATA_OF and _has(value, "_repr_png_", "_repr_html_")):
            self.attempt(f"a {type(value).__name__}", self._store_value, value)
        else:
            text = str(value) if isinstance(value, str) or top in _DATA_OF - {"builtins"} else repr(value)
            sys.stdout.write(f"{text}\n")

    def end(self, value: object = None) -> None:
        """Stores what is left open, and the value of the program's last line."""
        if os.getpid() != self._pid:
            return  # a process that the program has forked
        self.attempt("what is left open", self._figures.show_left_open)
        if value is not None:
            self.attempt("the last value", self._record_value, value)

    def _record_value(self, value: object) -> None:
        text = describe_value(value) if not self._is_picture(value) else self._describe_picture(value)
        self._write_record({"value": text})

    def _describe_picture(self, value: Any) -> str:
        name = self.attempt(f"a {type(value).__name__}", self._store_value, value)
        kind = f"{type(value).__module__}.{type(value).__name__}"
        return f"<{kind}>" if name is None else f"<{kind}, shown as {name}>"

    def _is_picture(self, value: object) -> bool:
        """Whether a notebook shows a picture or a page in place of the text of a value."""
        name = type(value).__module__
        top = name.partition(".")[0]
        return (
            name.startswith(_STYLER)
            or (top in _PICTURES_OF and _has(value, "to_html", "_repr_html_", "_repr_svg_"))
            or _is_a(value, "matplotlib.figure", "Figure")
            or _is_a(value, "PIL.Image", "Image")
            or (top == "IPython" and _has(value, "_repr_html_"))
            or (top not in _DATA_OF and _has(value, "_repr_png_"))
        )

    def _store_value(self, value: Any) -> str | None:
        if _is_a(value, "matplotlib.figure", "Figure"):
            return self._figures.store(value)
        if _is_a(value, "PIL.Image", "Image"):
            return self.store_image(value)
        if _has(value, "_repr_png_") and (content := value._repr_png_()):
            return self.store(content[0] if isinstance(content, tuple) else content, ".png")
        return self.store_page(value)

    def store_page(self, value: Any) -> str | None:
        """Stores the page of a value: a document that needs nothing else, where the library can make one."""
        top = type(value).__module__.partition(".")[0]
        if top == "plotly":
            text = value.to_html(include_plotlyjs=True, full_html=True)
        elif top == "bokeh":
            from bokeh.embed import file_html  # noqa: PLC0415 - the value is of that library
            from bokeh.resources import INLINE  # noqa: PLC0415 - as above

            text = file_html(value, INLINE)
        elif top in {"folium", "branca"} and _has(value, "get_root"):
            text = value.get_root().render()
        elif _has(value, "to_html"):
            text = value.to_html()
        else:
            text = value._repr_html_() if _has(value, "_repr_html_") else value._repr_svg_()
        if "<html" not in text[:2_000].lower():
            text = f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"></head><body>\n{text}\n</body></html>\n'
        return self.store(text.encode("utf-8", "replace"), ".html")

    def store_image(self, image: Any) -> str | None:
        """Stores a picture of Pillow."""
        from io import BytesIO  # noqa: PLC0415 - Pillow has loaded it

        if image.mode not in {"1", "L", "LA", "P", "RGB", "RGBA", "I;16"}:
            image = image.convert("L" if image.mode in {"F", "I"} else "RGB")
        if image.width * image.height > _PIXELS_MAX:
            image = image.copy()
            side = int(_PIXELS_MAX**0.5)
            image.thumbnail((side, side))
        buffer = BytesIO()
        image.save(buffer, "PNG")
        return self.store(buffer.getvalue(), ".png")

    # ---- libraries ----

    def watch(self, *, names_display: bool) -> None:
        """Changes the libraries that are loaded, and those to come.

        Args:
            names_display: the program uses the name ``display``.
        """
        changes = self._changes()
        for name in [name for name in changes if name in sys.modules]:
            _apply(changes.pop(name), sys.modules[name])
        sys.meta_path.insert(0, _ChangingFinder(changes))
        if names_display:
            import builtins  # noqa: PLC0415 - few programs use the name

            builtins.display = self.display  # type: ignore[attr-defined]  # as in a notebook
            sys.meta_path.append(_NotebookModules(self))

    def _changes(self) -> dict[str, Any]:
        return {
            "matplotlib.pyplot": self._change_pyplot,
            "PIL.ImageShow": self._change_pillow,
            "plotly.io": self._change_plotly,
            "altair.vegalite.v5.api": self._change_altair,
            "altair.vegalite.v6.api": self._change_altair,
            "bokeh.io.showing": self._change_bokeh,
            "IPython.display": self._change_ipython,
            "IPython.core.display_functions": self._change_ipython,
        }

    def _change_pyplot(self, module: Any) -> None:
        self._figures.change(module)
        if self._is_child:  # registered last, so called before matplotlib closes all figures
            atexit.register(self.end)

    def _change_pillow(self, module: Any) -> None:
        def show(image: Any, *_args: Any, **_options: Any) -> bool:
            self.attempt("a picture", self.store_image, image)
            return True

        module.show = show

    def _show_page(self, value: Any, *_args: Any, **_options: Any) -> None:
        self.attempt(f"a {type(value).__name__}", self.store_page, value)

    def _change_plotly(self, module: Any) -> None:
        def show(fig: Any, *_args: Any, **_options: Any) -> None:
            if isinstance(fig, dict):
                import plotly.graph_objects  # noqa: PLC0415 - the program has loaded plotly

                fig = plotly.graph_objects.Figure(fig)
            self._show_page(fig)

        module.show = show

    def _change_altair(self, module: Any) -> None:
        def show(chart: Any, *_args: Any, **_options: Any) -> None:
            self._show_page(chart)

        module.TopLevelMixin.show = module.TopLevelMixin.display = show

    def _change_bokeh(self, module: Any) -> None:
        original = module.show

        def show(obj: Any, *args: Any, **options: Any) -> Any:
            if module.curstate().file:
                return original(obj, *args, **options)  # it writes the file that the program has named
            return self._show_page(obj)

        module.show = show

    def _change_ipython(self, module: Any) -> None:
        module.display = self.display


class _ChangingFinder:
    """Finds what the other finders of modules find; a module that is to be changed is, when it has run."""

    def __init__(self, changes: dict[str, Any]) -> None:
        self._changes = changes

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._changes:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return self._changed(spec)
        return None

    def _changed(self, spec: Any) -> Any:
        run = spec.loader.exec_module

        def run_and_change(module: ModuleType) -> None:
            del spec.loader.exec_module
            run(module)
            if change := self._changes.pop(module.__name__, None):
                _apply(change, module)

        spec.loader.exec_module = run_and_change
        return spec


def _apply(change: Any, module: ModuleType) -> None:
    with contextlib.suppress(Exception):  # of another version of the library, which shows nothing then
        change(module)


class _NotebookModules:
    """Finds IPython where it is not installed: no more of it than what shows values."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> Any:
        if name not in {"IPython", "IPython.display", "IPython.core", "IPython.core.display"}:
            return None
        from importlib.machinery import ModuleSpec  # noqa: PLC0415 - programs that import IPython alone

        return ModuleSpec(name, self, is_package=name in {"IPython", "IPython.core"})  # type: ignore[arg-type]

    def create_module(self, _spec: Any) -> None:
        """A module as any other."""

    def exec_module(self, module: Any) -> None:
        """Fills a module."""
        notebook_display.fill(module, self._shown.display)


def _has(value: object, *names: str) -> bool:
    return not isinstance(value, type) and any(callable(getattr(type(value), name, None)) for name in names)


def _is_a(value: object, module: str, name: str) -> bool:
    """Whether a value is of a class, which is not imported for that."""
    found = getattr(sys.modules.get(module), name, None)
    return isinstance(found, type) and isinstance(value, found)
