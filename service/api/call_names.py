"""How a URL names a call: its id in the path, its conversation in the query."""

from typing import Annotated

from fastapi import Path, Query

from contracts.tool_call_request import CallId, ConversationId

CallIdInPath = Annotated[CallId, Path(description="The loop's own id of the call.")]
ConversationIdInQuery = Annotated[
    ConversationId | None,
    Query(description="Its conversation; needed if several conversations have a call of that id."),
]
