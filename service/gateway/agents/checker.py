"""The check of an agent's configuration: all mistakes at once, each with its field."""

import hashlib
import json
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from proofbox.contracts.gateway.codes import ConfigurationCode, WarningCode
from proofbox.contracts.gateway.configuration import (
    CONFIGURATION_BYTES_MAX,
    AgentConfiguration,
    McpServer,
    misfits,
)
from proofbox.contracts.gateway.executions import (
    VARIANTS_BY_TYPE,
    Execution,
    ImageExecution,
    SubAgentExecution,
    execution_variant,
)
from proofbox.contracts.gateway.names import BUILT_IN_NAMES
from proofbox.contracts.gateway.wire import GatewayWarning
from proofbox.contracts.problems import FieldError
from proofbox.service.gateway.agents.endpoint_check import check_image, check_sub_agent_model
from proofbox.service.gateway.agents.execution_check import check_execution
from proofbox.service.gateway.agents.input_schemas import written_input_schema
from proofbox.service.gateway.agents.template_check import TemplateCheck
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.environment import Environment
from proofbox.service.gateway.llm.endpoints import LlmEndpoints
from proofbox.service.gateway.schema_check import SchemaRefusedError, check_schema, load_validator, spell_field
from proofbox.service.gateway_errors import InvalidToolError

ERRORS_MAX = 100
SUB_AGENT_STEPS_MAX = 10
_VARIANTS = frozenset().union(*VARIANTS_BY_TYPE.values())
_VISIBILITIES = frozenset({"visible", "hidden", "result-only"})
_EXECUTION: TypeAdapter[Any] = TypeAdapter(Execution)


@dataclass(frozen=True, slots=True)
class CheckedConfiguration:
    """A configuration that was accepted.

    Attributes:
        configuration: the configuration.
        document: its JSON text, as it was written, in ASCII.
        sha256: of it as JSON with sorted keys, without spaces, in ASCII; in hex.
        warnings: what needs attention.
    """

    configuration: AgentConfiguration
    document: str
    sha256: str
    warnings: list[GatewayWarning]


def check_configuration(
    document: Any, environment: Environment, project: str, endpoints: LlmEndpoints | None = None
) -> CheckedConfiguration:
    """Check a configuration document.

    Args:
        document: the document, any JSON.
        environment: the operator's secrets.
        project: ``tenant/project``, for which they are resolved.
        endpoints: the operator's endpoints of models; None: there are none.

    Raises:
        InvalidToolError: it has mistakes; ``errors`` lists them.
        GatewayNotInstalledError: the library that checks inputs is not installed.
    """
    load_validator()
    text = json.dumps(document, separators=(",", ":"))
    size = len(compact_json(document).encode(errors="replace"))
    if size > CONFIGURATION_BYTES_MAX:
        message = f"it is too large (limit {CONFIGURATION_BYTES_MAX:,} bytes, got {size:,})"
        raise _refusal([FieldError(field="configuration", code=ConfigurationCode.TOO_LARGE, message=message)])
    checker = _Checker(environment, project, endpoints or LlmEndpoints())
    configuration = None
    try:
        configuration = AgentConfiguration.model_validate(document)
    except ValidationError as exc:
        checker.errors += list(_errors_of(exc))
    if isinstance(document, dict):
        checker.check_tools(document.get("tools"), "tools")
        checker.check_mcp(document.get("mcp"), "mcp")
    if configuration is None or checker.errors:
        raise _refusal(_without_repeats(checker.errors))
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return CheckedConfiguration(
        configuration, text, hashlib.sha256(canonical.encode()).hexdigest(), checker.warnings
    )


class _Checker:
    """Collects the mistakes that the models do not see; it reads JSON that may not fit them."""

    def __init__(
        self, environment: Environment, project: str, endpoints: LlmEndpoints, *, is_nested: bool = False
    ) -> None:
        self._environment = environment
        self._project = project
        self._endpoints = endpoints
        self._is_nested = is_nested
        self.errors: list[FieldError] = []
        self.warnings: list[GatewayWarning] = []

    def check_tools(self, tools: Any, field: str) -> None:
        """Check a list of tools."""
        names: set[str] = set()
        for index, tool in enumerate(tools if isinstance(tools, list) else []):
            if not isinstance(tool, dict):
                continue
            place = f"{field}[{index}]"
            name = tool.get("name")
            if isinstance(name, str):
                if name in BUILT_IN_NAMES:
                    self._refuse(f"{place}.name", f"{name} is a built-in tool; choose another name", "name_taken")
                elif name in names:
                    self._refuse(f"{place}.name", f"another tool has the name {name}; choose another", "name_taken")
                names.add(name)
            self._check_tool(tool, place)

    def check_mcp(self, mcp: Any, field: str) -> None:
        """Check the MCP servers."""
        servers = mcp.get("servers") if isinstance(mcp, dict) else None
        names: set[str] = set()
        for index, given in enumerate(servers if isinstance(servers, list) else []):
            place = f"{field}.servers[{index}]"
            try:
                server = McpServer.model_validate(given)
            except ValidationError:
                continue  # its errors are those of the whole
            if server.name in names:
                self._refuse(f"{place}.name", f"another server has the name {server.name}", "name_taken")
            names.add(server.name)
            if self._is_nested and (server.elicitation == "space" or server.requires_approval):
                self._refuse(place, "no tool of a sub-agent waits; leave out elicitation and requiresApproval")
            check = TemplateCheck(self._environment, self._project, None, place)
            host = check.check_url(server.url, f"{place}.url")
            check.check_headers(server.headers, f"{place}.headers", host)
            self._take(check)

    def _check_tool(self, tool: dict[str, Any], place: str) -> None:
        kind: Any = tool.get("executionType")
        execution = tool.get("execution")
        variant = execution_variant(execution) if isinstance(execution, dict) else None
        if _is_one_of(kind, VARIANTS_BY_TYPE) and (variant is not None or execution is None):
            visibility = tool.get("visibility")
            visibility = visibility if _is_one_of(visibility, _VISIBILITIES) else None
            for field, message in misfits(kind, visibility, variant):
                self._refuse(f"{place}.{field}", message)
        schema = self._check_schema(tool.get("inputSchema"), f"{place}.inputSchema", is_input=True)
        self._check_schema(tool.get("resultSchema"), f"{place}.resultSchema")
        if not str(tool.get("description") or "").strip():
            message = f"{place}.description: it is blank; a model needs to know what the tool does"
            self.warnings.append(GatewayWarning(code=WarningCode.BLANK_DESCRIPTION, message=message))
        if self._is_nested:
            self._refuse_nested(tool, place)
        if variant is None:
            return
        try:
            parsed = _EXECUTION.validate_python(execution)
        except ValidationError:
            if variant == "sub_agent":
                self._check_sub_agent(execution, f"{place}.execution")
            return  # its errors are those of the whole
        self._check_parsed(parsed, execution, schema, place)

    def _check_parsed(self, parsed: Any, execution: Any, schema: dict[str, Any] | None, place: str) -> None:
        schema = written_input_schema(parsed) if schema is None else schema
        check = TemplateCheck(self._environment, self._project, schema, place)
        check_execution(parsed, check, f"{place}.execution")
        self._take(check)
        if isinstance(parsed, ImageExecution):
            for field, message in check_image(parsed, schema, self._endpoints):
                self._refuse(f"{place}.{field}", message)
        if isinstance(parsed, SubAgentExecution):
            self._check_sub_agent(execution, f"{place}.execution")

    def _check_schema(self, schema: Any, field: str, *, is_input: bool = False) -> dict[str, Any] | None:
        if not isinstance(schema, dict):
            return None
        if is_input and schema.get("type") != "object":
            self._refuse(f"{field}.type", 'an input is an object; give "type": "object"', "invalid_schema")
        try:
            check_schema(schema)
        except SchemaRefusedError as exc:
            self._refuse(spell_field(field, exc.path), exc.message, "invalid_schema")
            return None
        return schema

    def _check_sub_agent(self, execution: Any, field: str) -> None:
        inner = execution.get("agentConfig")
        if self._is_nested or not isinstance(inner, dict):
            return  # refused as a tool of a sub-agent, or by the model
        place = f"{field}.agentConfig"
        checker = _Checker(self._environment, self._project, self._endpoints, is_nested=True)
        checker.check_tools(inner.get("tools"), f"{place}.tools")
        checker.check_mcp(inner.get("mcp"), f"{place}.mcp")
        loop = inner.get("loop")
        steps = loop.get("maxSteps", 1) if isinstance(loop, dict) else 1
        if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= SUB_AGENT_STEPS_MAX:
            message = f"a sub-agent takes 1 to {SUB_AGENT_STEPS_MAX} steps (got {str(steps)[:20]})"
            checker._refuse(f"{place}.loop.maxSteps", message)
        for name, wrong in check_sub_agent_model(inner, self._endpoints):
            checker._refuse(f"{place}.{name}", wrong)
        self.errors += checker.errors
        self.warnings += checker.warnings

    def _refuse_nested(self, tool: dict[str, Any], place: str) -> None:
        if tool.get("executionType") in ("space", "external"):
            message = f"a sub-agent's tools wait for nobody: not {tool['executionType']}; use gateway or internal"
            self._refuse(f"{place}.executionType", message)
        if tool.get("requiresApproval"):
            self._refuse(f"{place}.requiresApproval", "a sub-agent's tools wait for nobody; leave it out")
        execution = tool.get("execution")
        if isinstance(execution, dict) and execution_variant(execution) == "sub_agent":
            self._refuse(f"{place}.execution", "a sub-agent has no sub-agents; leave the tool out")

    def _take(self, check: TemplateCheck) -> None:
        self.errors += check.errors
        self.warnings += check.warnings

    def _refuse(self, field: str, message: str, code: str = ConfigurationCode.INVALID_VALUE) -> None:
        self.errors.append(FieldError(field=field, code=code, message=message))


def _is_one_of(value: Any, known: Container[str]) -> bool:
    """Whether any JSON value is one of some texts."""
    return isinstance(value, str) and value in known


def _errors_of(exc: ValidationError) -> Iterator[FieldError]:
    for error in exc.errors(include_url=False, include_context=False, include_input=False):
        yield FieldError(
            field=_field_of(error["loc"]), code=error["type"], message=error["msg"].removeprefix("Value error, ")
        )


def _field_of(loc: Sequence[str | int]) -> str:
    """A location without what pydantic adds for the kinds of a value."""
    parts: list[str | int] = []
    for part in loc:
        if isinstance(part, str):
            if parts and parts[-1] == "execution" and part in _VARIANTS:
                continue
            if part.startswith(("literal[", "list[", "constrained-", "function-")) or part == "[key]":
                break
        parts.append(part)
    if not parts:
        return "configuration"
    return spell_field(str(parts[0]), parts[1:])


def _without_repeats(errors: Sequence[FieldError]) -> list[FieldError]:
    """The errors in the order of their fields, each field and message once."""
    seen = {(error.field, error.message): error for error in errors}
    return list(seen.values())


def _refusal(errors: Sequence[FieldError]) -> InvalidToolError:
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return InvalidToolError(f"{errors[0].field}: {errors[0].message}{more}", errors=list(errors[:ERRORS_MAX]))
