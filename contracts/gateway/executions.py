"""The variants of ``execution`` of a configured tool; times are in milliseconds."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import Discriminator, Field, Tag

from proofbox.contracts.gateway.wire import ConfigurationModel, JsonObject

if TYPE_CHECKING:
    from proofbox.contracts.gateway.configuration import SubAgentConfiguration

TIMEOUT_MS_MAX = 300_000
ANSWER_TIMEOUT_MS_MAX = 7 * 24 * 3_600_000
COMPUTE_TIMEOUT_MS_MAX = 5_000
URL_CHARACTERS_MAX = 8_192
HEADERS_MAX = 64
TimeoutMs = Annotated[int, Field(ge=1, le=TIMEOUT_MS_MAX)]
AnswerTimeoutMs = Annotated[int, Field(ge=1_000, le=ANSWER_TIMEOUT_MS_MAX)]
UrlTemplate = Annotated[str, Field(min_length=1, max_length=URL_CHARACTERS_MAX)]
HeaderTemplates = Annotated[dict[str, str], Field(max_length=HEADERS_MAX)]
HttpMethod = Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


class Retry(ConfigurationModel):
    """How often a request is sent if the connection fails or the status is 429, 502, 503 or 504."""

    attempts: Annotated[int, Field(ge=1, le=3)]
    """Attempts, the first one included."""


class HttpExecution(ConfigurationModel):
    """An HTTP request; ``url``, ``headers``, ``query`` and ``body`` are templates."""

    url: UrlTemplate
    """An absolute http or https URL; placeholders in path and query only."""
    method: HttpMethod = "GET"
    """The method."""
    headers: HeaderTemplates = {}
    """Headers, by their literal names."""
    query: JsonObject | None = None
    """Parameters that are added to the query; objects and lists become JSON text."""
    body: Any = None
    """The JSON body, a form, or a text; absent: the whole input, for methods that have a body."""
    timeout: TimeoutMs = 30_000
    """For all attempts together."""
    retry: Retry | None = None
    """Absent: 2 attempts of GET, HEAD, PUT and DELETE, one of POST and PATCH."""


class SubAgentExecution(ConfigurationModel):
    """A bounded loop with a model inside the call."""

    agent_config: "SubAgentConfiguration"
    """The configuration of the sub-agent; every part is optional."""
    include_context: bool = False
    """Whether the sub-agent's model reads the end of the conversation."""
    timeout: TimeoutMs = 60_000
    """For the whole loop."""


class ImageExecution(ConfigurationModel):
    """The generation of a picture."""

    provider: Annotated[str, Field(min_length=1, max_length=64)]
    """The name of an endpoint that the operator has configured."""
    model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """One of the endpoint's models; absent: its first."""
    size: Annotated[str, Field(pattern=r"^[1-9][0-9]{1,4}x[1-9][0-9]{1,4}$")] = "1024x1024"
    """Width and height in pixels."""
    quality: Annotated[str, Field(max_length=64)] | None = None
    """As the endpoint names it."""
    style: Annotated[str, Field(max_length=64)] | None = None
    """As the endpoint names it."""
    timeout: TimeoutMs = 120_000
    """For the request and for fetching the picture."""


class ComputeExecution(ConfigurationModel):
    """A Python expression that a sandbox evaluates."""

    operation: Literal["evaluate"]
    """What to do."""
    expression: Annotated[str, Field(min_length=1, max_length=20_000)]
    """The expression; a placeholder in it is a value, never text of the expression."""
    timeout: Annotated[int, Field(ge=1, le=COMPUTE_TIMEOUT_MS_MAX)] = COMPUTE_TIMEOUT_MS_MAX
    """For the evaluation."""


class OutputExecution(ConfigurationModel):
    """A result without any work: static, or made of the input."""

    output: Any
    """The result, a template."""


class OwnToolExecution(ConfigurationModel):
    """One of the service's own tools."""

    tool: Annotated[str, Field(min_length=1, max_length=128)]
    """Its ``tool_id``."""
    params: JsonObject | None = None
    """Its params, a template; absent: the input."""
    code: str | None = None
    """Its code, a template; absent: the input's ``code``, for tools that take code."""


class WebhookExecution(ConfigurationModel):
    """A signed request to a service, which answers at once or later."""

    webhook_url: UrlTemplate
    """An absolute http or https URL; placeholders in path and query only."""
    method: Literal["POST", "PUT", "PATCH"] = "POST"
    """The method."""
    headers: HeaderTemplates = {}
    """Headers beside the signature, by their literal names."""
    timeout: TimeoutMs = 30_000
    """For all attempts together."""
    answer_timeout: AnswerTimeoutMs = 600_000
    """How long a service that answered 202 may take for the result."""
    secret: str | None = None
    """``${env.X}`` with a ``whsec_…`` secret; absent: the agent's own secret signs."""


class Display(ConfigurationModel):
    """How a space shows the record of a call."""

    custom_ui: str | None = Field(None, alias="customUI", min_length=1, max_length=128)
    """The component that shows it; absent: the tool's name."""
    show_input: bool = True
    """Whether the record has the input."""
    show_output: bool = True
    """Whether the record has the output."""


class SpaceExecution(ConfigurationModel):
    """A question to the members of the active space."""

    timeout: AnswerTimeoutMs = 600_000
    """How long an answer may take."""
    answer_by: Literal["humans", "members"] | Annotated[list[str], Field(min_length=1, max_length=100)] = "humans"
    """Who may answer: persons, persons and agents, or the entities of these ids."""
    display: Display | None = None
    """Read as the tool's ``display``."""


_MARKS = {
    "url": "http",
    "webhookUrl": "webhook",
    "agentConfig": "sub_agent",
    "provider": "image",
    "operation": "compute",
    "expression": "compute",
    "output": "output",
    "tool": "own_tool",
    "timeout": "space",
    "answerBy": "space",
    "display": "space",
}
"""The key by which a variant is recognised; the first one of this order that is there decides."""


def execution_variant(value: Any) -> str | None:
    """The variant of an ``execution``, given as JSON or as a model; None if it is none of them."""
    if isinstance(value, Mapping):
        return "space" if not value else next((kind for key, kind in _MARKS.items() if key in value), None)
    return next((kind for kind, model in VARIANTS.items() if isinstance(value, model)), None)


VARIANTS_BY_TYPE: dict[str, frozenset[str]] = {
    "gateway": frozenset({"http", "sub_agent", "image", "compute", "output", "own_tool"}),
    "internal": frozenset({"http", "sub_agent", "image", "compute", "output", "own_tool"}),
    "external": frozenset({"webhook"}),
    "space": frozenset({"space"}),
}
"""Which variants a type of execution has."""
UNKNOWN_VARIANT = (
    "no known variant; give one of url, agentConfig, provider, operation, output and tool (gateway, internal), "
    "webhookUrl (external), or timeout and answerBy (space)"
)
Execution = Annotated[
    Annotated[HttpExecution, Tag("http")]
    | Annotated[WebhookExecution, Tag("webhook")]
    | Annotated[SubAgentExecution, Tag("sub_agent")]
    | Annotated[ImageExecution, Tag("image")]
    | Annotated[ComputeExecution, Tag("compute")]
    | Annotated[OutputExecution, Tag("output")]
    | Annotated[OwnToolExecution, Tag("own_tool")]
    | Annotated[SpaceExecution, Tag("space")],
    Discriminator(execution_variant, custom_error_type="unknown_execution", custom_error_message=UNKNOWN_VARIANT),
]
VARIANTS: dict[str, type[ConfigurationModel]] = {
    tag.tag: model for model, tag in (get_args(variant) for variant in get_args(get_args(Execution)[0]))
}
"""The models of all variants by their names."""
