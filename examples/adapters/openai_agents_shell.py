"""An agent of the OpenAI Agents SDK whose shell is Proofbox. With OPENAI_API_KEY it asks a model, else a script."""

import asyncio
import os
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, ShellTool, Usage
from openai.types.responses import ResponseFunctionShellToolCall, ResponseOutputMessage, ResponseOutputText
from openai.types.responses.response_function_shell_tool_call import Action

from proofbox.adapters.openai_agents import ProofboxShell

COMMANDS = ["echo hello from the sandbox >note.txt", "cat note.txt; uname -s"]


class ScriptedModel(Model):
    """Calls the shell once, then repeats what it returned."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> ModelResponse:
        """The next message."""
        output: Any = ResponseFunctionShellToolCall(
            id="sh_1",
            call_id="call_1",
            action=Action(commands=COMMANDS),
            status="completed",
            type="shell_call",
        )
        if input[-1].get("type") == "shell_call_output":
            text = ResponseOutputText(text=str(input[-1]["output"]), type="output_text", annotations=[])
            output = ResponseOutputMessage(
                id="m_1", content=[text], role="assistant", status="completed", type="message"
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        """Not used here."""
        raise NotImplementedError


async def main() -> None:
    """Asks the agent and prints its answer."""
    shell = ProofboxShell()
    model = None if os.environ.get("OPENAI_API_KEY") else ScriptedModel()
    agent = Agent(name="coder", tools=[ShellTool(executor=shell)], model=model)
    result = await Runner.run(agent, "Write a note and read it.", run_config=RunConfig(tracing_disabled=True))
    print(result.final_output)
    await shell.close()


asyncio.run(main())
