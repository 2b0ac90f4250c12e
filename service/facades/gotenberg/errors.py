"""The errors of this API: a status and a sentence, as text."""

from collections.abc import Sequence


class RequestRefusedError(Exception):
    """The request is refused, or its document cannot be made.

    Args:
        status: the HTTP status.
        message: what is wrong and what to do.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class InvalidFormError(RequestRefusedError):
    """Fields of the form are missing or wrong, or cannot be honoured.

    Args:
        sentences: one for each field.
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        super().__init__(400, "Invalid form data: " + "\n".join(sentences))
