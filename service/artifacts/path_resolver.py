"""Resolve a path to what a conversation has behind it: a file, blocks of the timeline, sources or a skill."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from proofbox.contracts.blocks import Block
from proofbox.contracts.logical_paths import LogicalPath, SkillPath, SourcesPath, TurnPath
from proofbox.contracts.paths import FilePath, UnsafePathError
from proofbox.contracts.timeline import Sources
from proofbox.contracts.tool_call_request import SourceRow
from proofbox.service.artifacts.conversation_files import CallFiles, ConversationFiles
from proofbox.service.artifacts.found_file import ConversationFile, decode_base64
from proofbox.service.artifacts.path_forms import possible_paths
from proofbox.service.artifacts.port import SourcePool, StoredArtifact
from proofbox.service.artifacts.skills import Skill, Skills
from proofbox.service.identity import ConversationKey
from proofbox.service.timeline.artifact_versions import find_latest_blocks, pick_main_block, redact_text
from proofbox.service.timeline.port import PlacedBlock

SOURCES_MAX = 10_000
"""How many rows of the sources pool one path resolves to."""
_TEXT_MIME = "text/plain"


@dataclass(frozen=True, slots=True)
class ResolvedBlocks:
    """The latest blocks at a path: of a prompt, a call, a plan and so on.

    Attributes:
        path: their path.
        placed: the blocks, in order, without base64.
    """

    path: TurnPath
    placed: list[PlacedBlock]

    @property
    def main(self) -> PlacedBlock:
        """The block with the report or result."""
        return pick_main_block(self.placed)

    @property
    def text(self) -> str | None:
        """The text of the main block, without hosting fields; None for base64."""
        return redact_text(self.main.block)


@dataclass(frozen=True, slots=True)
class ResolvedSources:
    """Rows of the sources pool, by ascending sid."""

    path: SourcesPath
    rows: list[SourceRow]


@dataclass(frozen=True, slots=True)
class ResolvedSkill:
    """A skill."""

    path: SkillPath
    skill: Skill


@dataclass(frozen=True, slots=True)
class ResolvedOutput:
    """What the program of a call printed: both streams in their order."""

    path: TurnPath
    text: str


Resolved = ConversationFile | ResolvedBlocks | ResolvedOutput | ResolvedSources | ResolvedSkill
PrintedOutput = Callable[[ConversationKey, TurnPath], Awaitable[str | None]]
"""What the call of a path printed; None if there is no such call of that turn, or it has not ended."""


async def _no_output(_scope: ConversationKey, _path: TurnPath) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class PathContent:
    """The bytes behind a path that is not a stored file.

    Attributes:
        name: a file name for it.
        mime: its media type.
        content: its bytes; a text as UTF-8.
    """

    name: str
    mime: str
    content: bytes


class LogicalPathResolver:
    """Resolves the paths of conversations.

    Args:
        files: finds files in the artifact store and in the blocks of timelines.
        sources: the sources pool.
        skills: the skills.
        printed: finds what calls have printed.
    """

    def __init__(
        self, files: ConversationFiles, sources: SourcePool, skills: Skills, printed: PrintedOutput = _no_output
    ) -> None:
        self.files = files
        self.sources = sources
        self.skills = skills
        self.printed = printed

    def for_call(
        self, scope: ConversationKey, turn_id: str, timeline: Sequence[Block] | None = None
    ) -> "CallPaths":
        """The paths of one call.

        Args:
            scope: its conversation.
            turn_id: its turn, whose files bare paths name.
            timeline: the timeline that it brings, in place of the stored one.
        """
        return CallPaths(self, scope, turn_id, self.files.of_call(scope, timeline))

    async def find(self, scope: ConversationKey, path: LogicalPath) -> StoredArtifact | PathContent | None:
        """The content behind a path of the stored conversation; None if there is none.

        A file that only a block points to by its URI is not fetched.

        Raises:
            StoreFailedError: a store failed.
        """
        paths = self.for_call(scope, "")
        match await paths.resolve(path):
            case ConversationFile() as file:
                return file.stored or await _resolve_carried(paths.files, file)
            case ResolvedBlocks() as blocks:
                return await _block_content(paths.files, blocks)
            case ResolvedOutput(text=text):
                return PathContent("output.txt", _TEXT_MIME, text.encode(errors="replace"))
            case ResolvedSources(rows=rows):
                encoded = Sources(sources=rows).model_dump_json().encode()
                return PathContent("sources.json", "application/json", encoded)
            case ResolvedSkill(skill=skill):
                return PathContent("SKILL.md", "text/markdown", skill.text.encode())
            case None:
                return None


class CallPaths:
    """Resolves the paths of one call, in the timeline that it brings or in the stored one."""

    def __init__(
        self, resolver: LogicalPathResolver, scope: ConversationKey, turn_id: str, files: CallFiles
    ) -> None:
        self._resolver = resolver
        self._scope = scope
        self.turn_id = turn_id
        self.files = files

    async def resolve(self, path: LogicalPath, sources_max: int = SOURCES_MAX) -> Resolved | None:
        """What is behind a path now; None if the conversation has nothing there.

        Raises:
            StoreFailedError: a store failed.
        """
        match path:
            case FilePath():
                return await self.files.latest(path)
            case TurnPath(kind="output"):
                text = await self._resolver.printed(self._scope, path)
                return None if text is None else ResolvedOutput(path, text)
            case TurnPath():
                placed = await find_latest_blocks(self.files.memory, path)
                return ResolvedBlocks(path, placed) if placed else None
            case SourcesPath():
                rows = await self._resolver.sources.pick(self._scope, path.ranges, sources_max)
                return ResolvedSources(path, rows) if rows else None
            case SkillPath():
                skill = await self._resolver.skills.read(path.skill_id)
                return None if skill is None else ResolvedSkill(path, skill)

    async def meant(self, text: str) -> list[LogicalPath]:
        """The paths that a text may mean, the likeliest first: of a name that of its newest version.

        Raises:
            UnsafePathError: it is no path.
            StoreFailedError: a store failed.
        """
        return await self.files.meant(possible_paths(text, self.turn_id), self.turn_id)

    async def find_file(self, text: str) -> ConversationFile | None:
        """The file that a path names in any of its forms, or the source that it names is; None if there is none.

        Raises:
            StoreFailedError: a store failed.
        """
        try:
            paths = await self.meant(text)
        except UnsafePathError:
            return None
        for path in paths:
            if not isinstance(path, FilePath | SourcesPath):
                continue
            found = await self.resolve(path, sources_max=2)
            if isinstance(found, ResolvedSources):
                [row, *others] = found.rows
                found = None if others or row.file is None else await self.files.latest(row.file)
            if isinstance(found, ConversationFile):
                return found
        return None


async def _resolve_carried(files: CallFiles, file: ConversationFile) -> PathContent | None:
    content = None if file.version is None else await files.carried(file.version)
    return None if content is None else PathContent(file.path.rel.rpartition("/")[2], file.mime, content)


async def _block_content(files: CallFiles, blocks: ResolvedBlocks) -> PathContent | None:
    found = await files.memory.at(blocks.main.position)
    if found is None:
        return None
    block = found.block
    content = (
        decode_base64(block.base64) if block.base64 is not None else (block.text or "").encode(errors="replace")
    )
    return None if content is None else PathContent(blocks.path.kind, block.mime or _TEXT_MIME, content)
