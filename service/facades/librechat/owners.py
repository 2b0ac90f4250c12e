"""Owners of sessions: the user, or an agent or a version of a skill, which all users of a tenant share."""

import re
from dataclasses import dataclass, replace
from typing import Any

from proofbox.service.facades.librechat.errors import RefusedError
from proofbox.service.identity import Principal

KINDS = ("user", "agent", "skill")
_ID_CHARS_MAX = 256
# Control characters, and halves of surrogate pairs, which UTF-8 does not have.
_NOT_IN_IDS = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner that a request names.

    Attributes:
        kind: ``user``, ``agent`` or ``skill``.
        id: the id of the agent or skill; of a user it has no meaning, for the credentials name the user.
        version: the version of the skill.
    """

    kind: str = "user"
    id: str = ""
    version: int | None = None

    def principal(self, caller: Principal) -> Principal:
        """Return the principal whose conversations the owner's sessions are."""
        if self.kind == "user":
            return caller
        name = self.id if self.kind == "agent" else f"{self.id}:v:{self.version}"
        return replace(caller, user_type=f"librechat_{self.kind}", user=name)

    def fields(self) -> dict[str, Any]:
        """Return the owner as a file reference names it."""
        if self.kind == "user":
            return {"kind": self.kind}
        version = {} if self.version is None else {"version": self.version}
        return {"kind": self.kind, "resource_id": self.id, **version}


def parse_owner(kind: object, resource_id: object, version: object, entity_id: object = None) -> Owner:
    """Return the owner that a form, a query or a file reference names; without ``kind`` the user.

    ``entity_id`` is the field of older clients for an agent.

    Raises:
        RefusedError: the kind is unknown, or its id or version is missing or wrong.
    """
    if kind in {None, ""}:
        kind, resource_id = ("agent", entity_id) if entity_id else ("user", resource_id)
    if kind not in KINDS:
        raise RefusedError(f"kind must be one of: {', '.join(KINDS)}")
    if kind == "user":
        return Owner()
    if not isinstance(resource_id, str) or not 0 < len(resource_id) <= _ID_CHARS_MAX:
        raise RefusedError(f"id is required for kind: '{kind}' (limit {_ID_CHARS_MAX} characters)")
    if _NOT_IN_IDS.search(resource_id):
        raise RefusedError("id: has a character that no id has; send the id as UTF-8 without control characters")
    if kind == "agent":
        if version not in {None, ""}:
            raise RefusedError("version is only valid for kind: 'skill'")
        return Owner("agent", resource_id)
    return Owner("skill", resource_id, _version(version))


def _version(given: object) -> int:
    if given in {None, ""}:
        raise RefusedError("version is required for kind: 'skill'")
    text = str(given)
    if isinstance(given, bool) or not text.isascii() or not text.isdigit() or len(text) > len(str(2**63)):
        raise RefusedError("version must be a number for kind: 'skill'")
    return int(text)
