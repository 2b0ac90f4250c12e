"""On whose behalf and in which conversation: part of every key in a store."""

from dataclasses import dataclass, field

KEY_CALLER = "key "
"""How the caller of a request begins that came with an API key."""


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf a request speaks; part of every key in a store.

    Attributes:
        tenant: the outermost wall.
        project: a wall inside it.
        user_type: what kind of user it is.
        user: whose conversations.
        key_id: the API key that the request came with, for whoever writes down who called; None without a key. Two
            keys of one principal see the same things, so it is no part of who the principal is.
    """

    tenant: str
    project: str
    user_type: str
    user: str
    key_id: str | None = field(default=None, compare=False)

    @property
    def caller(self) -> str:
        """Who is counted and waits in line: the key, or the tenant where there are no keys."""
        return f"{KEY_CALLER}{self.key_id}" if self.key_id is not None else f"tenant {self.tenant}"


@dataclass(frozen=True, slots=True)
class ConversationKey:
    """One conversation of one principal: no store ever answers across two scopes."""

    principal: Principal
    conversation_id: str
