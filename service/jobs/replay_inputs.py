"""The inputs of a call as they were when it ran: the very versions that its audit line names."""

import asyncio
import time
from collections.abc import Sequence

from contracts.paths import FilePath
from contracts.provenance import AuditInput, AuditLine
from contracts.tool_call_request import ToolCallRequest
from contracts.tool_call_response import Rehosted
from service.artifacts.conversation_files import ConversationFiles
from service.artifacts.port import NewArtifact, SourcePool, StoredArtifact
from service.artifacts.staging import Staging
from service.calls.audit_record import source_sha256
from service.calls.param_references import Reference, References
from service.calls.run_record import UsedReference, call_record
from service.errors import NotRerunnableError
from service.file_content import FileContent
from service.identity import ConversationKey
from service.jobs.input_resolver import InputRequest, stretches
from service.jobs.inputs import JobInputs
from service.jobs.runner import Attempt, JobRunner
from service.sandbox.port import InputFile
from service.timeline.block_writer import now_text


class ReplayInputs:
    """Finds inputs again, in the stores and in what was handed over with the call."""

    def __init__(self, files: ConversationFiles, sources: SourcePool) -> None:
        self._files = files
        self._sources = sources

    async def restore(
        self, scope: ConversationKey, request: ToolCallRequest, line: AuditLine, staging: Staging
    ) -> tuple[JobInputs, list[int]]:
        """What the call ran with, and the cited sources that are others now; valid while ``staging`` is.

        Raises:
            NotRerunnableError: an input cannot be had as it was.
            StoreFailedError: a store failed.
        """
        gathered = JobInputs(missing=list(line.missing))
        for number, used in enumerate(line.inputs):
            began = time.perf_counter()
            source = await self._bytes(scope, request, used, staging, number)
            size, sha256 = (0, "") if source is None else await asyncio.to_thread(source.measure)
            if source is None or sha256 != used.sha256:
                raise NotRerunnableError(f"the input '{used.path}' cannot be had any more as it was")
            path = FilePath.from_physical(used.path)
            gathered.places.take(path)
            gathered.inputs[used.path] = InputFile(path, source, size, writable=path.turn_id == request.turn_id)
            if used.version is not None:
                gathered.versions[used.path] = used.version
            gathered.ledger.append(
                Rehosted(
                    asked=used.asked,
                    source=used.source,
                    physical_path=used.path,
                    sha256=sha256,
                    size_bytes=size,
                    ms=round((time.perf_counter() - began) * 1000, 3),
                )
            )
        return gathered, await self._restore_cited(scope, line, gathered)

    async def restore_reference(
        self, scope: ConversationKey, request: ToolCallRequest, line: AuditLine, reference: Reference
    ) -> tuple[str, UsedReference]:
        """The text that a parameter named by its path when the call ran.

        Raises:
            NotRerunnableError: it cannot be had as it was.
            StoreFailedError: a store failed.
        """
        named = next((named for named in line.references if named.param == reference.param), None)
        if named is not None:
            used = UsedReference(named.param, named.path, named.sha256, named.size_bytes, named.version)
            text = await References(self._files).restore(scope, request, reference, used)
            if text is not None:
                return text, used
        raise NotRerunnableError(f"the text of '{reference.path}' cannot be had any more as it was")

    async def _bytes(
        self, scope: ConversationKey, request: ToolCallRequest, used: AuditInput, staging: Staging, number: int
    ) -> FileContent | None:
        path = FilePath.from_physical(used.path)
        if used.version is not None:
            stored = await self._files.artifacts.version(scope, path, used.version)
            if stored is None:
                return None
            (local,) = await self._files.artifacts.fetch_all(scope, [stored], await staging.folder())
            return FileContent(local)
        asset = next((asset for asset in request.assets if asset.physical_path == used.path), None)
        if asset is not None and asset.uri is not None:
            found = await self._files.fetch_uri(scope, asset.uri, staging)
            return None if found is None else FileContent(found)
        if asset is not None:
            content = asset.base64 if asset.base64 is not None else (asset.text or "").encode()
            return FileContent(await staging.write(f"restored-{number}", content))
        files = self._files.of_call(scope, request.timeline)
        file = await files.find_in_blocks(path)
        fetched = None if file is None else await files.fetch(file, staging)
        return None if fetched is None else fetched.source

    async def _restore_cited(self, scope: ConversationKey, line: AuditLine, gathered: JobInputs) -> list[int]:
        sids = [source.sid for source in line.sources]
        rows = {row.sid: row for row in await self._sources.pick(scope, stretches(sids), len(sids))} if sids else {}
        gathered.cited = [rows[sid] for sid in sids if sid in rows]
        known = {sid: source_sha256(row) for sid, row in rows.items()}
        return [source.sid for source in line.sources if known.get(source.sid) != source.sha256]


class ReplayRunner(JobRunner):
    """Runs a program on what it ran with before, and stores nothing of what it makes.

    Args:
        runs: how programs are run.
        inputs: finds the inputs.
        request: the call as it was.
        line: its audit line.
    """

    def __init__(self, runs: JobRunner, inputs: ReplayInputs, request: ToolCallRequest, line: AuditLine) -> None:
        super().__init__(*runs.parts)
        self._inputs = inputs
        self._request = request
        self._line = line
        self.sources_changed: list[int] = []
        """Cited sources that are others than they were."""

    async def resolve(
        self, scope: ConversationKey, request: ToolCallRequest, reference: Reference, attempt: Attempt
    ) -> str:
        """The text that a parameter named when the call ran first.

        Raises:
            NotRerunnableError: it cannot be had as it was.
            StoreFailedError: a store failed.
        """
        with attempt.phase("rehost"):
            text, used = await self._inputs.restore_reference(scope, request, self._line, reference)
        call_record().references.append(used)
        return text

    async def gather(self, wish: InputRequest, attempt: Attempt, staging: Staging) -> None:
        """Restores what the audit line names, whatever the call says and the stores have by now.

        Raises:
            NotRerunnableError: an input cannot be had as it was.
            StoreFailedError: a store failed.
        """
        with attempt.phase("rehost"):
            found = await self._inputs.restore(wish.scope, self._request, self._line, staging)
            attempt.gathered, self.sources_changed = found
            attempt.gathered.tell(call_record())

    async def host(
        self,
        scope: ConversationKey,  # noqa: ARG002 - that of `JobRunner.host`
        artifacts: Sequence[NewArtifact],
        attempt: Attempt,  # noqa: ARG002
    ) -> dict[str, StoredArtifact]:
        """Artifacts as if they were stored: their bytes are gone with the staging folder."""
        return {
            new.path.physical: StoredArtifact(
                path=new.path,
                version=0,
                size_bytes=new.size_bytes,
                sha256=new.sha256,
                mime=new.mime,
                visibility=new.visibility,
                description=new.description,
                created=now_text(),
            )
            for new in artifacts
        }

    async def remove(self, scope: ConversationKey, attempt: Attempt) -> list[str]:  # noqa: ARG002 - that of `JobRunner.remove`
        """What the program removed; nothing is noted of it."""
        return list(attempt.collected.removed)
