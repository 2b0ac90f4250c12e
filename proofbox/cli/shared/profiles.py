"""Saved services: URL and API key by name, in a file that only its owner can read."""

import json
import os
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path

from proofbox.cli.shared.exit_codes import usage_error

DEFAULT = "default"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Profile:
    """A saved service."""

    url: str
    api_key: str | None = field(default=None, repr=False)


@dataclass(slots=True)
class Profiles:
    """The saved services; `current` is used where no other is named."""

    current: str = DEFAULT
    profiles: dict[str, Profile] = field(default_factory=dict)

    def key_for(self, url: str) -> str | None:
        """The key that was saved for exactly this URL: a key is never sent to another service."""
        return next((profile.api_key for profile in self.profiles.values() if profile.url == url), None)


def profiles_path() -> Path:
    """Where profiles are saved (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if base.startswith("/") else Path.home() / ".config"
    return folder / "proofbox" / "profiles.json"


def load_profiles() -> Profiles:
    """The saved profiles; none if there is no file.

    Raises:
        CommandError: others can read the file, or it is damaged.
    """
    path = profiles_path()
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return Profiles()
    if mode & _OTHERS:
        raise usage_error(f"{path}: other users can read it (mode {mode & 0o777:04o})", hint=f"chmod 600 {path}")
    try:
        content = json.loads(text)
        return Profiles(
            str(content["current"]),
            {name: Profile(str(saved["url"]), saved.get("api_key")) for name, saved in content["profiles"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise usage_error(
            f"{path}: not a file of profiles", hint="remove it and run 'proofbox login' again"
        ) from exc


def save_profiles(profiles: Profiles) -> Path:
    """Write the profiles with mode 0600, all or none of them."""
    import tempfile  # noqa: PLC0415 - with all kinds of archives, which --help does not need

    path = profiles_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".profiles-")  # created with mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(asdict(profiles), file, indent=2)
            file.write("\n")
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
