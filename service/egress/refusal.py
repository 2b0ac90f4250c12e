"""Why a connection of a program is not made, or is ended."""

from http import HTTPStatus


class ConnectionRefusal(Exception):  # noqa: N818 - not an error of the service
    """The connection is not made.

    Args:
        why: one sentence, for the program, the report and the ledger.
        status: the HTTP status that the program gets.
    """

    def __init__(self, why: str, status: HTTPStatus = HTTPStatus.FORBIDDEN) -> None:
        super().__init__(why)
        self.why = why
        self.status = status


class ConnectionEnded(Exception):  # noqa: N818 - not an error of the service
    """The connection was made, and reached a limit.

    Args:
        why: one sentence, for the report and the ledger.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why
