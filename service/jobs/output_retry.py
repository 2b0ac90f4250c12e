"""Produced files are saved again while the server of the store is away."""

import asyncio
import logging
import time
from collections.abc import Sequence

from typing_extensions import override

from proofbox.service.artifacts.port import NewArtifact, NewWorkspace, StoreAwayError, StoredArtifact
from proofbox.service.identity import ConversationKey
from proofbox.service.jobs.runner import OutputStore

log = logging.getLogger("proofbox.jobs")

_PAUSE_S, _PAUSE_S_MAX = 0.5, 5.0


class RetriedOutputs(OutputStore):
    """An OutputStore whose server may be away for a while: the program has ended and cannot run again.

    Args:
        outputs: where files are stored. It has to leave the sources of a save that failed where they are.
        retry_s: for how long a save is tried again, in seconds; then its error is raised.
    """

    def __init__(self, outputs: OutputStore, retry_s: float) -> None:
        self._outputs = outputs
        self._retry_s = retry_s

    @override
    async def save(
        self, scope: ConversationKey, artifacts: Sequence[NewArtifact], *, workspace: NewWorkspace | None = None
    ) -> list[StoredArtifact]:
        deadline, pause_s = time.monotonic() + self._retry_s, _PAUSE_S
        while True:
            try:
                return await self._outputs.save(scope, artifacts, workspace=workspace)
            except StoreAwayError as exc:
                if time.monotonic() + pause_s > deadline:
                    raise
                log.warning("the files of a call cannot be saved yet: %s", exc)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    @override
    async def remove(self, scope: ConversationKey, artifacts: Sequence[StoredArtifact]) -> None:
        await self._outputs.remove(scope, artifacts)
