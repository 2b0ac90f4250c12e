"""The inputs of a call as they were when it ran: the very versions that its audit line names."""

import asyncio
import time
from collections.abc import Sequence

from typing_extensions import override

from proofbox.contracts.packages.installed import InstalledPackage
from proofbox.contracts.paths import FilePath
from proofbox.contracts.provenance import AuditInput, AuditLine
from proofbox.contracts.tool_call_request import SourceRow, ToolCallRequest
from proofbox.contracts.tool_call_response import Rehosted
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.port import DamagedBytesError, NewSave, PreparedSave, SourcePool, StoredArtifact
from proofbox.service.artifacts.staging import Staging
from proofbox.service.calls.audit.audit_record import source_sha256
from proofbox.service.calls.observer import UsedReference
from proofbox.service.calls.param_references import Reference, References
from proofbox.service.errors import NotRerunnableError
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from proofbox.service.jobs.inputs import OF_WORKSPACE, InputRequest, JobInputs, nanoseconds
from proofbox.service.jobs.path_mentions import id_ranges
from proofbox.service.jobs.workspace import WorkspaceInput, open_workspace, workspace_path
from proofbox.service.sandbox.port import InputFile
from proofbox.service.timeline.block_writer import now_text


class ReplayInputs:
    """The port ``InputSource``: the inputs that an audit line names, in place of what the stores have now.

    Args:
        files: the files of conversations.
        sources: the sources of conversations.
        request: the call as it was.
        line: its audit line.
    """

    def __init__(
        self, files: ConversationFiles, sources: SourcePool, request: ToolCallRequest, line: AuditLine
    ) -> None:
        self._files = files
        self._sources = sources
        self._request = request
        self._line = line

    @property
    def pinned_packages(self) -> Sequence[InstalledPackage] | None:
        """See `InputSource.pinned_packages`."""
        return self._line.packages

    async def resolve_inputs(self, request: InputRequest, staging: Staging) -> JobInputs:
        """Restores the files that the call ran with.

        Raises:
            NotRerunnableError: an input cannot be had as it was.
            StoreFailedError: a store failed.
        """
        before = frozenset(output.path for output in self._line.outputs)
        inputs = JobInputs(missing=list(self._line.missing), outputs_before=before)
        if request.has_workspace:
            inputs.workspace = WorkspaceInput()
        for number, used in enumerate(self._line.inputs):
            began = time.perf_counter()
            if used.path == workspace_path(self._request.turn_id or ""):
                await self._restore_workspace(inputs, request.scope, used, staging)
                continue
            stored = await self._stored(request.scope, used)
            source = await self._content(request.scope, used, stored, staging, number)
            size, sha256 = (0, "") if source is None else await asyncio.to_thread(source.measure)
            if source is None or sha256 != used.sha256:
                raise NotRerunnableError(f"the input '{used.path}' cannot be had any more as it was")
            path = FilePath.from_physical(used.path)
            inputs.places.take(path)
            writable = path.turn_id == self._request.turn_id
            yields = used.source not in {"asset", "uri"} and inputs.yields(stored)
            made_ns = None if stored is None else nanoseconds(stored.created)
            inputs.files[used.path] = InputFile(path, source, size, writable, yields=yields, made_ns=made_ns)
            if used.asked in (*OF_WORKSPACE, path.rel) or used.source in {"asset", "uri"}:
                inputs.names[path.rel] = used.path
            elif request.has_workspace or not request.language:
                # Named by its path, and the newest of its name if there is no other.
                inputs.names.setdefault(path.rel, used.path)
            if used.version is not None:
                inputs.versions[used.path] = used.version
            inputs.ledger.append(
                Rehosted(
                    asked=used.asked,
                    source=used.source,
                    physical_path=used.path,
                    sha256=sha256,
                    size_bytes=size,
                    ms=round((time.perf_counter() - began) * 1000, 3),
                )
            )
        rows = await self._rows(request.scope)
        inputs.cited = [rows[source.sid] for source in self._line.sources if source.sid in rows]
        return inputs

    async def _stored(self, scope: ConversationKey, used: AuditInput) -> StoredArtifact | None:
        if used.version is None:
            return None
        return await self._files.artifacts.version(scope, FilePath.from_physical(used.path), used.version)

    async def _restore_workspace(
        self, inputs: JobInputs, scope: ConversationKey, used: AuditInput, staging: Staging
    ) -> None:
        began = time.perf_counter()
        workspace = await open_workspace(self._files.artifacts, scope, staging, used.version)
        if workspace.stored is None or workspace.stored.sha256 != used.sha256:
            raise NotRerunnableError("the workspace that the call began with is not stored any more")
        inputs.add_workspace(workspace, self._request.turn_id or "", (time.perf_counter() - began) * 1000)

    async def resolve_reference(
        self, scope: ConversationKey, request: ToolCallRequest, reference: Reference
    ) -> tuple[str, UsedReference]:
        """Returns the text that a parameter gave by its path when the call ran.

        Raises:
            NotRerunnableError: it cannot be had as it was.
            StoreFailedError: a store failed.
        """
        named = next((named for named in self._line.references if named.param == reference.param), None)
        if named is not None:
            used = UsedReference(named.param, named.path, named.sha256, named.size_bytes, named.version)
            text = await References(self._files).restore(scope, request, reference, used)
            if text is not None:
                return text, used
        raise NotRerunnableError(f"the text of '{reference.path}' cannot be had any more as it was")

    async def changed_sources(self, scope: ConversationKey) -> list[int]:
        """Returns the ids of the cited sources that differ from those that the call had.

        Raises:
            StoreFailedError: the store failed.
        """
        now = {sid: source_sha256(row) for sid, row in (await self._rows(scope)).items()}
        return [source.sid for source in self._line.sources if now.get(source.sid) != source.sha256]

    async def _content(
        self,
        scope: ConversationKey,
        used: AuditInput,
        stored: StoredArtifact | None,
        staging: Staging,
        number: int,
    ) -> FileContent | None:
        path = FilePath.from_physical(used.path)
        if used.version is not None:
            if stored is None:
                return None
            try:
                (local,) = await self._files.artifacts.fetch_all(scope, [stored], await staging.folder())
            except DamagedBytesError:
                return None
            return FileContent(local)
        asset = next((asset for asset in self._request.assets if asset.physical_path == used.path), None)
        if asset is not None and asset.uri is not None:
            found = await self._files.fetch_uri(scope, asset.uri, staging)
            return None if found is None else FileContent(found)
        if asset is not None:
            content = asset.base64 if asset.base64 is not None else (asset.text or "").encode()
            return FileContent(await staging.write(f"restored-{number}", content))
        files = self._files.of_call(scope, self._request.timeline)
        file = await files.find_in_blocks(path)
        fetched = None if file is None else await files.fetch(file, staging)
        return None if fetched is None else fetched.source

    async def _rows(self, scope: ConversationKey) -> dict[int, SourceRow]:
        sids = [source.sid for source in self._line.sources]
        return {row.sid: row for row in await self._sources.pick(scope, id_ranges(sids), len(sids))} if sids else {}


class UnsavedOutputs:
    """The port ``OutputStore`` of a rerun: it stores nothing."""

    async def prepare(self, new: NewSave) -> PreparedSave:
        """See `OutputStore.prepare`."""
        return UnstoredSave(new)


class UnstoredSave(PreparedSave):
    """Files that are not stored.

    Args:
        new: what is not stored.
    """

    def __init__(self, new: NewSave) -> None:
        self._new = new

    @override
    async def store(self) -> list[StoredArtifact]:
        """Returns the files as if they were stored; their bytes are gone with the staging folder."""
        await self.discard()
        return [
            StoredArtifact(
                path=new.path,
                version=0,
                size_bytes=new.size_bytes,
                sha256=new.sha256,
                mime=new.mime,
                visibility=new.visibility,
                description=new.description,
                created=now_text(),
            )
            for new in self._new.artifacts
        ]

    @override
    async def settle(self) -> None:
        await self.discard()

    @override
    async def discard(self) -> None:
        await self._new.hold.aclose()
