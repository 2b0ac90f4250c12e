"""The commented example of a configuration file."""

import textwrap
from typing import Any, get_args

from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from proofbox.service.app.config.effective import settings_by_section
from proofbox.service.app.config.toml_text import to_toml
from proofbox.service.app.settings import Settings

_COLUMNS = 116
_HEAD = """\
# Configuration of Proofbox: all settings with their defaults. Made by docs/generate.py.
#
# Remove the '#' before a setting to change it. Section headings may be left out. The service reads the file that
# PROOFBOX_CONFIG or 'proofbox serve --config' names; environment variables win over it, PROOFBOX_PORT over port.
# 'proofbox config check FILE' lists mistakes, 'proofbox config show FILE' what is in effect.
# Secrets do not belong here: name a file with ..._file, or set the variable.
"""
# Where the default depends on the machine, or is none.
_EXAMPLES: dict[str, Any] = {
    "address_file": "/run/proofbox/address",
    "audit_file": "/var/log/proofbox/audit.jsonl",
    "audit_heads_file": "/var/lib/proofbox/audit-heads.jsonl",
    "audit_key_file": "/var/lib/proofbox/audit-key.pem",
    "cpus": 4.0,
    "key_running_calls": 6,
    "keys_dir": "/etc/proofbox/keys",
    "librechat_key_file": "/etc/proofbox/librechat.pem",
    "nats_ca_file": "/etc/proofbox/nats-ca.pem",
    "nats_certificate_file": "/etc/proofbox/nats.pem",
    "nats_certificate_key_file": "/etc/proofbox/nats-key.pem",
    "nats_credentials_file": "/etc/proofbox/nats.creds",
    "nats_nkey_file": "/etc/proofbox/nats.nk",
    "oci_image_archive": "/var/lib/proofbox/proofbox-sandbox.tar",
    "package_dir": "/var/lib/proofbox/packages",
    "pool_reserve": 2,
    "running_max": 8,
    "sandbox_network_ca_file": "/etc/proofbox/network-ca.pem",
    "seccomp_profile": "/etc/proofbox/sandbox.json",
    "skills_dir": "/srv/skills",
    "starts_max": 4,
    "web_ca_file": "/etc/proofbox/ca.pem",
}


def config_example() -> str:
    """The file: each setting below its description, with its default, commented."""
    text = _HEAD
    for section, names in settings_by_section().items():
        text += f"\n# {section.title}\n[{section.name}]\n"
        for name in names:
            text += "".join(f"{line}\n" for line in _setting(name))
    return text


def _setting(name: str) -> list[str]:
    field = Settings.model_fields[name]
    description = textwrap.wrap(
        " ".join((field.description or "").replace("as a JSON ", "as a ").split()), _COLUMNS - 2
    )
    lines = [f"# {line}" for line in description]
    if field.annotation is SecretStr:
        return [*lines, f'#{name}_file = "/etc/proofbox/{name}"']
    if name in _EXAMPLES:
        why = "for example" if type(None) in get_args(field.annotation) else "the default depends on the machine"
        return [*lines, f"#{name} = {to_toml(_EXAMPLES[name])}  # {why}"]
    if field.default is PydanticUndefined or field.default is None:
        raise KeyError(f"{name}: give it a value in _EXAMPLES")
    default = Settings.model_construct(_fields_set=set(), **{name: field.default})
    return [*lines, f"#{name} = {to_toml(default.model_dump(mode='json', include={name})[name])}"]
