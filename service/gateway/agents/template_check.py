"""What is refused in the templates of a configuration when it is written."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from proofbox.contracts.gateway.codes import ConfigurationCode, WarningCode
from proofbox.contracts.gateway.wire import GatewayWarning
from proofbox.contracts.problems import FieldError
from proofbox.service.gateway.agents.input_schemas import InputPaths
from proofbox.service.gateway.environment import Environment, UnknownEnvError
from proofbox.service.gateway.filling import is_header_value
from proofbox.service.gateway.schema_check import spell_field
from proofbox.service.gateway.templates import (
    EnvValue,
    InputValue,
    Part,
    TemplateError,
    has_input,
    is_literal,
    literal_text,
    parse_template,
    texts_of,
)
from proofbox.service.gateway.url_templates import UrlParts, parse_url
from proofbox.service.web.client.outgoing import REFUSED_HEADERS

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_RESERVED_PREFIXES = ("proxy-", "webhook-")
_CREDENTIAL = re.compile(r"authorization|api-?key|token|secret|password|credential", re.IGNORECASE)
_CREDENTIAL_CHARACTERS_MIN = 8


class TemplateCheck:
    """Collects what is wrong with the templates of one tool or server.

    Args:
        environment: the operator's secrets.
        project: ``tenant/project``, for which they are resolved.
        schema: the JSON Schema of the input; None: there is no input, and no call.
        name: what warnings name, such as ``tools[0]``.
    """

    def __init__(self, environment: Environment, project: str, schema: Any, name: str) -> None:
        self._environment = environment
        self._project = project
        self._paths = None if schema is None else InputPaths(schema)
        self._name = name
        self.errors: list[FieldError] = []
        self.warnings: list[GatewayWarning] = []

    def refuse(
        self, field: str, message: str, code: ConfigurationCode = ConfigurationCode.INVALID_TEMPLATE
    ) -> None:
        """Add what is wrong with a field."""
        self.errors.append(FieldError(field=field, code=code, message=message))

    def can_have(self, path: Sequence[str | int]) -> bool:
        """Whether the input may have a value at a path."""
        return self._paths is not None and self._paths.can_have(path)

    def check_url(self, template: str, field: str) -> str | None:
        """Check the template of a URL; the host that it leads to, or None if that is unknown."""
        url = self._parsed(lambda: parse_url(template), field)
        if url is None:
            return None
        host = self._host(url, field)
        self._check_parts((*url.path, *(url.query or ())), field, host)
        return host

    def check_headers(self, headers: dict[str, str], field: str, host: str | None) -> None:
        """Check names and values of headers."""
        seen: set[str] = set()
        for name, template in headers.items():
            place = spell_field(field, [name])
            lowered = name.lower()
            if _HEADER_NAME.fullmatch(name) is None:
                self.refuse(place, "not a header name; names are literal, of letters, digits and -")
                continue
            if lowered in REFUSED_HEADERS or lowered.startswith(_RESERVED_PREFIXES):
                self.refuse(place, f"the header {name} cannot be set; leave it out")
            if lowered in seen:
                self.refuse(place, f"the header {name} is there twice; names are compared without case")
            seen.add(lowered)
            parts = self._parsed(lambda text=template: parse_template(text), place)  # type: ignore[misc]
            if parts is not None:
                self._check_header(name, parts, place, host)

    def _check_header(self, name: str, parts: Sequence[Part], field: str, host: str | None) -> None:
        self._check_parts(parts, field, host, in_header=True)
        if not all(is_header_value(f"x{part}x") for part in parts if isinstance(part, str)):
            self.refuse(field, "a header carries Latin-1 without control characters")
        text = literal_text(parts)
        if is_literal(parts) and text != text.strip():
            self.refuse(field, "a header begins and ends with no space")
        if name.lower() == "authorization" and has_input(parts):
            self.refuse(field, "Authorization takes no value of the input; use ${env.X}")
        if name.lower() == "content-type" and not is_literal(parts):
            self.refuse(field, "Content-Type is literal")
        if is_literal(parts) and _CREDENTIAL.search(name) and len(text) >= _CREDENTIAL_CHARACTERS_MIN:
            self.warnings.append(
                GatewayWarning(
                    code=WarningCode.PLAIN_SECRET,
                    message=f"{field}: it looks like a credential that stands in the configuration; use ${{env.X}}",
                )
            )

    def check_json(self, template: Any, field: str, host: str | None, *, has_env: bool = True) -> None:
        """Check a JSON template.

        Args:
            template: any JSON.
            field: where it is.
            host: the host that its secrets are for; None: unknown.
            has_env: whether it may name secrets.
        """
        for path, text in texts_of(template):
            place = spell_field(field, path)
            parts = self._parsed(lambda each=text: parse_template(each), place)  # type: ignore[misc]
            if parts is None:
                continue
            names = [part.name for part in parts if isinstance(part, EnvValue)]
            if names and not has_env:
                self.refuse(place, f"${{env.{names[0]}}} is for requests only; leave it out")
                parts = tuple(part for part in parts if not isinstance(part, EnvValue))
            self._check_parts(parts, place, host)

    def check_secret(self, template: str, field: str, host: str | None) -> None:
        """Check a field that is exactly one ``${env.X}`` with a secret of Standard Webhooks.

        Args:
            template: the field's value.
            field: where it is.
            host: the host whose requests it signs; None: unknown, which is already refused.
        """
        parts = self._parsed(lambda: parse_template(template), field)
        if parts is None:
            return
        if len(parts) != 1 or not isinstance(parts[0], EnvValue):
            self.refuse(field, "give ${env.X} alone, with a secret whsec_…; a secret is never literal")
            return
        env = parts[0]
        if host is not None:
            self._resolved(lambda: self._environment.resolve(env.name, self._project, host), field)

    def _host(self, url: UrlParts, field: str) -> str | None:
        if isinstance(url.host, str):
            return url.host
        name = url.host.name
        return self._resolved(lambda: self._environment.resolve_host(name, self._project), field)

    def _check_parts(self, parts: Iterable[Part], field: str, host: str | None, *, in_header: bool = False) -> None:
        for part in parts:
            if isinstance(part, str):
                continue
            if isinstance(part, EnvValue):
                name = part.name
                value = None
                if host is not None:
                    value = self._resolved(
                        lambda name=name: self._environment.resolve(name, self._project, host),  # type: ignore[misc]
                        field,
                    )
                if value is not None and in_header and not is_header_value(value):
                    self.refuse(field, str(UnknownEnvError(name)), ConfigurationCode.UNKNOWN_ENV)
            elif self._paths is None:
                self.refuse(field, "there is no input and no call here; ${env.X} is the only placeholder")
            elif isinstance(part, InputValue) and not self._paths.can_have(part.path):
                self.refuse(field, f"inputSchema does not allow {part.field}; name a field that it has")

    def _parsed(self, parse: Callable[[], Any], field: str) -> Any:
        try:
            return parse()
        except TemplateError as exc:
            self.refuse(field, str(exc))
            return None

    def _resolved(self, resolve: Callable[[], str], field: str) -> str | None:
        try:
            return resolve()
        except UnknownEnvError as exc:
            self.refuse(field, str(exc), ConfigurationCode.UNKNOWN_ENV)
            return None
