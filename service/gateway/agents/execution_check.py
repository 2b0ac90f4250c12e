"""What is refused in ``execution`` when a configuration is written: one function per variant."""

from collections.abc import Callable
from typing import Any

from proofbox.contracts.gateway.codes import ConfigurationCode
from proofbox.contracts.gateway.executions import (
    ComputeExecution,
    HttpExecution,
    OutputExecution,
    OwnToolExecution,
    WebhookExecution,
)
from proofbox.service.gateway.agents.input_schemas import own_tools
from proofbox.service.gateway.agents.template_check import TemplateCheck
from proofbox.service.gateway.compute.expression import ExpressionError, is_own_expression, parse_expression
from proofbox.service.gateway.compute.program import FUNCTIONS
from proofbox.service.gateway.http_template import FORM, TEXT, content_type_of
from proofbox.service.gateway.templates import TemplateError, parse_template


def check_execution(execution: Any, check: TemplateCheck, field: str) -> None:
    """Check the templates of an execution, and what belongs together in it.

    Args:
        execution: the parsed execution, of any variant.
        check: collects what is wrong.
        field: where the execution is.
    """
    if (check_variant := _CHECKS.get(type(execution))) is not None:
        check_variant(execution, check, field)


def _check_http(execution: HttpExecution, check: TemplateCheck, field: str) -> None:
    host = check.check_url(execution.url, f"{field}.url")
    check.check_headers(execution.headers, f"{field}.headers", host)
    check.check_json(execution.query or {}, f"{field}.query", host)
    if "body" not in execution.model_fields_set:
        return
    place = f"{field}.body"
    if execution.method in {"GET", "HEAD"}:
        check.refuse(place, f"{execution.method} has no body; use query", ConfigurationCode.INVALID_VALUE)
    check.check_json(execution.body, place, host)
    kind = content_type_of(list(execution.headers.items()))
    if kind == FORM and not isinstance(execution.body, dict) and not _is_placeholder(execution.body):
        check.refuse(place, "a form is an object of its fields", ConfigurationCode.INVALID_VALUE)
    if kind != TEXT and isinstance(execution.body, str) and not _is_placeholder(execution.body):
        check.refuse(
            place,
            "a body that is text needs the header Content-Type: text/plain; give JSON otherwise",
            ConfigurationCode.INVALID_VALUE,
        )


def _check_webhook(execution: WebhookExecution, check: TemplateCheck, field: str) -> None:
    host = check.check_url(execution.webhook_url, f"{field}.webhookUrl")
    check.check_headers(execution.headers, f"{field}.headers", host)
    if execution.secret is not None:
        check.check_secret(execution.secret, f"{field}.secret", host)


def _check_output(execution: OutputExecution, check: TemplateCheck, field: str) -> None:
    check.check_json(execution.output, f"{field}.output", None, has_env=False)


def _check_compute(execution: ComputeExecution, check: TemplateCheck, field: str) -> None:
    place = f"{field}.expression"
    known = len(check.errors)
    check.check_json(execution.expression, place, None, has_env=False)
    if len(check.errors) > known or is_own_expression(execution.expression):
        return
    try:
        expression = parse_expression(execution.expression)
    except ExpressionError as exc:
        check.refuse(place, str(exc), ConfigurationCode.INVALID_VALUE)
        return
    for name in expression.unknown_names(lambda key: check.can_have((key,))):
        check.refuse(
            place,
            f"nothing has the name {name[:64]}; use keys of the input, input, math and {', '.join(FUNCTIONS)}",
            ConfigurationCode.INVALID_VALUE,
        )


def _check_own_tool(execution: OwnToolExecution, check: TemplateCheck, field: str) -> None:
    own = own_tools().get(execution.tool)
    if own is None:
        check.refuse(
            f"{field}.tool",
            f"there is no tool {execution.tool[:100]!r} of this service; GET /v1/tools lists them",
            ConfigurationCode.INVALID_VALUE,
        )
    elif execution.code is not None and not own.takes_code:
        check.refuse(f"{field}.code", f"{own.tool_id} takes no code; leave it out", ConfigurationCode.INVALID_VALUE)
    check.check_json(execution.params or {}, f"{field}.params", None, has_env=False)
    check.check_json(execution.code or "", f"{field}.code", None, has_env=False)


def _is_placeholder(template: Any) -> bool:
    """Whether a template is one placeholder, whose value may be of any type."""
    if not isinstance(template, str):
        return False
    try:
        parts = parse_template(template)
    except TemplateError:
        return True  # reported where it is
    return len(parts) == 1 and not isinstance(parts[0], str)


_CHECKS: dict[type, Callable[[Any, TemplateCheck, str], None]] = {
    HttpExecution: _check_http,
    WebhookExecution: _check_webhook,
    OutputExecution: _check_output,
    ComputeExecution: _check_compute,
    OwnToolExecution: _check_own_tool,
}
