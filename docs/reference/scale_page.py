"""The tables of the page about many workers, as the model prints them."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_MARKED = re.compile(r"(?<=<!-- model -->\n).*?(?=<!-- /model -->)", re.DOTALL)


def with_model(page: str) -> str:
    """Write the output of ``python -m bench.scale_model`` between its markers.

    Args:
        page: the text of the page.
    """
    command = [sys.executable, "-m", "bench.scale_model"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return _MARKED.sub(lambda _: f"\n{printed}\n", page)
