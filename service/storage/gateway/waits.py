"""The waits of calls in the database."""

from sqlalchemy import Connection, text

_PENDING = text("SELECT spec FROM waits WHERE call = :of_call AND state = 'pending'")


def pending_wait(connection: Connection, call: int) -> str | None:
    """What a call waits for, as the JSON text of a `Wait`; None if it does not wait."""
    return connection.execute(_PENDING, {"of_call": call}).scalar()
