"""Read the fields of a form as values; every wrong field is one sentence of the answer."""

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from proofbox.service.facades.gotenberg.errors import InvalidFormError
from proofbox.service.facades.gotenberg.form import Form, FormFile

MM_PER_INCH = 25.4
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_LENGTH = re.compile(r"(\d{1,6}(?:\.\d{0,9})?|\.\d{1,9})\s*(pt|px|in|mm|cm|pc)?")
_MM = {"pt": 25.4 / 72, "px": 25.4 / 96, "in": 25.4, "mm": 1.0, "cm": 10.0, "pc": 25.4 / 6, None: 25.4}
_SHOWN_CHARS = 80


class FieldReader:
    """Reads the fields of one form and collects what is wrong with them.

    Args:
        form: the form.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        self.warnings: list[str] = []
        self._sentences: list[str] = []
        self._known: set[str] = set()

    def text(self, name: str, default: str = "") -> str:
        """A text; an empty one is the default."""
        self._known.add(name)
        return self.form.fields.get(name, "") or default

    def boolean(self, name: str, *, default: bool = False) -> bool:
        """``true`` or ``false``, in the spellings that Gotenberg takes."""
        given = self.text(name).strip()
        if given and given not in _TRUE | _FALSE:
            self._refuse_value(name, given, "expected either 'true' or 'false'")
        return given in _TRUE if given else default

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """A number within bounds."""
        given = self.text(name).strip()
        if not given:
            return default
        try:
            value = float(given)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            self._refuse_value(name, given, f"expected a number from {low:g} to {high:g}")
            return default
        return value

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number within bounds."""
        given = self.text(name).strip()
        if not given:
            return default
        if re.fullmatch(r"[+-]?\d{1,9}", given) is None or not low <= int(given) <= high:
            self._refuse_value(name, given, f"expected a whole number from {low} to {high}")
            return default
        return int(given)

    def length_mm(self, name: str, default_in: float, low_mm: float, high_mm: float) -> float:
        """A length; a plain number is in inches."""
        given = self.text(name).strip()
        if not given:
            return default_in * MM_PER_INCH
        match = _LENGTH.fullmatch(given)
        length = float(match[1]) * _MM[match[2]] if match else math.nan
        if not low_mm <= length <= high_mm:
            bounds = f"from {low_mm:g}mm to {high_mm:g}mm, with pt, px, in, mm, cm or pc, without a unit in inches"
            self._refuse_value(name, given, f"expected a length {bounds}")
            return default_in * MM_PER_INCH
        return length

    def choice(self, name: str, default: str, options: Sequence[str], *, required: bool = False) -> str:
        """One of some texts."""
        given = self.text(name, default)
        if not given and required:
            self.require_field(name)
        elif given not in options and (given or required):
            listed = " or ".join(f"'{option}'" for option in options)
            self._refuse_value(name, given, f"expected {listed}")
            return default
        return given

    def json(self, name: str, kinds: tuple[type, ...], what: str) -> Any:
        """A JSON value of one of some types; None if the field is absent or wrong."""
        given = self.text(name).strip()
        if not given:
            return None
        try:
            value = json.loads(given)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, kinds):
            self._refuse_value(name, given, f"expected JSON: {what}")
            return None
        return value

    def require_field(self, name: str) -> bool:
        """Whether a field is there; it is refused if not."""
        if not self.text(name):
            self.refuse(f"form field '{name}' is required")
            return False
        return True

    def require_file(self, name: str) -> FormFile | None:
        """The file of that name."""
        found = self.file(name)
        if found is None:
            self.refuse(f"form file '{name}' is required")
        return found

    def file(self, name: str) -> FormFile | None:
        """The file of that name; None if it is not there."""
        return next((file for file in self.files() if file.name == name), None)

    def files(self, suffix: str = "") -> list[FormFile]:
        """The files with that extension, without those that are embedded."""
        return [
            file
            for file in self.form.files
            if file.field != "embeds" and (not suffix or file.name.lower().endswith(suffix))
        ]

    def require_files(self, suffix: str) -> list[FormFile]:
        """The files with that extension; at least one."""
        found = self.files(suffix)
        if not found:
            self.refuse(f"no form file found for extensions: [{suffix}]")
        return found

    def embeds(self) -> list[FormFile]:
        """The files to be embedded."""
        return [file for file in self.form.files if file.field == "embeds"]

    def refuse(self, sentence: str) -> None:
        """Adds a sentence to the answer."""
        self._sentences.append(sentence)

    def refuse_if_given(self, name: str, why: str, *accepted: str) -> None:
        """Refuses a field that cannot be honoured, unless its value is one of those that ask for nothing."""
        given = self.text(name).strip()
        if given and "".join(given.split()) not in accepted:
            self._refuse_value(name, given, f"{why}; leave it out")

    def warn(self, sentence: str) -> None:
        """Adds a sentence to the header ``Warning``."""
        self.warnings.append(sentence)

    def finish(self) -> None:
        """Ends reading: unknown fields are ignored with a warning, as upstream ignores them.

        Raises:
            InvalidFormError: a field is wrong.
        """
        for name in sorted(self.form.fields.keys() - self._known):
            self.warn(f"{name[:_SHOWN_CHARS]}: not a field of this route; it was ignored")
        if self._sentences:
            raise InvalidFormError(self._sentences)

    def _refuse_value(self, name: str, given: str, why: str) -> None:
        shown = given if len(given) <= _SHOWN_CHARS else f"{given[:_SHOWN_CHARS]}…"
        self.refuse(f"form field '{name}' is invalid (got '{shown}', resulting to {why})")
