"""Write the reference pages of the documentation, and the example of a configuration, from the code.

``--check`` compares.
"""

import sys
from pathlib import Path

from reference.api_page import api_page, types_page
from reference.code_pages import errors_page, troubleshooting_page
from reference.command_page import commands_page
from reference.comparison_page import comparison_page
from reference.config_example import config_example
from reference.contract_checks import with_checks
from reference.library_page import libraries_page
from reference.scale_page import with_model
from reference.settings_page import settings_page
from reference.theme_page import themes_page
from reference.tool_page import tools_page

HERE = Path(__file__).parent
PAGES = {
    "commands.md": commands_page,
    "comparison.md": comparison_page,
    "errors.md": errors_page,
    "http-api.md": api_page,
    "libraries.md": libraries_page,
    "settings.md": settings_page,
    "themes.md": themes_page,
    "tool-parameters.md": tools_page,
    "troubleshooting.md": troubleshooting_page,
    "wire-types.md": types_page,
}


def main() -> int:
    """Write the pages; with ``--check`` list those that are out of date."""
    pages = {HERE / name: make() for name, make in PAGES.items()}
    pages[HERE.parent / "deploy" / "proofbox.toml.example"] = config_example()
    contract = HERE / "contract.md"
    pages[contract] = with_checks(contract.read_text(encoding="utf-8"))
    scale = HERE / "scale.md"
    pages[scale] = with_model(scale.read_text(encoding="utf-8"))
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            sys.stdout.write(f"{path.relative_to(HERE.parent)} is out of date; run python docs/generate.py\n")
        return 1 if stale else 0
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
