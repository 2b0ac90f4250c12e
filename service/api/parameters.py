"""Path and query parameters that several routes take."""

from typing import Annotated

from fastapi import Path, Query

from proofbox.contracts.tool_call_request import CallId, ConversationId

CallIdInPath = Annotated[CallId, Path(description="The loop's own id of the call.")]
ConversationIdInQuery = Annotated[
    ConversationId | None,
    Query(description="Its conversation; needed if several conversations have a call of that id."),
]
AfterInQuery = Annotated[int, Query(ge=0, le=2**53, description="Only entries after this position.")]
