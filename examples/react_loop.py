"""A ReAct loop against any OpenAI-compatible endpoint: the model calls Proofbox's tools until it has an answer.

    OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=qwen3 python examples/react_loop.py 'Plot sin(x)'

PROOFBOX_URL and PROOFBOX_API_KEY name the service. Promised files are saved into the current folder.
"""

import json
import os
import sys
import urllib.request

from proofbox.client import Client, ProofboxError

BASE_URL = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
MODEL = os.environ.get("OPENAI_MODEL", "gpt-4o")
HEADERS = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"}
SYSTEM = "Solve the task with the tools. Promise each result file in the contract of the call that writes it."
ROUNDS_MAX = 20


def ask_model(messages: list[dict], tools: list[dict]) -> dict:
    """The model's next message."""
    body = json.dumps({"model": MODEL, "messages": messages, "tools": tools}).encode()
    request = urllib.request.Request(f"{BASE_URL}/chat/completions", body, HEADERS)  # noqa: S310 - the user's own
    with urllib.request.urlopen(request) as answer:  # noqa: S310
        return json.load(answer)["choices"][0]["message"]


def run_tool(client: Client, conversation: str, function: dict) -> str:
    """Runs a function call of the model, saves its files and returns what the model reads of it."""
    try:
        arguments = json.loads(function["arguments"] or "{}")
        response = client.call(function["name"], arguments, conversation=conversation, turn="turn_1")
    except (ValueError, ProofboxError) as error:
        return f"The call was refused: {error}"
    for file in response.artifacts:
        if file.verdict == "produced" and file.visibility == "external":
            print("saved", client.download(conversation, file.logical_path).save("."))
    return response.text


def solve(client: Client, task: str) -> str:
    """The answer of the model to a task."""
    conversation, tools = f"react-{os.urandom(8).hex()}", client.function_definitions("openai")
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": task}]
    for _ in range(ROUNDS_MAX):
        message = ask_model(messages, tools)
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            text = run_tool(client, conversation, call["function"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    return f"no answer after {ROUNDS_MAX} rounds"


if __name__ == "__main__":
    with Client() as proofbox:
        print(solve(proofbox, " ".join(sys.argv[1:]) or "Write the squares of 1 to 10 to squares.csv."))
