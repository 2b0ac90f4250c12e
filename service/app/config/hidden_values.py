"""Values of settings as they may be shown: without the passwords and keys that addresses can carry."""

import re
from functools import partial
from typing import Any

HIDDEN = "********"
# Up to the last @: a password may contain an @ or a slash.
_USER = re.compile(r"(?<=://).*@", re.DOTALL)
_USER_ALONE = re.compile(r"^[^\s/@:]+:.*@(?!sha256:)", re.DOTALL)  # an address without a scheme
# Either a query with an @, or a password with a question mark.
_UNCLEAR = re.compile(r"(?<=://)[^@]*[?#].*@.*", re.DOTALL)
_QUOTED = re.compile(r"'([^']+)'")
_QUERY = re.compile(r"(?<=[?#]).+", re.DOTALL)


def hide_credentials(value: Any) -> Any:
    """A value of a setting with user, password, query and fragment of each address in it hidden.

    Args:
        value: as JSON has it; texts in lists and objects are searched too.
    """
    if isinstance(value, str):
        return _hide_in_address(value)
    if isinstance(value, list | tuple):
        return [hide_credentials(part) for part in value]
    if isinstance(value, dict):
        return {hide_credentials(name): hide_credentials(part) for name, part in value.items()}
    return value


def hide_in_message(message: str, value: Any) -> str:
    """A message about a value, which may quote it, with the same parts hidden."""
    for text in _texts(value):
        hidden = hide_credentials(text)
        if hidden != text:
            message = message.replace(repr(text), repr(hidden)).replace(text, hidden)
            message = _QUOTED.sub(partial(_hide_piece, text=text, hidden=hidden), message)
    return message


def _hide_piece(found: re.Match[str], *, text: str, hidden: str) -> str:
    """A part of a text, such as what a parser takes for a port, unless it is shown anyway."""
    return f"'{HIDDEN}'" if found[1] in text and found[1] not in hidden else found[0]


def _hide_in_address(text: str) -> str:
    if "://" not in text:
        hidden = _USER_ALONE.sub(f"{HIDDEN}@", text)
        return _QUERY.sub(HIDDEN, hidden) if hidden != text else hidden
    text = _UNCLEAR.sub(HIDDEN, text)
    return _QUERY.sub(HIDDEN, _USER.sub(f"{HIDDEN}@", text))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in _texts(part)]
    return [text for part in value for text in _texts(part)] if isinstance(value, list | tuple) else []
