"""The list of checks in the page of contracts, from the model and the table of formats."""

import re

from proofbox.contracts.artifacts import ArtifactSpec, Checks
from proofbox.contracts.checks import EXTENSIONS_OF_CHECK
from reference.markdown import prose

_MARKED = re.compile(r"(?<=<!-- checks -->\n).*?(?=<!-- /checks -->)", re.DOTALL)
_COUNTS = ("min_count", "max_count")


def with_checks(page: str) -> str:
    """Write the list between its markers.

    Args:
        page: the text of the page.
    """
    rows = "| check | of | meaning |\n|---|---|---|\n"
    for name in (*Checks.model_fields, *_COUNTS):
        extensions = EXTENSIONS_OF_CHECK.get(name)
        where = "with `glob`" if name in _COUNTS else ", ".join(extensions) if extensions else "every file"
        meaning = prose(ArtifactSpec.model_fields[name].description or "")
        rows += f"| `{name}` | {where} | {meaning} |\n"
    return _MARKED.sub(lambda _: rows, page)
