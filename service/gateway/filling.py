"""Templates are filled with the input of one call: values keep their types, and each place has its encoding."""

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from proofbox.contracts.problems import FieldError
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.environment import Environment, UnknownEnvError
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.gateway.templates import CallIdValue, EnvValue, InputValue, Part, parse_template
from proofbox.service.gateway.url_templates import UrlParts, parse_url

MISSING = object()
"""What a placeholder of an absent optional value is: its key or list item is left out."""
FILLED_CHARACTERS_MAX = 8 * 1024 * 1024
"""How many characters placeholders may put into the templates of one call, in all; other values count as JSON."""
HEADER_VALUE = re.compile(r"[\x20-\x7e\xa1-\xff]*")
"""What a header can carry: Latin-1 without control characters and the blank that looks like a space."""
_URL_LITERAL = "!$&'()*+,;=:@/?%[]~-._"


class RefusedInputError(Exception):
    """An input cannot be put into a template: the model's mistake, ``invalid_input``.

    Attributes:
        errors: what is wrong, by fields of the input.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.errors = [FieldError(field=field, code="invalid_input", message=message)]

    @property
    def listed(self) -> list[dict[str, str]]:
        """The errors as answers to models have them: ``field`` and ``message``."""
        return [{"field": error.field, "message": error.message} for error in self.errors]


class TemplateFiller:
    """Fills the templates of one call; together they may become `FILLED_CHARACTERS_MAX` longer.

    Args:
        params: the input of the call, any JSON object.
        call_id: the id of the call.
        environment: the operator's secrets; None: there are none.
        project: ``tenant/project``, for which secrets are resolved.
    """

    def __init__(
        self, params: Any, call_id: str, environment: Environment | None = None, project: str = ""
    ) -> None:
        self._input = params
        self._call_id = call_id
        self._environment = environment or Environment()
        self._project = project
        self._secrets: set[str] = set()
        self._room = FILLED_CHARACTERS_MAX

    @property
    def redactor(self) -> Redactor:
        """Removes every secret that was filled in so far."""
        return Redactor(self._secrets)

    def fill_json(self, template: Any, host: str = "") -> Any:
        """Fill a JSON template.

        Args:
            template: any JSON; its texts are templates.
            host: the host that secrets are for; empty: none may be filled in.

        Returns:
            The value; `MISSING` if the whole template is a placeholder of an absent value.

        Raises:
            RefusedInputError: the placeholders put in too much.
            UnknownEnvError: a secret has no value here.
        """
        if isinstance(template, str):
            parts = parse_template(template)
            if len(parts) == 1 and not isinstance(parts[0], str):
                return self._value(parts[0], host)
            return self.fill_text(parts, host)
        if isinstance(template, dict):
            filled = {key: self.fill_json(value, host) for key, value in template.items()}
            return {key: value for key, value in filled.items() if value is not MISSING}
        if isinstance(template, list):
            return [value for each in template if (value := self.fill_json(each, host)) is not MISSING]
        return template

    def fill_part(self, part: Part) -> Any:
        """The value of one placeholder; `MISSING` if the input has none. It takes no secret.

        Raises:
            RefusedInputError: the placeholders put in too much.
            UnknownEnvError: it is a secret.
        """
        return self._value(part, "")

    def fill_text(self, parts: Sequence[Part], host: str = "") -> str:
        """Fill a text: strings as they are, other values as JSON, absent ones as nothing.

        Raises:
            RefusedInputError: the placeholders put in too much.
            UnknownEnvError: a secret has no value here.
        """
        return "".join(part if isinstance(part, str) else text_of(self._value(part, host)) for part in parts)

    def host_of(self, url: UrlParts) -> str:
        """The host that a URL template leads to.

        Raises:
            UnknownEnvError: the host is a secret without a value here.
        """
        if isinstance(url.host, str):
            return url.host
        value = self._environment.resolve_host(url.host.name, self._project)
        self._secrets.add(value)
        return value.lower()

    def fill_url(self, template: str) -> tuple[str, str]:
        """Fill the template of a URL.

        Returns:
            The URL in ASCII and its host; a host that is not ASCII stays as it is.

        Raises:
            RefusedInputError: a value cannot stand in a path or query, or the placeholders put in too much.
            UnknownEnvError: a secret has no value here.
        """
        url = parse_url(template)
        host = self.host_of(url)
        path = "".join(self._path_part(part, host) for part in url.path)
        filled = f"{url.scheme}://{host}{url.port}{path}"
        if url.query is not None:
            filled += "?" + "".join(self._query_part(part, host) for part in url.query)
        return filled, host

    def fill_headers(self, headers: dict[str, str], host: str) -> list[tuple[str, str]]:
        """Fill the values of headers; one that is only a placeholder of an absent value is left out.

        Raises:
            RefusedInputError: a value has a character that no header carries, or the placeholders put in too much.
            UnknownEnvError: a secret has no value here, or makes no header value.
        """
        filled = []
        for name, template in headers.items():
            parts = parse_template(template)
            for part in parts:
                if isinstance(part, EnvValue) and not is_header_value(self._secret(part, host)):
                    raise UnknownEnvError(part.name)
            values = [text_of(self._value(part, host)) for part in parts if isinstance(part, InputValue)]
            fields = [part.field for part in parts if isinstance(part, InputValue)]
            for field, value in zip(fields, values, strict=True):
                if HEADER_VALUE.fullmatch(value) is None:
                    raise RefusedInputError(
                        field,
                        f"it has a control character or one beyond Latin-1, which the header {name} cannot carry",
                    )
            if len(parts) == 1 and self._is_missing(parts[0]):
                continue
            value = self.fill_text(parts, host)
            if value != value.strip(" "):
                field = fields[0] if fields else name
                raise RefusedInputError(field, f"the header {name} would begin or end with a space")
            filled.append((name, value))
        return filled

    def fill_query(self, query: dict[str, Any], host: str) -> list[tuple[str, str]]:
        """Fill parameters of a query: objects and lists become JSON text, absent values are left out.

        Raises:
            RefusedInputError: the placeholders put in too much.
            UnknownEnvError: a secret has no value here.
        """
        filled = {name: self.fill_json(template, host) for name, template in query.items()}
        return [(name, text_of(value)) for name, value in filled.items() if value is not MISSING]

    def fill_secret(self, template: str, host: str) -> str:
        """Fill a field that is one secret, such as the one that signs the webhooks to a host.

        Raises:
            UnknownEnvError: it has no value here.
        """
        (part,) = parse_template(template)
        if not isinstance(part, EnvValue):
            raise UnknownEnvError(template)
        return self._secret(part, host)

    def _path_part(self, part: Part, host: str) -> str:
        if isinstance(part, str):
            return quote(part, safe=_URL_LITERAL)
        value = self._value(part, host)
        if not isinstance(part, InputValue):
            return quote(text_of(value), safe="")
        text = self._url_text(part, value)
        if text in {"", ".", ".."}:
            shown = "it is missing or empty" if not text else f"'{text}' is no name"
            raise RefusedInputError(part.field, f"{shown}; the path of the URL needs a segment")
        return quote(text, safe="")

    def _query_part(self, part: Part, host: str) -> str:
        if isinstance(part, str):
            return quote(part, safe=_URL_LITERAL)
        value = self._value(part, host)
        text = self._url_text(part, value) if isinstance(part, InputValue) else text_of(value)
        return quote_plus(text, safe="")

    @staticmethod
    def _url_text(part: InputValue, value: Any) -> str:
        if isinstance(value, dict | list):
            kind = "an object" if isinstance(value, dict) else "a list"
            raise RefusedInputError(part.field, f"{kind} cannot stand in a URL; give a text or a number")
        text = text_of(value)
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise RefusedInputError(part.field, "it has half of a surrogate pair; give whole characters")
        return text

    def _value(self, part: Part, host: str) -> Any:
        if isinstance(part, InputValue):
            return self._counted(value_at(self._input, part.path), part.field)
        if isinstance(part, CallIdValue):
            return self._counted(self._call_id, "call.id")
        if isinstance(part, EnvValue):
            return self._counted(self._secret(part, host), f"env.{part.name}")
        return part

    def _counted(self, value: Any, field: str) -> Any:
        """A value that a placeholder puts in, if there is room for it."""
        self._room -= len(text_of(value))
        if self._room < 0:
            raise RefusedInputError(
                field,
                f"the placeholders of the tool put in more than {FILLED_CHARACTERS_MAX:,} characters; "
                "give a shorter input",
            )
        return value

    def _secret(self, part: EnvValue, host: str) -> str:
        value = self._environment.resolve(part.name, self._project, host)
        self._secrets.add(value)
        return value

    def _is_missing(self, part: Part) -> bool:
        return isinstance(part, InputValue) and value_at(self._input, part.path) is MISSING


def value_at(value: Any, path: Sequence[str | int]) -> Any:
    """The value at a path of JSON; `MISSING` if there is none."""
    for step in path:
        is_there = (
            step in value if isinstance(value, dict) else isinstance(value, list) and step in range(len(value))
        )
        if not is_there or isinstance(step, int) != isinstance(value, list):
            return MISSING
        value = value[step]
    return value


def text_of(value: Any) -> str:
    """A value within text: strings as they are, others as JSON, an absent one as nothing."""
    if value is MISSING:
        return ""
    return value if isinstance(value, str) else compact_json(value)


def is_header_value(text: str) -> bool:
    """Whether a header can carry a text."""
    return HEADER_VALUE.fullmatch(text) is not None and text == text.strip(" ")
