"""Entities, spaces and space tokens."""

from typing import Annotated, Literal

from pydantic import Field

from proofbox.contracts.gateway.messages import Member
from proofbox.contracts.gateway.names import EntityId, Handle
from proofbox.contracts.gateway.wire import JsonObject
from proofbox.contracts.wire_model import WireModel

SPACE_NAME_CHARACTERS_MAX = 200
MEMBERS_MAX = 1_000
TOKEN_S_MAX = 86_400
DisplayName = Annotated[str, Field(min_length=1, max_length=200)]
SpaceName = Annotated[str, Field(min_length=1, max_length=SPACE_NAME_CHARACTERS_MAX)]


class EntityDefinition(WireModel):
    """A person; agents are entities by themselves."""

    type: Literal["human"]
    """A person."""
    handle: Handle
    """Others mention the person by ``@handle``; unique in the project, case ignored."""
    display_name: DisplayName
    """The name that is shown."""
    user: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The user of keys that act as this person."""


class Entity(WireModel):
    """A person or an agent: what can be a member of a space."""

    entity_id: str
    """Its id; of an agent ``agent:<agent_id>``."""
    type: Literal["human", "agent"]
    """A person or an agent."""
    handle: str | None
    """Its handle; null if the agent was deleted."""
    display_name: str
    """The name that is shown."""
    user: str | None = None
    """The user of keys that act as this person."""
    created: str
    """When it was first written: UTC, RFC 3339, ``Z``."""


class EntityPage(WireModel):
    """A page of the list of entities, the newest first."""

    items: list[Entity]
    """The entities."""
    next: str | None
    """What the next request gives as ``before``; null on the last page."""


class SpaceCreation(WireModel):
    """Makes a space."""

    name: SpaceName
    """The name that is shown."""
    metadata: JsonObject = {}
    """What the creator wants to find again, at most 16 KiB."""
    members: Annotated[list[EntityId], Field(max_length=MEMBERS_MAX)] = []
    """Its first members, by their ids."""


class SpaceChange(WireModel):
    """Changes a space; what is absent stays."""

    name: SpaceName | None = None
    """The name that is shown."""
    metadata: JsonObject | None = None
    """Replaces the metadata, at most 16 KiB."""


class Space(WireModel):
    """A place where members see messages and the calls of tools."""

    space_id: str
    """Its id."""
    name: str
    """The name that is shown."""
    metadata: JsonObject
    """What its creator gave."""
    members: list[Member]
    """Its members."""
    created: str
    """When it was made: UTC, RFC 3339, ``Z``."""
    archived: str | None
    """Since when it can be read only."""
    last_seq: int
    """The number of its newest message; 0 if it has none."""


class SpacePage(WireModel):
    """A page of the list of spaces, the newest first."""

    items: list[Space]
    """The spaces."""
    next: str | None
    """What the next request gives as ``before``; null on the last page."""


class SpaceTokenRequest(WireModel):
    """Asks for a token that opens one space as one entity."""

    entity_id: EntityId
    """As whom; a member of the space."""
    expires_s: Annotated[int, Field(ge=1, le=TOKEN_S_MAX)] = 3_600
    """How long it works."""


class SpaceToken(WireModel):
    """A token that opens one space as one entity and nothing else."""

    token: str
    """``pbs_…``, for ``Authorization: Bearer``."""
    expires: str
    """Until when it works: UTC, RFC 3339, ``Z``."""
