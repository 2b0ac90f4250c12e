"""A server with the tools, resources and prompts that the conformance suite calls, behind the service's endpoint.

What is tested is the way of a request: middleware, endpoint and transport are the service's. Run as
``python -m tests.mcp_conformance.fixture_server PORT``; with ``own`` behind it, the tools are the service's too.
"""

import asyncio
import base64
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    AudioContent,
    BlobResourceContents,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    EmbeddedResource,
    GetPromptRequestParams,
    GetPromptResult,
    ImageContent,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    Tool,
)
from starlette.routing import Route

from proofbox.service.api.app import create_app
from proofbox.service.api.connections import ConnectionLimits
from proofbox.service.api.server import server_config
from proofbox.service.mcp.endpoint import PATH, McpEndpoint, mcp_route
from proofbox.service.mcp.options import McpOptions
from proofbox.service.mcp.server import stateless_app
from tests.support.pipeline import LIMITS, opened_pipeline, services_over

Context = ServerRequestContext[Any]
Run = Callable[[Context], Awaitable[CallToolResult]]
HOSTS = frozenset({"localhost", "127.0.0.1"})
MISSING_CAPABILITY = -32021
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
WAV = base64.b64encode(
    b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0@\x1f\0\0\x01\0\x08\0data\0\0\0\0"
).decode()
NO_ARGUMENTS = {"type": "object", "properties": {}}
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def text(value: str) -> TextContent:
    return TextContent(text=value)


def image() -> ImageContent:
    return ImageContent(data=PNG, mime_type="image/png")


def embedded(uri: str, mime: str, value: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime, text=value))


def returns(*blocks: Any, is_error: bool = False) -> Run:
    async def run(context: Context) -> CallToolResult:
        del context
        return CallToolResult(content=list(blocks), is_error=is_error)

    return run


async def report_three_times(context: Context) -> CallToolResult:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100, f"{done} of 100")
        await asyncio.sleep(0.05)
    return CallToolResult(content=[text("reported")])


async def need_sampling(context: Context) -> CallToolResult:
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise MCPError(MISSING_CAPABILITY, "the client cannot sample", {"requiredCapabilities": {"sampling": {}}})
    return CallToolResult(content=[text("the client can sample")])


TOOLS: dict[str, Run] = {
    "test_simple_text": returns(text("This is a simple text response for testing.")),
    "test_image_content": returns(image()),
    "test_audio_content": returns(AudioContent(data=WAV, mime_type="audio/wav")),
    "test_embedded_resource": returns(embedded("test://embedded-resource", "text/plain", "An embedded resource.")),
    "test_multiple_content_types": returns(
        text("Multiple content types test:"),
        image(),
        embedded("test://mixed-content-resource", "application/json", json.dumps({"test": "data", "value": 123})),
    ),
    "test_error_handling": returns(text("This tool intentionally returns an error for testing"), is_error=True),
    "test_tool_with_progress": report_three_times,
    "test_missing_capability": need_sampling,
    "test_streaming_elicitation": report_three_times,
    "test_logging_tool": report_three_times,
    "json_schema_2020_12_tool": returns(text("valid")),
}
PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
}


async def list_tools(*_: Any) -> ListToolsResult:
    return ListToolsResult(
        tools=[
            Tool(
                name=name,
                description=f"The tool {name} of the conformance suite.",
                input_schema=SCHEMA_2020_12 if name.startswith("json_schema") else NO_ARGUMENTS,
            )
            for name in TOOLS
        ]
    )


async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
    if params.name not in TOOLS:
        raise MCPError(INVALID_PARAMS, f"unknown tool {params.name}")
    return await TOOLS[params.name](context)


async def list_resources(*_: Any) -> ListResourcesResult:
    return ListResourcesResult(
        resources=[
            Resource(uri="test://static-text", name="text", description="A text.", mime_type="text/plain"),
            Resource(uri="test://static-binary", name="binary", description="A picture.", mime_type="image/png"),
        ]
    )


async def list_templates(*_: Any) -> ListResourceTemplatesResult:
    template = ResourceTemplate(uri_template="test://template/{id}/data", name="data", mime_type="application/json")
    return ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    del context
    uri = str(params.uri)
    content: TextResourceContents | BlobResourceContents
    if uri == "test://static-text":
        content = TextResourceContents(uri=uri, mime_type="text/plain", text="This is a static text resource.")
    elif uri == "test://static-binary":
        content = BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
    elif uri.startswith("test://template/") and uri.endswith("/data"):
        found = {"id": uri.split("/")[3], "templateTest": True, "data": f"Data for {uri.split('/')[3]}"}
        content = TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(found))
    else:
        raise MCPError(INVALID_PARAMS, "resource not found", {"uri": uri})
    return ReadResourceResult(contents=[content])


async def list_prompts(*_: Any) -> ListPromptsResult:
    return ListPromptsResult(
        prompts=[
            Prompt(
                name=name,
                description=f"The prompt {name} of the conformance suite.",
                arguments=[PromptArgument(name=argument, required=True) for argument in arguments],
            )
            for name, arguments in PROMPTS.items()
        ]
    )


async def get_prompt(context: Context, params: GetPromptRequestParams) -> GetPromptResult:
    del context
    given = params.arguments or {}
    contents: dict[str, list[Any]] = {
        "test_simple_prompt": [text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments": [
            text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
        ],
        "test_prompt_with_embedded_resource": [
            embedded(str(given.get("resourceUri")), "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image": [image(), text("Please analyze the image above.")],
    }
    if params.name not in contents:
        raise MCPError(INVALID_PARAMS, f"unknown prompt {params.name}")
    return GetPromptResult(messages=[PromptMessage(role="user", content=part) for part in contents[params.name]])


async def complete(context: Context, params: CompleteRequestParams) -> CompleteResult:
    del context
    values = [value for value in ("paris", "park", "party") if value.startswith(params.argument.value)]
    return CompleteResult(completion=Completion(values=values, total=len(values), has_more=False))


def build_server() -> Server[Any]:
    hint = CacheHint(60_000, "public")
    return Server(
        "proofbox-conformance",
        version="1",
        cache_hints={
            "tools/list": hint,
            "resources/list": hint,
            "prompts/list": hint,
            "resources/read": CacheHint(),
        },
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
    )


async def main(port: int, *, is_own: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with opened_pipeline(Path(folder)) as pipeline:
            services = replace(services_over(pipeline), hosts=HOSTS)
            app = create_app(services)
            fixtures = McpEndpoint(lambda: stateless_app(build_server()))
            own = mcp_route(services, McpOptions(LIMITS, "1", 600))
            app.router.routes.append(own if is_own else Route(PATH, fixtures, methods=["POST"]))
            config = server_config(app, ("127.0.0.1", port), limits=ConnectionLimits(), last_answers_s=1)
            await uvicorn.Server(config).serve()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), is_own=sys.argv[2:] == ["own"]))
