"""Sentences about settings that are refused: the variable, the place within it, what is wrong. Never a value."""

import re

from pydantic import ValidationError
from pydantic_settings import SettingsError

from proofbox.service.app.config.hidden_values import hide_in_message

_FIELD = re.compile(r'field "(\w+)"')


def list_refusals(exc: Exception) -> list[str]:
    """One sentence for each refused setting; empty if the exception is about something else."""
    if isinstance(exc, ValidationError):
        return [
            _variable(error["loc"]) + hide_in_message(error["msg"], error["input"]).removeprefix("Value error, ")
            for error in exc.errors(include_url=False)
        ]
    if isinstance(exc, SettingsError) and (found := _FIELD.search(str(exc))) is not None:
        where = f" ({exc.__cause__})" if isinstance(exc.__cause__, ValueError) else ""
        return [f"{_variable((found[1],))}it is no JSON{where}; docs/settings.md shows what it takes"]
    return []


def _variable(loc: tuple[int | str, ...]) -> str:
    """The variable of a setting and the place within it, such as ``PROOFBOX_LLM_ENDPOINTS.default.url``."""
    if not loc:
        return ""
    return ".".join([f"PROOFBOX_{str(loc[0]).upper()}", *map(str, loc[1:])]) + ": "
