"""Path and query parameters that several routes take."""

from typing import Annotated

from fastapi import Header, Path, Query

from proofbox.contracts.tool_call_request import CallId, ConversationId

CallIdInPath = Annotated[CallId, Path(description="The loop's own id of the call.")]
ConversationIdInQuery = Annotated[
    ConversationId | None,
    Query(description="Its conversation; needed if several conversations have a call of that id."),
]
AfterInQuery = Annotated[int, Query(ge=0, le=2**53, description="Only entries after this position.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="A name of the request, of the client's own making, 1 to 255 printable characters: the same "
        "request again is not done again and gets the same answer.",
    ),
]
