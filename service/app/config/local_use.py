"""Settings that describe a service for others, and what a service for one command has in their place."""

from dataclasses import dataclass
from typing import Any

from pydantic_settings import BaseSettings

_DEFAULT: Any = object()


@dataclass(frozen=True, slots=True)
class ForOthers:
    """Marks a setting that describes a service for others; one without the mark holds for local commands too.

    Attributes:
        locally: the value of a local command; left out, the setting's default.
    """

    locally: Any = _DEFAULT


FOR_OTHERS = ForOthers()


def local_values(model: type[BaseSettings]) -> dict[str, Any]:
    """The values that a local command has in place of those of a service for others.

    Args:
        model: the class of the settings.
    """
    marks = {
        name: (field, mark)
        for name, field in model.model_fields.items()
        for mark in field.metadata
        if isinstance(mark, ForOthers)
    }
    return {
        name: field.get_default(call_default_factory=True) if mark.locally is _DEFAULT else mark.locally
        for name, (field, mark) in marks.items()
    }
