"""Settings that a document writes in YAML: front matter, directives of a deck, charts."""

from typing import Any

import yaml


def read_settings(text: str) -> Any:
    """Reads YAML without aliases: ten lines of them stand for more values than a computer holds.

    Raises:
        ValueError: it is no YAML, or has aliases.
    """
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise ValueError("YAML with aliases is not read")
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, TypeError) as exc:
        raise ValueError(str(exc)[:200]) from exc
