"""What the MCP endpoint is configured with."""

from dataclasses import dataclass

from proofbox.service.sandbox.limits import CallLimits

TURN_ID = "turn_1"
"""The turn of all calls: one workspace for a conversation, whose files each call finds again."""
BODY_BYTES_MAX = 16 * 1024 * 1024
"""The largest request: a program of 10 MiB as JSON text."""
WAIT_S_DEFAULT = 45.0
"""How long a call is waited for: below the 60 s after which many clients give up."""
WAIT_S_MAX = 600.0


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
