"""The page of all settings."""

from typing import Any

from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from proofbox.service.app.gateway_settings import GatewaySettings
from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.limits import limit_names

# The first setting of each group of the page.
GROUPS = {
    "host": "Server",
    "data_dir": "Data and identity",
    "log_format": "Logs and traces",
    "audit_head_s": "Audit",
    "s3_bucket": "Bucket",
    "limits_without_key": "Limits of an API key",
    "engine": "Engine",
    "total_memory_bytes": "All sandboxes together",
    "pool_size": "Warm pool",
    "running_max": "Calls",
    "wall_s": "Limits of a call",
    "render_wall_s": "Tools",
    "retention_days": "Retention",
    "web_allowed_networks": "Web tools",
    "memory_half_life_days": "Workspace and memory",
    "inspect_s_per_file": "Inspector",
    "gateway_env": "Agents and their tools",
}


def settings_page() -> str:
    """The page of all settings."""
    limits = set(limit_names())
    text = (
        "# Settings and limits\n\n"
        "Made by `docs/generate.py` from `service/app/settings.py` and `gateway_settings.py`. Each setting is an environment "
        "variable; the default\nis in brackets. A request can lower, never raise, the limits that are marked with `limits`.\n"
    )
    for name in sorted(Settings.model_fields, key=GatewaySettings.model_fields.__contains__):
        field = Settings.model_fields[name]
        if name in GROUPS:
            text += f"\n## {GROUPS[name]}\n\n"
        mark = f" `limits.{name}`." if name in limits else ""
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
    return "empty" if shown in ("", (), {}) else str(shown)
