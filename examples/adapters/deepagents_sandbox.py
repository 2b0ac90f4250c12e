"""A LangChain deep agent that works in Proofbox. DEEPAGENTS_MODEL names a model; without one, a script answers."""

import os
from typing import Any, Self

from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from proofbox.adapters.deepagents import ProofboxSandbox


class ScriptedModel(FakeMessagesListChatModel):
    """Answers from a list, whatever the tools are."""

    def bind_tools(self, tools: Any, **options: Any) -> Self:
        """The same model."""
        return self


def calls(name: str, **arguments: Any) -> AIMessage:
    """A message that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call_{name}"}])


SCRIPT = [
    calls("write_file", file_path="/mnt/data/work/report.md", content="# Report\n\nAll is well.\n"),
    calls("execute", command="cd work && wc -w report.md && ls -l"),
    AIMessage("The report is written."),
]

agent = create_deep_agent(
    os.environ.get("DEEPAGENTS_MODEL") or ScriptedModel(responses=SCRIPT),
    backend=ProofboxSandbox(),
    system_prompt="Your files are in /mnt/data.",
)
for message in agent.invoke({"messages": [("user", "Write a short report.")]})["messages"]:
    print(f"{message.type}: {message.text}")
