"""The hint on a name that a program misses, as the variables of an earlier one ended with its call."""

import json
import re
from collections.abc import Iterable, Sequence

from proofbox.contracts.tools import Language
from proofbox.service.sandbox.port import OutputPiece
from proofbox.service.sandbox.program_output import stderr_text

_TAIL_CHARS = 4_000
_MISSING = {
    Language.PYTHON: re.compile(r"^NameError: name '(?P<name>\w{1,100})' is not defined", re.MULTILINE),
    Language.NODE: re.compile(r"^ReferenceError: (?P<name>[\w$]{1,100}) is not defined", re.MULTILINE),
}
_ASSIGNED = {
    Language.PYTHON: (
        r"^(?:(?:[\w*]+\s*,\s*){{0,20}}\*?{0}\s*(?:,[\w\s,*]{{0,200}})?(?::[^=\n]{{1,100}})?=(?!=)"
        r"|(?:async\s+)?def\s+{0}\s*\(|class\s+{0}\b|(?:from\s+\S+\s+)?import\s[^\n]*\b{0}\b"
        r"|for\s+[^\n]{{0,100}}\b{0}\b[^\n]{{0,100}}\sin\s|with\s[^\n]{{1,300}}\sas\s+{0}\b)"
    ),
    Language.NODE: r"^(?:(?:const|let|var|async function|function|class)\s[^=\n]{{0,200}}?\b{0}\b|{0}\s*=(?!=))",
}


def missing_name(output: Sequence[OutputPiece], language: Language) -> str | None:
    """The name that a failed program used and nobody had assigned; None if it failed otherwise."""
    form = _MISSING.get(language)
    found = None if form is None else form.search(stderr_text(output)[-_TAIL_CHARS:])
    return None if found is None else found["name"]


def earlier_hint(name: str, language: Language, tool_id: str, requests: Iterable[tuple[str, str]]) -> str | None:
    """The hint, if one of the requests has a program that assigns the name; None else.

    Args:
        name: as `missing_name` found it.
        language: of the program.
        tool_id: the tool of its language.
        requests: ids and requests of earlier calls, as JSON text, the newest first.
    """
    assigned = re.compile(_ASSIGNED[language].format(re.escape(name)), re.MULTILINE)
    for call_id, request in requests:
        params = json.loads(request)
        if params.get("tool_id") == tool_id and assigned.search(str(params.get("code") or "")):
            return (
                f"{name} was assigned in the call {call_id}, and variables end with their call: assign it again, "
                "or store it in a file that later calls read"
            )
    return None
