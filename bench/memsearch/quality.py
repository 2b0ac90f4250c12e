"""``python -m bench.memsearch.quality``: how often the right turn is found, in three languages, or rightly none.

``turns.json`` has, for each language, 20 facts, each with a question in other words and with some of its words;
what else is said in a conversation; and questions that no turn answers. All languages are in one conversation. A
second set (``labelled.json``) has 66 passages of twelve topics, eight in German, and 49 queries in other words.
"""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from bench.memsearch.in_memory import InMemory, candidates
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.react.memsearch.e5 import E5Embedder

_FOLDER = Path(__file__).parent
_SETS = json.loads((_FOLDER / "turns.json").read_text(encoding="utf-8"))
_LABELLED = json.loads((_FOLDER / "labelled.json").read_text(encoding="utf-8"))
_TICKETS = [4003, 4017, 4021, 4038, 4040, 4055, 4062, 4074, 4081, 4099]
_PARAPHRASES, _KEYWORDS, _IDENTIFIERS = 17, 20, 10
"""The bars: of 20, of 20, of 10."""


def conversation() -> list[str]:
    """200 turns: the facts of all languages, everyday remarks, and ten that only a number tells apart."""
    facts = [fact for language in _SETS.values() for fact, _, _ in language["facts"]]
    others = [text for language in _SETS.values() for text in language["others"]]
    return [
        *facts,
        *others,
        *(f"Ticket ACME-{number}: the report of this week has been sent." for number in _TICKETS),
    ]


async def _places(memory: InMemory, asked: Sequence[tuple[str, str]], turns: Sequence[str]) -> str:
    """How many answers are first, and how many among the first five."""
    found = [[turns[number] for number in await memory.search(query)] for query, _ in asked]
    pairs = list(zip(found, (answer for _, answer in asked), strict=True))
    return (
        f"{sum(texts[:1] == [answer] for texts, answer in pairs)}/{sum(answer in texts for texts, answer in pairs)}"
    )


def _says_none(answer: ToolCallResponse) -> bool:
    """Whether an answer says that nothing was found, or nothing that surely matches."""
    return answer.report.startswith("Nothing was found")


async def measure(name: str, memory: InMemory, turns: Sequence[str]) -> None:
    """Prints a line for each language, and one for numbers."""
    for language, texts in _SETS.items():
        paraphrases = await _places(memory, [(question, fact) for fact, question, _ in texts["facts"]], turns)
        keywords = await _places(memory, [(words, fact) for fact, _, words in texts["facts"]], turns)
        answers = [await memory.ask(query) for query in texts["absent"]]
        counts = [len(answer.ret) for answer in answers]
        print(
            f"{name:6} {language}  in other words {paraphrases:6} (bar {_PARAPHRASES})  its words {keywords:6} "
            f"(bar {_KEYWORDS})  unanswerable: nothing for {counts.count(0)} of {len(counts)}, "
            f"{sum(counts) / len(counts):.1f} hits each, none sure for "
            f"{sum(_says_none(answer) for answer in answers)}"
        )
    named = zip(_TICKETS, turns[-len(_TICKETS) :], strict=True)
    tickets = await _places(memory, [(f"ACME-{number}", text) for number, text in named], turns)
    print(f"{name:6} identifiers {tickets} of {len(_TICKETS)} (bar {_IDENTIFIERS})")


async def measure_labelled(name: str, memory: InMemory, others: InMemory) -> None:
    """Prints how the second set is answered, and by the turns of the first one."""
    ids = [row["id"] for row in _LABELLED["passages"]]
    first = five = nothing = 0
    for row in _LABELLED["queries"]:
        found = [ids[number] for number in await memory.search(row["query"])]
        first += bool(set(found[:1]) & set(row["answers"]))
        five += bool(set(found) & set(row["answers"]))
        nothing += _says_none(await others.ask(row["query"]))
    count = len(_LABELLED["queries"])
    print(f"{name:6} second set {first}/{five} of {count}; asked of the turns: none sure for {nothing} of {count}")


async def main() -> None:
    """Prints how the service answers, and how it would by words alone."""
    embedder = E5Embedder()
    turns, passages = conversation(), [row["text"] for row in _LABELLED["passages"]]
    print(f"{len(turns)} turns; first/among five of 20 facts in each language")
    for name, used in (("fused", embedder), ("words", None)):
        first, second = (
            InMemory(candidates(texts, [b""] * len(texts) if used is None else used.embed(texts)), used)
            for texts in (turns, passages)
        )
        await measure(name, first, turns)
        await measure_labelled(name, second, first)


if __name__ == "__main__":
    asyncio.run(main())
