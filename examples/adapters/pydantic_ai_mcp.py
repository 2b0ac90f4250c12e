"""A Pydantic AI agent with Proofbox's MCP tools. PYDANTIC_AI_MODEL names a model; without one, a script answers."""

import asyncio
import os

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

URL = os.environ.get("PROOFBOX_URL", "http://127.0.0.1:8080")


def script(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Calls run_python once, then repeats the structured content."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return ModelResponse(parts=[TextPart(f"Done: {last.content}")])
    return ModelResponse(parts=[ToolCallPart("run_python", {"code": "print('-'.join(['forty', 'two']))"})])


async def main() -> None:
    """Asks the agent and prints its answer."""
    model = os.environ.get("PYDANTIC_AI_MODEL") or FunctionModel(script)
    headers = {"Authorization": f"Bearer {key}"} if (key := os.environ.get("PROOFBOX_API_KEY")) else None
    async with Agent(model, toolsets=[MCPToolset(f"{URL}/mcp", headers=headers)]) as agent:
        print((await agent.run("Print forty and two, joined by a hyphen.")).output)


asyncio.run(main())
