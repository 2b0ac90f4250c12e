"""The ports of the stores of entities, spaces, messages and their events."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from proofbox.contracts.gateway.messages import Message, MessagePage, NewMessage
from proofbox.contracts.gateway.spaces import (
    Entity,
    EntityDefinition,
    EntityPage,
    Space,
    SpaceChange,
    SpaceCreation,
    SpacePage,
)
from proofbox.service.identity import ConversationKey, Principal

PAGE_MAX = 100
"""Entries of a page."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts in a space: the store finds the entity.

    Attributes:
        principal: the principal of the request; entities and spaces are those of its project.
        entity_id: the entity that the request names, or that of its space token; None: the one whose ``user`` is
            the principal's user.
        may_act_as: whether it may act as any entity (scope ``spaces:act_as``, or a service without keys). Without a
            named entity it then reads all spaces of the project, as nobody.
        token_space_id: the space that its token opens; None: it has a key, or none is needed.
    """

    principal: Principal
    entity_id: str | None = None
    may_act_as: bool = False
    token_space_id: str | None = None


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The ``Idempotency-Key`` of a creating request.

    Attributes:
        name: its value.
        sha256: the hash of route and body of the request, in hex.
    """

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class PostedMessage:
    """A text that was posted.

    Attributes:
        answer: JSON of a `MessageSent`.
        was_known: whether an earlier request with the same key has posted it.
        due: the ids of the waits that have all their replies now; they are to be ended.
    """

    answer: str
    was_known: bool
    due: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ListedArtifact:
    """An artifact that a message lists.

    Attributes:
        scope: the conversation of the run that posted the message.
        tool_call_id: the call whose artifact it has to be.
        is_value: whether it is the whole input or output, which is stored as an internal artifact.
    """

    scope: ConversationKey
    tool_call_id: str
    is_value: bool


@dataclass(frozen=True, slots=True)
class SpaceCursor:
    """A space whose events somebody follows.

    Attributes:
        row: its row; the topic of its changes is ``space:<row>``.
        entity_id: as whom; None: as nobody, by ``spaces:act_as``.
        first: the id of the oldest event that is stored; one more than ``last`` if there is none.
        last: the id of the newest event; 0 if there was none.
    """

    row: int
    entity_id: str | None
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class StoredSpaceEvent:
    """An event of a space.

    Attributes:
        id: 1, 2, 3 … within the space.
        name: its kind, such as ``message.created``.
        data: JSON text.
    """

    id: int
    name: str
    data: str


@dataclass(frozen=True, slots=True)
class EnteredSpace:
    """A space that became the active space of a run.

    Attributes:
        space_id: its id.
        name: its name.
        members: its members, each as on the wire.
        history: its newest messages, the oldest first, each as on the wire with ``seen``.
        has_more: whether there are older messages.
    """

    space_id: str
    name: str
    members: Sequence[Mapping[str, Any]]
    history: Sequence[Mapping[str, Any]]
    has_more: bool


class SpaceEntry(Protocol):
    """Sets the active space of runs. All methods raise StoreFailedError if the store fails."""

    async def enter(self, principal: Principal, run_id: str, space_id: str, limit: int) -> EnteredSpace | None:
        """Set the active space of a run; None, and nothing changed, if its agent is not a member of an open space.

        Args:
            principal: the caller; run and space are those of its project.
            run_id: the run.
            space_id: the space.
            limit: how many messages of its history are wanted.
        """


class SpaceStore(Protocol):
    """Entities, spaces and members of a project. All methods raise StoreFailedError if the store fails."""

    async def put_entity(self, actor: Actor, entity_id: str, definition: EntityDefinition) -> tuple[Entity, bool]:
        """Make or change a person; True if it is new.

        Raises:
            NameTakenError: another entity has the handle.
            MissingPermissionError: it names another user than the principal's, without ``spaces:act_as``.
            InvalidRequestError: the id is that of an agent, or the user is another entity's.
        """

    async def find_entity(self, principal: Principal, entity_id: str) -> Entity:
        """Return an entity. Raises UnknownEntityError."""

    async def list_entities(self, principal: Principal, before: str | None, limit: int) -> EntityPage:
        """Return a page of entities, the newest first."""

    async def create(self, actor: Actor, creation: SpaceCreation, key: RequestKey | None) -> tuple[str, bool]:
        """Make a space; the actor's entity becomes a member. JSON of a `Space`, and whether it was stored before.

        Raises:
            UnknownEntityError: a member does not exist.
            IdReusedError: the key was used for another request.
        """

    async def find(self, actor: Actor, space_id: str) -> Space:
        """Return a space. Raises UnknownSpaceError, also if the actor is not a member."""

    async def list(self, actor: Actor, before: str | None, limit: int) -> SpacePage:
        """Return a page of the actor's spaces, the newest first."""

    async def change(self, actor: Actor, space_id: str, change: SpaceChange) -> Space:
        """Change name or metadata. Raises UnknownSpaceError, SpaceArchivedError."""

    async def archive(self, actor: Actor, space_id: str) -> None:
        """Make a space read only; again changes nothing. Raises UnknownSpaceError."""

    async def add_member(self, actor: Actor, space_id: str, entity_id: str) -> Space:
        """Add a member; one that is a member stays.

        Raises:
            UnknownSpaceError, UnknownEntityError, SpaceArchivedError: it cannot be.
            InvalidRequestError: the space has as many members as it may.
        """

    async def remove_member(self, actor: Actor, space_id: str, entity_id: str) -> None:
        """Remove a member. Raises UnknownSpaceError, UnknownEntityError, SpaceArchivedError."""


class MessageStore(Protocol):
    """Messages of spaces. All methods raise StoreFailedError, and UnknownSpaceError as `SpaceStore.find`."""

    async def post(self, actor: Actor, space_id: str, message: NewMessage, key: RequestKey | None) -> PostedMessage:
        """Post a text, answer the waits that it replies to, and make a run for each other agent that it mentions.

        Raises:
            SpaceArchivedError: the space can be read only.
            UnknownMessageError, NotReplyableError: ``reply_to`` does not exist, or is the record of a call.
            InvalidRequestError: nobody is known who could be the sender.
            QueueFullError: an agent that it mentions has too many queued runs.
            IdReusedError: the key was used for another request.
        """

    async def list(
        self, actor: Actor, space_id: str, *, before: int | None, after: int | None, limit: int
    ) -> MessagePage:
        """Return messages, the oldest first: the newest ones, those before or those after a number."""

    async def find(self, actor: Actor, space_id: str, message_id: str) -> Message:
        """Return a message. Raises UnknownMessageError."""

    async def find_artifact(self, actor: Actor, space_id: str, message_id: str, path: str) -> ListedArtifact:
        """Return an artifact that a message lists. Raises UnknownMessageError."""


class SpaceEventStore(Protocol):
    """Events of spaces. All methods raise StoreFailedError."""

    async def open(self, actor: Actor, space_id: str) -> SpaceCursor:
        """Return where the events of a space stand. Raises UnknownSpaceError."""

    async def after(self, row: int, position: int, limit: int) -> Sequence[StoredSpaceEvent]:
        """Return the events of a space after a position, in order."""

    async def newest(self, row: int) -> int:
        """Return the id of the newest event of a space."""

    async def streaming(self, row: int) -> set[str]:
        """Return the ids of the records of a space whose arguments are being written."""

    async def sent(self, row: int, message_ids: Collection[str]) -> set[str]:
        """Return which of some ids messages of a space have."""


__all__ = [
    "PAGE_MAX",
    "Actor",
    "EnteredSpace",
    "ListedArtifact",
    "Message",
    "MessageStore",
    "PostedMessage",
    "RequestKey",
    "SpaceCursor",
    "SpaceEntry",
    "SpaceEventStore",
    "SpaceStore",
    "StoredSpaceEvent",
]
