"""Text columns: SQLite and PostgreSQL store the same bytes."""

import json
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError
from sqlalchemy import Dialect, Text, TypeDecorator
from sqlalchemy.dialects.postgresql import TEXT as POSTGRES_TEXT

# Compared and ordered by its bytes, as SQLite does it, whatever language the server speaks.
TEXT = Text().with_variant(POSTGRES_TEXT(collation="C"), "postgresql")
"""Text of our making, such as JSON. A column of the type JSON would refuse ``\\u0000`` and forget the spelling."""


class Words(TypeDecorator[str]):
    """Text that is not JSON; NUL and lone surrogates are stored as ``?``.

    SQLite accepts NUL and PostgreSQL does not, and UTF-8 has no lone surrogates. Both databases store the same, so
    that no description or name lets a call fail.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        """The type of the column."""
        return POSTGRES_TEXT(collation="C") if dialect.name == "postgresql" else Text()

    def bind_processor(self, dialect: Dialect) -> Any:
        """Return the conversion of values, which applies to stored and to compared texts."""
        del dialect
        return _storable_or_none


def _storable_or_none(text: str | None) -> str | None:
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return storable(text)


def storable(text: str) -> str:
    """A text that every database takes; the same text, if it is one."""
    if "\0" in text:
        text = text.replace("\0", "?")
    return text if text.isascii() else text.encode(errors="replace").decode()


def json_text(model: BaseModel, *, exclude_none: bool = False) -> str:
    """A model as JSON that every database takes: NUL is an escape, half of a surrogate pair becomes ``?``."""
    try:
        return model.model_dump_json(exclude_none=exclude_none)
    except PydanticSerializationError:
        # Any value of `meta` may hold one; only the texts of typed fields are checked when a model is made.
        values = model.model_dump(exclude_none=exclude_none)
        return storable(json.dumps(values, ensure_ascii=False, separators=(",", ":")))
