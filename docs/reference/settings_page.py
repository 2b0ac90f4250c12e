"""The page of all settings."""

import json
from typing import Any

from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from proofbox.service.app.config.effective import settings_by_section
from proofbox.service.app.config.local_use import local_values
from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.limits import limit_names


def settings_page() -> str:
    """The page of all settings."""
    limits, for_others = set(limit_names()), local_values(Settings)
    text = (
        "# Settings and limits\n\n"
        "Made by `docs/generate.py` from `service/app`. Each setting is an environment variable, or a line of a "
        "[configuration file](deploy.md#configuration)\nwith the name in lower case, in the section of that group or "
        "in none. The default is in brackets. A request can lower, never raise,\nthe limits that are marked with "
        "`limits`. Local commands ignore those that are marked with `for others`.\n"
    )
    for section, names in settings_by_section().items():
        text += f"\n## {section.title}\n\nSection `{section.name}`.\n\n"
        for name in names:
            field = Settings.model_fields[name]
            mark = f" `limits.{name}`." if name in limits else ""
            mark += " `for others`." if name in for_others else ""
            text += f"- `PROOFBOX_{name.upper()}` ({_default(name, field.default)}): {field.description}{mark}\n"
    return text


def _default(name: str, value: Any) -> str:
    if name == "seccomp_profile":
        return "the project's"
    if value is PydanticUndefined:
        return "depends on the machine"
    shown = value.get_secret_value() if isinstance(value, SecretStr) else value
    if shown is None:
        return "none"
    if shown in ("", (), {}):
        return "empty"
    # As the environment has it: true, and lists as JSON.
    return json.dumps(shown) if isinstance(shown, bool | tuple) else str(shown)
