"""What is refused in tools that ask a model: endpoints that cannot do it, and models that they do not have."""

from collections.abc import Iterator
from typing import Any

from proofbox.contracts.gateway.executions import ImageExecution
from proofbox.service.gateway.agents.input_schemas import InputPaths
from proofbox.service.gateway.llm.endpoints import DEFAULT_ENDPOINT, Ability, EndpointRefusedError, LlmEndpoints

Finding = tuple[str, str]
"""A field below the execution, and what is wrong with it."""
_NAME_CHARACTERS_MAX = 200


def check_image(execution: ImageExecution, schema: Any, endpoints: LlmEndpoints) -> Iterator[Finding]:
    """Check a tool that makes pictures; an endpoint that the operator may still add is not refused.

    Args:
        execution: the parsed execution.
        schema: the JSON Schema of its input.
        endpoints: the operator's endpoints.
    """
    if not InputPaths(schema).can_have(["prompt"]):
        yield "inputSchema", "a tool that makes pictures reads the property prompt; add it as a text"
    for part, message in _refusals(endpoints, execution.provider, execution.model, "images"):
        yield ("execution.model" if part == "model" else "execution.provider"), message


def check_sub_agent_model(configuration: dict[str, Any], endpoints: LlmEndpoints) -> Iterator[Finding]:
    """Check the ``model`` of the configuration of a sub-agent, as JSON; fields begin below the configuration."""
    model = configuration.get("model")
    if not isinstance(model, dict):
        return  # absent, or refused by the model of configurations
    provider, name = model.get("provider", DEFAULT_ENDPOINT), model.get("name")
    is_text = True
    for key, value in (("provider", provider), ("name", name)):
        if key == "name" and value is None:
            continue
        if not isinstance(value, str) or not 1 <= len(value) <= _NAME_CHARACTERS_MAX:
            is_text = False
            yield f"model.{key}", f"give a text of 1 to {_NAME_CHARACTERS_MAX} characters, or leave it out"
    if is_text:
        for part, message in _refusals(endpoints, provider, name, "chat"):
            yield f"model.{'name' if part == 'model' else 'provider'}", message


def _refusals(endpoints: LlmEndpoints, name: str, model: str | None, ability: Ability) -> Iterator[Finding]:
    if not endpoints.knows(name):
        return
    try:
        endpoints.find(name, ability).choose_model(model)
    except EndpointRefusedError as exc:
        yield exc.part, str(exc)
