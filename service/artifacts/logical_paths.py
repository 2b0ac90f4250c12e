"""What a logical path means, for the caller's program: the text or the bytes behind it."""

from dataclasses import dataclass

from contracts.logical import LogicalPath, SkillPath, SourcesPath, TurnPath
from contracts.paths import FilePath
from contracts.timeline import Sources
from service.artifacts.conversation_files import ConversationFiles, decoded
from service.artifacts.port import SourcePool
from service.artifacts.skills import Skills
from service.identity import ConversationKey
from service.timeline.artifact_versions import discover, latest_blocks, main_block

SOURCES_MAX = 10_000
"""How many rows of the sources pool one path answers."""
_TEXT_MIME = "text/plain"


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """What stands behind a path.

    Attributes:
        name: a file name for it.
        mime: its media type.
        content: its bytes; a text as UTF-8.
    """

    name: str
    mime: str
    content: bytes


class LogicalPathResolver:
    """Finds what is no stored file: blocks of the timeline, sources, skills.

    Args:
        files: where the files and blocks of a conversation are found.
        sources: the sources pool.
        skills: the skills.
    """

    def __init__(self, files: ConversationFiles, sources: SourcePool, skills: Skills) -> None:
        self._files = files
        self._sources = sources
        self._skills = skills

    async def find(self, scope: ConversationKey, path: LogicalPath) -> ResolvedPath | None:
        """What a path means now; None if the conversation has nothing there.

        Raises:
            StoreFailedError: a store failed.
        """
        match path:
            case FilePath():
                return await self._file(scope, path)
            case TurnPath():
                return await self._blocks(scope, path)
            case SourcesPath():
                return await self._rows(scope, path)
            case SkillPath():
                skill = await self._skills.read(path.skill_id)
                return None if skill is None else ResolvedPath("SKILL.md", "text/markdown", skill.text.encode())

    async def _file(self, scope: ConversationKey, path: FilePath) -> ResolvedPath | None:
        """A file that the artifact store does not have, if a block carries all of it."""
        files = self._files.of_call(scope)
        versions = await discover(files.memory, path.logical)
        content = await files.carried(versions[-1]) if versions else None
        return None if content is None else ResolvedPath(path.rel.rpartition("/")[2], versions[-1].mime, content)

    async def _blocks(self, scope: ConversationKey, path: TurnPath) -> ResolvedPath | None:
        memory = self._files.of_call(scope).memory
        placed = await latest_blocks(memory, path)
        found = await memory.at(main_block(placed).position) if placed else None
        if found is None:
            return None
        block = found.block
        content = decoded(block.base64) if block.base64 is not None else (block.text or "").encode(errors="replace")
        return None if content is None else ResolvedPath(path.kind, block.mime or _TEXT_MIME, content)

    async def _rows(self, scope: ConversationKey, path: SourcesPath) -> ResolvedPath | None:
        rows = await self._sources.pick(scope, path.ranges, SOURCES_MAX)
        if not rows:
            return None
        return ResolvedPath("sources.json", "application/json", Sources(sources=rows).model_dump_json().encode())
