"""Secrets that configurations name as ``${env.X}``: the operator's table, never the process's environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

SECRET_CHARACTERS_MIN = 8
"""A shorter secret could not be removed from responses without damage to other text."""
ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class UnknownEnvError(Exception):
    """A name has no value for this project and host; the text has no value in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"${{env.{name[:100]}}} has no value for this project and host; the operator sets it in "
            "PROOFBOX_GATEWAY_ENV"
        )


@dataclass(frozen=True, slots=True)
class EnvironmentEntry:
    """One secret.

    Attributes:
        value: the secret; at least `SECRET_CHARACTERS_MIN` characters.
        hosts: the hosts that requests with it may go to, in lower case.
        projects: the projects that may use it, as ``tenant/project``; None: all.
    """

    value: str = field(repr=False)
    hosts: frozenset[str]
    projects: frozenset[str] | None = None


class Environment:
    """The operator's secrets by name.

    Args:
        entries: the secrets.

    Raises:
        ValueError: a secret is too short, or has no host.
    """

    def __init__(self, entries: Mapping[str, EnvironmentEntry] | None = None) -> None:
        self._entries = dict(entries or {})
        for name, entry in self._entries.items():
            if ENV_NAME.fullmatch(name) is None:
                raise ValueError(f"{name[:100]!r}: a name has up to 100 of A-Z a-z 0-9 _ and no digit first")
            if len(entry.value) < SECRET_CHARACTERS_MIN:
                raise ValueError(
                    f"{name}: the secret has fewer than {SECRET_CHARACTERS_MIN} characters (got "
                    f"{len(entry.value)}); use a longer one"
                )
            if not entry.hosts:
                raise ValueError(f"{name}: hosts is empty; list the hosts that the secret may be sent to")

    def resolve(self, name: str, project: str, host: str) -> str:
        """Return a secret for a request of a project to a host.

        Args:
            name: the name.
            project: ``tenant/project``.
            host: the host that the request goes to.

        Raises:
            UnknownEnvError: it is unknown, or not for this project or host.
        """
        entry = self._entries.get(name)
        if (
            entry is None
            or host.lower() not in entry.hosts
            or (entry.projects is not None and project not in entry.projects)
        ):
            raise UnknownEnvError(name)
        return entry.value

    def resolve_host(self, name: str, project: str) -> str:
        """Return a value that is the host of a request: it has to be one of its own hosts.

        Raises:
            UnknownEnvError: it is unknown, not for this project, or not one of its hosts.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise UnknownEnvError(name)
        return self.resolve(name, project, entry.value)
