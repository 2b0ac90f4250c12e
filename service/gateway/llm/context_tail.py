"""The end of a conversation as a sub-agent's model reads it."""

import asyncio

from proofbox.service.gateway.tool_call import GatewayCall
from proofbox.service.timeline.model_text import read_text
from proofbox.service.timeline.port import TimelineStore
from proofbox.service.timeline.token_counter import TokenCounter, count_tokens
from proofbox.service.timeline.view import timeline_for

CONTEXT_TOKENS_MAX = 8_000
_BLOCKS = 100  # of the end that are read first; twice as many while that is too little
_CHARACTERS_MAX = 64_000  # no text of 8,000 tokens that a model can use is longer
_LINE_CHARACTERS = 500  # of a line that was cut at its start, and is left out


class ContextTail:
    """Reads the ends of conversations.

    Args:
        timelines: the event logs.
        tokens: counts tokens.
    """

    def __init__(self, timelines: TimelineStore, tokens: TokenCounter) -> None:
        self._timelines = timelines
        self._tokens = tokens

    async def read(self, call: GatewayCall) -> str:
        """The rendered end of a call's conversation, at most `CONTEXT_TOKENS_MAX` tokens.

        Raises:
            StoreFailedError: the store failed.
        """
        timeline = timeline_for(self._timelines, call.scope, call.request)
        last, blocks, text = await timeline.last(), _BLOCKS, ""
        while True:
            after = max(0, last - blocks)
            text = (await read_text(timeline, after)).text
            if after == 0 or len(text) >= _CHARACTERS_MAX:
                break
            blocks *= 2
        return await asyncio.to_thread(_cut_start, text, self._tokens)


def _cut_start(text: str, tokens: TokenCounter) -> str:
    """The end of a text that has no more than the tokens that are allowed; it begins with a line if one is near."""
    text = text[-_CHARACTERS_MAX:]
    if count_tokens(tokens, text) <= CONTEXT_TOKENS_MAX:
        return text
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if count_tokens(tokens, text[-middle:]) <= CONTEXT_TOKENS_MAX:
            fits = middle
        else:
            too_long = middle
    end = text[len(text) - fits :]
    return end[end.find("\n", 0, _LINE_CHARACTERS) + 1 :]
