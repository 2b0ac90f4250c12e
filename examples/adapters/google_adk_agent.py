"""A Google ADK agent whose code runs in Proofbox. ADK_MODEL names a model; without one, a script answers for it."""

import asyncio
import os
from collections.abc import AsyncIterator

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from proofbox.adapters.google_adk import ProofboxCodeExecutor


class ScriptedModel(BaseLlm):
    """Writes a program, then repeats what it printed."""

    model: str = "scripted"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        """The next message."""
        last = llm_request.contents[-1].parts[-1].text or ""
        program = "```python\nprint(sum(n * n for n in range(1000)))\n```"
        text = f"Done: {last}" if "tool_output" in last else program
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


async def main() -> None:
    """Asks the agent and prints the parts of its answer."""
    model = os.environ.get("ADK_MODEL") or ScriptedModel()
    agent = LlmAgent(name="analyst", model=model, code_executor=ProofboxCodeExecutor(timeout_seconds=60))
    runner = InMemoryRunner(agent)
    for event in await runner.run_debug("What is the sum of the squares below 1000?", quiet=True):
        for part in event.content.parts if event.content else []:
            print(part.text or part.executable_code or part.code_execution_result)


asyncio.run(main())
