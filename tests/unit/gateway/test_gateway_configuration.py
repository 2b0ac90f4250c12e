"""What is refused when a configuration is written: all mistakes at once, each with its field."""

import copy

import pytest

from proofbox.service.gateway.agents.checker import check_configuration
from proofbox.service.gateway.environment import Environment, EnvironmentEntry
from proofbox.service.gateway_errors import InvalidToolError

PROJECT = "acme/books"
ENVIRONMENT = Environment(
    {
        "KEY": EnvironmentEntry("secret-0123456789", frozenset({"api.example.com"})),
        "OTHER_PROJECT": EnvironmentEntry("secret-9876543210", frozenset({"api.example.com"}), frozenset({"a/b"})),
        "HOST": EnvironmentEntry("intern.example.com", frozenset({"intern.example.com"})),
        "NOT_ITS_HOST": EnvironmentEntry("elsewhere.example.com", frozenset({"api.example.com"})),
        "BROKEN": EnvironmentEntry("two\r\nlines-0123", frozenset({"api.example.com"})),
        "SIGNS": EnvironmentEntry("whsec_MDEyMzQ1Njc4OWFiY2RlZg==", frozenset({"hooks.example.com"})),
    }
)
HTTP = {"url": "https://api.example.com/v1", "method": "POST"}
HOOK = {"webhookUrl": "https://hooks.example.com/x"}
CLOSED = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "list": {"type": "array", "items": {"type": "integer"}}},
    "additionalProperties": False,
}


def http(**changes):
    return {"name": "t", "description": "d", "executionType": "gateway", "execution": {**HTTP, **changes}}


def tool(kind, execution, **more):
    return {"name": "t", "description": "d", "executionType": kind, "execution": execution, **more}


def document(*tools, **more):
    return {"version": "2", "agent": {"name": "helper"}, "tools": list(tools), **more}


def refused(given):
    with pytest.raises(InvalidToolError) as caught:
        check_configuration(given, ENVIRONMENT, PROJECT)
    return {error.field: (error.code, error.message) for error in caught.value.errors}


def accepted(given):
    return check_configuration(given, ENVIRONMENT, PROJECT)


REFUSALS = {
    "name with a space": ({**http(), "name": "a b"}, "name"),
    "name too long": ({**http(), "name": "a" * 65}, "name"),
    "no name": ({key: value for key, value in http().items() if key != "name"}, "name"),
    "built-in name": ({**http(), "name": "enter_space"}, "name"),
    "type that is a list": ({**http(), "executionType": ["gateway"]}, "executionType"),
    "visibility that is a list": ({**http(), "visibility": ["hidden"]}, "visibility"),
    "unknown type": ({**http(), "executionType": "basic"}, "executionType"),
    "no type": ({key: value for key, value in http().items() if key != "executionType"}, "executionType"),
    "unknown key": ({**http(), "displayTool": True}, "displayTool"),
    "description too long": ({**http(), "description": "d" * 4_097}, "description"),
    "hidden space tool": (tool("space", {}, visibility="hidden"), "visibility"),
    "result-only space tool": (tool("space", {}, visibility="result-only"), "visibility"),
    "visible internal tool": (tool("internal", {"output": 1}, visibility="visible"), "visibility"),
    "result-only internal tool": (tool("internal", {"output": 1}, visibility="result-only"), "visibility"),
    "approval of a space tool": (tool("space", {}, requiresApproval=True), "requiresApproval"),
    "result schema of a gateway tool": ({**http(), "resultSchema": {}}, "resultSchema"),
    "gateway tool without execution": ({"name": "t", "executionType": "gateway"}, "execution"),
    "external tool without execution": ({"name": "t", "executionType": "external"}, "execution"),
    "webhook of a gateway tool": (tool("gateway", HOOK), "execution"),
    "request of an external tool": (tool("external", HTTP), "execution"),
    "request of a space tool": (tool("space", HTTP), "execution"),
    "no variant": (tool("gateway", {"uri": "https://x/"}), "execution"),
    "two variants": (http(provider="dall-e"), "execution.provider"),
    "unknown method": (http(method="TRACE"), "execution.method"),
    "timeout too long": (http(timeout=300_001), "execution.timeout"),
    "timeout as text": (http(timeout="30000"), "execution.timeout"),
    "too many attempts": (http(retry={"attempts": 4}), "execution.retry.attempts"),
    "body on GET": (http(method="GET", body={}), "execution.body"),
    "text without its type": (http(body="q={{input.q}}"), "execution.body"),
    "form that is a list": (
        http(body=[], headers={"Content-Type": "application/x-www-form-urlencoded"}),
        "execution.body",
    ),
    "relative URL": (http(url="/v1"), "execution.url"),
    "another scheme": (http(url="ftp://api.example.com/"), "execution.url"),
    "host from the input": (http(url="https://{{input.host}}/"), "execution.url"),
    "host partly from the input": (http(url="https://api.example.com{{input.x}}/"), "execution.url"),
    "port from the input": (http(url="https://api.example.com:{{input.port}}/"), "execution.url"),
    "host partly a secret": (http(url="https://x${env.HOST}/"), "execution.url"),
    "host that goes on after a secret": (http(url="https://${env.HOST}.evil.org/"), "execution.url"),
    "user in the URL": (http(url="https://me@api.example.com/"), "execution.url"),
    "fragment": (http(url="https://api.example.com/#a"), "execution.url"),
    "backslash": (http(url="https://api.example.com\\@evil.org/"), "execution.url"),
    "host that is not its own": (http(url="https://${env.NOT_ITS_HOST}/"), "execution.url"),
    "placeholder of nothing": (http(body={"a": "{{inptu.q}}"}), "execution.body.a"),
    "placeholder with a filter": (http(body={"a": ["{{input.q | upper}}"]}), "execution.body.a[0]"),
    "open placeholder": (http(body={"a": "{{input.q"}), "execution.body.a"),
    "secret without a name": (http(body={"a": "${env.}"}), "execution.body.a"),
    "unknown secret": (http(headers={"X": "${env.NO_SUCH}"}), "execution.headers.X"),
    "secret of another host": (http(url="https://other.example.com/", body="${env.KEY}"), "execution.body"),
    "secret of another project": (http(query={"k": "${env.OTHER_PROJECT}"}), "execution.query.k"),
    "secret that makes no header": (http(headers={"X": "${env.BROKEN}"}), "execution.headers.X"),
    "secret in an output": (tool("gateway", {"output": "${env.KEY}"}), "execution.output"),
    "secret in an expression": (
        tool("gateway", {"operation": "evaluate", "expression": "len('${env.KEY}')"}),
        "execution.expression",
    ),
    "secret of our own tool": (
        tool("gateway", {"tool": "exec_tools.execute_code_bash", "code": "echo ${env.KEY}"}),
        "execution.code",
    ),
    "input in Authorization": (http(headers={"authorization": "{{input.q}}"}), "execution.headers.authorization"),
    "header Host": (http(headers={"Host": "x"}), "execution.headers.Host"),
    "header webhook-id": (
        tool("external", {**HOOK, "headers": {"webhook-id": "x"}}),
        "execution.headers.webhook-id",
    ),
    "header Accept-Encoding": (http(headers={"Accept-Encoding": "br"}), "execution.headers.Accept-Encoding"),
    "header TE": (http(headers={"te": "trailers"}), "execution.headers.te"),
    "header Trailer": (http(headers={"Trailer": "X"}), "execution.headers.Trailer"),
    "header Keep-Alive": (http(headers={"Keep-Alive": "timeout=5"}), "execution.headers.Keep-Alive"),
    "signing secret of another host": (
        tool("external", {"webhookUrl": "https://api.example.com/x", "secret": "${env.SIGNS}"}),
        "execution.secret",
    ),
    "header Proxy": (http(headers={"Proxy-Authorization": "x"}), "execution.headers.Proxy-Authorization"),
    "header Cookie": (http(headers={"Cookie": "x"}), "execution.headers.Cookie"),
    "header with a line feed": (http(headers={"X": "a\r\nb: c"}), "execution.headers.X"),
    "header name with a placeholder": (http(headers={"X-{{input.q}}": "1"}), "execution.headers.X-{{input.q}}"),
    "header twice": (http(headers={"X-A": "1", "x-a": "2"}), "execution.headers.x-a"),
    "Content-Type from the input": (
        http(headers={"Content-Type": "{{input.q}}"}),
        "execution.headers.Content-Type",
    ),
    "literal secret of a webhook": (tool("external", {**HOOK, "secret": "whsec_x"}), "execution.secret"),
    "text around the secret": (tool("external", {**HOOK, "secret": "x${env.SIGNS}"}), "execution.secret"),
    "unknown secret of a webhook": (tool("external", {**HOOK, "secret": "${env.NONE}"}), "execution.secret"),
    "GET webhook": (tool("external", {**HOOK, "method": "GET"}), "execution.method"),
    "unknown tool of ours": (tool("gateway", {"tool": "exec_tools.format_disk"}), "execution.tool"),
    "code of a tool that takes none": (
        tool("gateway", {"tool": "react.read", "code": "x"}),
        "execution.code",
    ),
    "path that a closed input cannot have": (
        {**http(body={"a": "{{input.p}}"}), "inputSchema": CLOSED},
        "execution.body.a",
    ),
    "step into a text": ({**http(body="{{input.q.x}}"), "inputSchema": CLOSED}, "execution.body"),
    "key of a list": ({**http(body="{{input.list.x}}"), "inputSchema": CLOSED}, "execution.body"),
    "item of an object": ({**http(body="{{input[0]}}"), "inputSchema": CLOSED}, "execution.body"),
    "input that is a list": ({**http(), "inputSchema": {"type": "array"}}, "inputSchema.type"),
    "no schema": ({**http(), "inputSchema": {"type": "object", "required": "q"}}, "inputSchema.required"),
    "schema elsewhere": (
        {**http(), "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/s"}}}},
        "inputSchema.properties.a.$ref",
    ),
    "schema in a file": (
        {**http(), "inputSchema": {"type": "object", "$ref": "file:///etc/hostname"}},
        "inputSchema.$ref",
    ),
    "pattern that backtracks": (
        {**http(), "inputSchema": {"type": "object", "properties": {"a": {"pattern": r"(a)\1"}}}},
        "inputSchema.properties.a.pattern",
    ),
    "bad result schema": (tool("space", {}, resultSchema={"type": "objekt"}), "resultSchema.type"),
    "answer by nobody": (tool("space", {"answerBy": []}), "execution.answerBy"),
    "sub-agent in a sub-agent": (
        tool("gateway", {"agentConfig": {"tools": [tool("gateway", {"agentConfig": {}})]}}),
        "execution.agentConfig.tools[0].execution",
    ),
    "space tool of a sub-agent": (
        tool("gateway", {"agentConfig": {"tools": [tool("space", {})]}}),
        "execution.agentConfig.tools[0].executionType",
    ),
    "approval in a sub-agent": (
        tool("gateway", {"agentConfig": {"tools": [{**http(), "requiresApproval": True}]}}),
        "execution.agentConfig.tools[0].requiresApproval",
    ),
    "built-in of a sub-agent": (
        tool("gateway", {"agentConfig": {"tools": [{**http(), "name": "send_message"}]}}),
        "execution.agentConfig.tools[0].name",
    ),
    "too many steps of a sub-agent": (
        tool("gateway", {"agentConfig": {"loop": {"maxSteps": 11}}}),
        "execution.agentConfig.loop.maxSteps",
    ),
}


@pytest.mark.parametrize(("wrong", "field"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_names_its_field_and_nothing_else(wrong, field):
    assert set(refused(document(wrong))) == {f"tools[0].{field}"}


def test_all_mistakes_are_reported_at_once():
    errors = refused(
        document(
            tool("space", {"timeout": 1}, visibility="hidden"),
            {
                **http(url="https://{{input.x}}/", headers={"Host": "x"}, timeout=0),
                "inputSchema": {"type": "array"},
            },
            {**http(), "name": "t"},
            mcp={"servers": [{"name": "A", "url": "https://mcp.example.com", "transport": "stdio"}]},
            extra=1,
        )
    )
    assert set(errors) == {
        "tools[0].visibility",
        "tools[0].execution.timeout",
        "tools[1].execution.timeout",
        "tools[1].inputSchema.type",
        "tools[1].name",
        "tools[2].name",
        "mcp.servers[0].name",
        "mcp.servers[0].transport",
        "extra",
    }


@pytest.mark.parametrize(
    ("server", "field"),
    [
        ({"url": "https://${env.NONE}/"}, "url"),
        ({"headers": {"X": "{{input.q}}"}}, "headers.X"),
        ({"headers": {"X": "{{call.id}}"}}, "headers.X"),
        ({"transport": "stdio"}, "transport"),
        ({"pins": {"a": "b"}}, "pins.a"),
        ({"command": "sh"}, "command"),
    ],
)
def test_a_server_is_refused_by_its_field(server, field):
    given = {"name": "one", "url": "https://mcp.example.com", "transport": "http", **server}
    assert set(refused(document(mcp={"servers": [given]}))) == {f"mcp.servers[0].{field}"}


def test_two_servers_of_one_name_are_refused():
    server = {"name": "one", "url": "https://mcp.example.com", "transport": "http"}
    assert set(refused(document(mcp={"servers": [server, server]}))) == {"mcp.servers[1].name"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"version": "1"}, "version"),
        ({"agent": {"name": "9lives"}}, "agent.name"),
        ({"agent": {}}, "agent.name"),
        ({"tools": None}, "tools"),
    ],
)
def test_the_document_itself_is_checked(change, field):
    assert set(refused(document() | change)) == {field}


def test_bounds_of_the_document_are_kept():
    many = [{**http(), "name": f"t{number}"} for number in range(129)]
    assert set(refused(document(*many))) == {"tools"}
    large = document({**http(), "execution": {**HTTP, "body": {"a": "x" * 1024 * 1024}}})
    assert refused(large)["configuration"][0] == "too_large"


@pytest.mark.parametrize(
    "fine",
    [
        http(url="https://${env.HOST}:8443/a/{{input.a}}?b={{input.b}}&c=1"),
        http(url="https://api.example.com/${env.KEY}/x"),
        http(headers={"Authorization": "Bearer ${env.KEY}", "X": "{{call.id}}"}, query={"k": "${env.KEY}"}),
        http(body="text {{input.q}}", headers={"Content-Type": "text/plain; charset=utf-8"}),
        {**http(body={"a": "{{input.list[0]}}", "b": "{{input.q}}", "c": "{{input}}"}), "inputSchema": CLOSED},
        http(body={"a": "{{!not a placeholder}} {one} ${x}"}),
        tool("external", {**HOOK, "secret": "${env.SIGNS}"}, resultSchema={"type": "object"}),
        tool("gateway", {"tool": "exec_tools.execute_code_python", "params": {"timeout_s": 5}}),
        tool("space", {"answerBy": ["ann", "agent:helper"]}),
        http() | {"requiresApproval": True},
    ],
)
def test_what_is_allowed_is_accepted_without_warnings(fine):
    assert accepted(document(fine)).warnings == []


def test_a_literal_credential_and_a_blank_description_are_warnings():
    given = document(http(headers={"X-Api-Key": "0123456789"}) | {"description": " "})
    assert [warning.code for warning in accepted(given).warnings] == ["blank_description", "plain_secret"]


def test_the_document_is_stored_as_it_was_written_and_its_order_does_not_change_the_hash():
    given = document(http())
    turned = dict(reversed(given.items()))
    first, second = accepted(given), accepted(turned)
    assert first.sha256 == second.sha256
    assert first.document != second.document
    changed = copy.deepcopy(given)
    changed["tools"][0]["execution"]["timeout"] = 1
    assert accepted(changed).sha256 != first.sha256


def test_no_message_has_a_secret():
    errors = refused(document(http(headers={"X": "${env.BROKEN}"}, query={"a": "${env.OTHER_PROJECT}"})))
    assert all("0123" not in message and "98765" not in message for _, message in errors.values())


SERVER = {"name": "desk", "url": "https://mcp.example.com", "transport": "http"}
COMPLETE = document(
    http(retry={"attempts": 2}),
    {**tool("gateway", {"operation": "evaluate", "expression": "1"}), "name": "sum"},
    mcp={"servers": [SERVER]},
)
REQUIRED = [
    "version",
    "agent",
    "agent.name",
    "tools",
    "tools[0].name",
    "tools[0].executionType",
    "tools[0].execution.retry.attempts",
    "tools[1].execution.expression",
    "mcp.servers",
    "mcp.servers[0].name",
    "mcp.servers[0].url",
    "mcp.servers[0].transport",
]


@pytest.mark.parametrize("field", REQUIRED)
def test_a_required_key_that_is_missing_is_named(field):
    assert accepted(COMPLETE)
    given = copy.deepcopy(COMPLETE)
    place = given
    *path, last = field.replace("[", ".").replace("]", "").split(".")
    for step in path:
        place = place[int(step) if step.isdigit() else step]
    del place[last]
    assert field in refused(given)
