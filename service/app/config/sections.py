"""The groups of settings: headings of the documentation, and optional sections of a configuration file."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A group of settings.

    Attributes:
        name: in a configuration file.
        title: in the documentation.
        first: its first setting; the section ends before the first one of the next.
    """

    name: str
    title: str
    first: str


SECTIONS = (
    Section("server", "Server", "host"),
    Section("data", "Data and identity", "data_dir"),
    Section("products", "APIs of other products", "librechat"),
    Section("audit", "Audit", "audit_head_s"),
    Section("bucket", "Bucket", "s3_bucket"),
    Section("keys", "Limits of an API key", "limits_without_key"),
    Section("containers", "Engine", "engine"),
    Section("totals", "All sandboxes together", "total_memory_bytes"),
    Section("pool", "Warm pool", "pool_size"),
    Section("calls", "Calls", "running_max"),
    Section("limits", "Limits of a call", "wall_s"),
    Section("tools", "Tools", "render_wall_s"),
    Section("retention", "Retention", "retention_days"),
    Section("web", "Web tools", "web_allowed_networks"),
    Section("memory", "Workspace and memory", "memory_half_life_days"),
    Section("inspector", "Inspector", "inspect_s_per_file"),
    Section("logs", "Logs and traces", "log_format"),
    Section("network", "Network of programs", "sandbox_network"),
    Section("packages", "Packages of calls", "package_index"),
    Section("agents", "Agents and their tools", "gateway_env"),
    Section("processes", "Many processes", "dispatch"),
)
SECTION_NAMES = frozenset(section.name for section in SECTIONS)


def group_settings(names: Iterable[str]) -> dict[Section, list[str]]:
    """Put settings below their sections.

    Args:
        names: all settings, in the order of the documentation.
    """
    by_first = {section.first: section for section in SECTIONS}
    found: dict[Section, list[str]] = {}
    section = SECTIONS[0]
    for name in names:
        section = by_first.get(name, section)
        found.setdefault(section, []).append(name)
    return found
