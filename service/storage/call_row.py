"""The row of a call within the transaction that stores an effect beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from proofbox.service.calls.port import CallKey


@dataclass(frozen=True, slots=True)
class CallRow:
    """The call whose state this transaction changes.

    Attributes:
        number: its ``calls.id``.
        conversation: its ``conversations.id``; this transaction has locked that row.
        key: its name.
    """

    number: int
    conversation: int
    key: CallKey


ApplyEffect = Callable[[Connection, CallRow, Any], None]
"""Stores an effect; it may raise a ServiceError or an EffectRefusedError."""
