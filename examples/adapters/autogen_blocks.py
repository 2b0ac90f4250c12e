"""An AutoGen agent that runs the code blocks of a message in Proofbox, one after the other in one folder."""

import asyncio

from autogen_agentchat.agents import CodeExecutorAgent
from autogen_agentchat.messages import TextMessage
from autogen_core import CancellationToken

from proofbox.adapters.autogen import ProofboxCodeExecutor

MESSAGE = """
```python
import csv
csv.writer(open("table.csv", "w")).writerows([["a", 1], ["b", 2], ["c", 3]])
```
```bash
echo "$(wc -l <table.csv) rows"
```
"""


async def main() -> None:
    """Hands the message to the agent and prints what the blocks printed."""
    async with ProofboxCodeExecutor(timeout_s=60) as executor:
        agent = CodeExecutorAgent("runner", executor, supported_languages=["python", "bash"])
        response = await agent.on_messages([TextMessage(content=MESSAGE, source="user")], CancellationToken())
        print(response.chat_message.content)


asyncio.run(main())
