"""What the MCP endpoint is configured with."""

from collections.abc import Mapping
from dataclasses import dataclass

from proofbox.service.calls.validation import invalid_value
from proofbox.service.sandbox.limits import CallLimits

TURN_ID = "turn_1"
"""The turn of all calls: one workspace for a conversation, whose files each call finds again."""
BODY_BYTES_MAX = 16 * 1024 * 1024
"""The largest request: a program of 10 MiB as JSON text."""
WAIT_S_DEFAULT = 45.0
"""How long a call is waited for: below the 60 s after which many clients give up."""
WAIT_S_MAX = 600.0
_VALUES = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class McpSwitches:
    """What the query of the endpoint's URL switches off, for clients that cannot read it.

    Attributes:
        resource_links: whether results have blocks of the type ``resource_link``.
        structured_content: whether results have structured content, and tools a schema of it.
    """

    resource_links: bool = True
    structured_content: bool = True

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> "McpSwitches":
        """Reads a query.

        Raises:
            InvalidRequestError: a switch is neither true nor false.
        """
        given = {name: query[name] for name in cls.__dataclass_fields__ if name in query}
        for name, value in given.items():
            if value.lower() not in _VALUES:
                raise invalid_value(name, f"'{value[:40]}' is neither true nor false; write {name}=false")
        return cls(**{name: _VALUES[value.lower()] for name, value in given.items()})


@dataclass(frozen=True, slots=True)
class McpOptions:
    """The options of the endpoint.

    Attributes:
        limits: the limits of a call, which the descriptions of the tools state.
        release: the version of the service.
        link_s: the lifetime of upload and download links.
        absent_tools: ids of tools that this installation does not have.
        retention: how long files of a conversation are stored, in words.
        has_packages: whether programs in Python can ask for packages.
    """

    limits: CallLimits
    release: str
    link_s: int
    absent_tools: frozenset[str] = frozenset()
    retention: str = "until the operator deletes it"
    has_packages: bool = False
