"""On whose behalf and in which conversation: part of every key in a store."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a request speaks; part of every key in a store."""

    tenant: str
    project: str
    user_type: str
    user: str


@dataclass(frozen=True, slots=True)
class Scope:
    """One conversation of one principal: no store ever answers across two scopes."""

    principal: Principal
    conversation_id: str
