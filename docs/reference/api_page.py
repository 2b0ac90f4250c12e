"""The pages of the HTTP API and of its types, from the OpenAPI document of the routes."""

import json
import re
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

from proofbox.service.api.app import create_app
from proofbox.service.api.services import Services
from reference.markdown import bounds, cell, fields_table, kind, prose

CONTRACTS = Path(__file__).parents[2] / "contracts"
TYPES = "wire-types.md"
_FIRST_PROBLEM = "400"
_CODE = re.compile(r"(?:^|(?<=[\s-]))`([a-z_]+)`:")
_METHODS = ("get", "post", "put", "delete")


class _NoServices:
    """Stands for the services of an application that only describes its routes."""

    def __getattr__(self, _name: str) -> "_NoServices":
        return self


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document, as a client reads it."""
    app = create_app(cast("Services", _NoServices()))
    found: dict[str, Any] = json.loads(json.dumps(app.openapi()))
    return found


def api_page() -> str:
    """The page of all routes, by tag."""
    text = (
        "# HTTP API\n\n"
        "Made by `docs/generate.py`. A service has this as an OpenAPI document at `/openapi.json`; `/docs` shows it "
        f"with forms to\ntry. Bodies are JSON, unless a route names another type. A problem is a [Problem]({TYPES}#problem). "
        "[Access](access.md)\ndescribes keys and scopes.\n"
    )
    by_tag: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, item in document()["paths"].items():
        for method in _METHODS:
            if method in item:
                by_tag.setdefault((item[method].get("tags") or ["other"])[0], []).append(
                    (method, path, item[method])
                )
    for tag, operations in by_tag.items():
        text += f"\n## {tag[0].upper()}{tag[1:]}\n"
        for method, path, operation in operations:
            text += _operation(method, path, operation)
    return text


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    text = f"\n### {prose(operation['summary'])}\n\n"
    text += f"`{method.upper()} {path}`, operation `{operation['operationId']}`.\n"
    if described := operation.get("description"):
        text += "".join(f"\n{prose(part)}\n" for part in described.split("\n\n"))
    if parameters := operation.get("parameters"):
        text += "\n| parameter | in | type | |\n|---|---|---|---|\n"
        text += "".join(_parameter(each) for each in parameters)
    if body := operation.get("requestBody"):
        text += f"\nBody: {_contents(body['content'])}.\n"
    answers = sorted(operation["responses"].items())
    good = [(status, answer) for status, answer in answers if status < _FIRST_PROBLEM]
    problems = [_problems(status, answer) for status, answer in answers if status >= _FIRST_PROBLEM]
    text += "\n| answer | | body |\n|---|---|---|\n"
    text += "".join(_answer(status, answer) for status, answer in good)
    return text + (f"\nProblems: {', '.join(problems)}.\n" if problems else "")


def _parameter(parameter: dict[str, Any]) -> str:
    schema = parameter["schema"]
    notes = cell(parameter.get("description", schema.get("description", "")))
    notes += f" Limits: {limits}." if (limits := bounds(schema)) else ""
    notes += " **Required.**" if parameter.get("required") and parameter["in"] != "path" else ""
    if (default := schema.get("default")) not in (None, ""):
        notes += f" Default: `{default}`."
    return f"| `{parameter['name']}` | {parameter['in']} | {kind(schema, TYPES)} | {notes.strip()} |\n"


def _answer(status: str, answer: dict[str, Any]) -> str:
    phrase = HTTPStatus(int(status)).phrase if status.isdigit() else ""
    described = cell(answer.get("description", ""))
    return f"| {status} {phrase} | {described} | {_contents(answer.get('content', {}))} |\n"


def _problems(status: str, answer: dict[str, Any]) -> str:
    codes = _CODE.findall(answer.get("description", ""))
    links = [f"[`{code}`](troubleshooting.md#{code})" for code in dict.fromkeys(codes)]
    return f"{status} {', '.join(links)}" if links else f"{status}: {prose(answer.get('description', ''))}"


def _contents(content: dict[str, Any]) -> str:
    shown = []
    for media_type, described in content.items():
        schema = described.get("schema", {})
        name = kind(schema, TYPES) if schema else ""
        is_json = media_type in {"application/json", "application/problem+json"}
        shown.append(name if is_json and name else f"`{media_type}`")
    return " or ".join(dict.fromkeys(shown))


def types_page() -> str:
    """The page of all types on the wire, with their schemas and examples."""
    text = (
        "# Types of requests and answers\n\n"
        "Made by `docs/generate.py` from `contracts`. Unknown fields are refused. A field without a note is optional "
        "and null by default.\nThe folder `contracts` has JSON Schemas (draft 2020-12) and examples; "
        "`python -m proofbox.contracts` writes the schemas.\n"
    )
    schemas = document()["components"]["schemas"]
    for name in sorted(schemas, key=str.lower):
        schema = schemas[name]
        text += f"\n## {name}\n"
        if described := schema.get("description"):
            text += "".join(f"\n{prose(part)}\n" for part in described.split("\n\n"))
        if table := fields_table(schema):
            text += f"\n{table}"
        elif "enum" in schema or "anyOf" in schema:
            text += f"\nOne of: {kind(schema)}.\n"
        text += _files(_snake(name))
    return text


def _files(name: str) -> str:
    schema = CONTRACTS / "schemas" / f"{name}.schema.json"
    if not schema.exists():
        return ""
    links = [f"[JSON Schema](../contracts/schemas/{schema.name})"]
    examples = sorted(
        path for path in (CONTRACTS / "examples").glob(f"{name}.*.json") if ".invalid." not in path.name
    )
    links += [f"[example: {path.name.split('.')[1]}](../contracts/examples/{path.name})" for path in examples]
    return f"\n{' · '.join(links)}\n"


def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")
