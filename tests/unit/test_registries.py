"""Each list of themes, checks, variants, exec parameters, formats and settings is that of its registry.

A registry is the one place where a kind is defined; a place is a file that lists its names again. A failure names
every place that lacks a name, or has one that the registry lacks. A name that is only listed has no effect, so each
check, parameter and setting is also read somewhere.
"""

import ast
import json
import re
import runpy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from proofbox.contracts.artifacts import ArtifactSpec, Checks
from proofbox.contracts.checks import EXTENSIONS_OF_CHECK
from proofbox.contracts.exec_params import ExecParams
from proofbox.contracts.gateway import executions
from proofbox.contracts.media_types import MIME_BY_EXTENSION
from proofbox.contracts.render_tools import RENDER_DESCRIPTIONS, RENDER_PARAMS, OutputFormat
from proofbox.service.app.config.values import is_secret
from proofbox.service.app.gateway import require_executions
from proofbox.service.app.settings import Settings
from proofbox.service.previews.kinds import KINDS
from proofbox.service.sandbox.limits import limit_names

ROOT = Path(__file__).parents[2]
ANY = None
Lists = Iterable[Iterable[str]]


@dataclass(frozen=True)
class Place:
    """A file, or files of one pattern, that lists names of a registry.

    Attributes:
        path: the file.
        find: the lists in its text; each has to be complete.
        without: names of the registry that it leaves out on purpose.
        beside: what it lists beside names of the registry; `ANY`: whatever.
        spell: how it writes a name.
    """

    path: str
    find: Callable[[str], Lists]
    without: Iterable[str] = ()
    beside: Iterable[str] | None = ()
    spell: Callable[[str], str] = str

    def differences(self, registry: Iterable[str]) -> Iterator[str]:
        """What it lacks, and what it has that the registry lacks."""
        expected = {self.spell(name): name for name in registry if name not in self.without}
        text = "".join(path.read_text(encoding="utf-8") for path in sorted(ROOT.glob(self.path)))
        lists = [set(names) for names in self.find(text)]
        if not lists:
            yield f"{self.path}: its list is not where this test looks for it"
        for names in lists:
            yield from (f"{self.path}: lacks '{name}'" for wrote, name in expected.items() if wrote not in names)
            if self.beside is not ANY:
                others = sorted(names - expected.keys() - {"and", "or", *self.beside})
                yield from (f"{self.path}: has '{name}', which the registry lacks" for name in others)


def within(start: str, end: str = r"[)\]}]", name: str = r"[\"'](\w+)[\"']") -> Callable[[str], Lists]:
    """Finds lists by what stands before and behind them, and the names in them; the last group is the name."""
    lists, names = re.compile(rf"{start}(.*?){end}", re.DOTALL | re.MULTILINE), re.compile(name, re.MULTILINE)
    return lambda text: [
        [match[match.lastindex or 0] for match in names.finditer(found[1])] for found in lists.finditer(text)
    ]


def whole(name: str) -> Callable[[str], Lists]:
    """Finds names anywhere in a file."""
    return within(r"\A", r"\Z", name)


def values(names: Iterable[str]) -> Callable[[str], Lists]:
    """The names that a module has as values."""
    return lambda _: [names]


def properties(key: str) -> Callable[[str], Lists]:
    """Finds the names of a JSON object in the object of a file."""
    return lambda text: [json.loads(text)[key]]


def judged_formats(text: str) -> Lists:
    """The formats before the colon of each line of the list of what "opens" means."""
    _, _, section = text.partition('## What "opens" means')
    lines = re.findall(r"^- ([^:]+):", section.partition("\n## ")[0], re.MULTILINE)
    return [re.findall(r"[\w-]+(?:\.\w+)?", " ".join(lines))]


WORD, CAPITALS, MARKED = r"[\w/.-]*\w", r"[A-Z]{3,}", r"`(\w+)`"
KEY, FIELD = r"^ +\"(\w+)\":", r"^    (\w+)\??: "
GENERATED = "clients/typescript/src/generated/types.gen.ts"
BUNDLE = "service/console/static/console.js"
INSPECTOR = runpy.run_path(str(ROOT / "sandbox_images" / "inspector" / "formats.py"))

THEMES = [path.stem for path in ROOT.glob("sandbox_images/render/themes/*.json")]
NO_CHECKS = ("filename", "glob", "description", "visibility")
CHECKS = [
    *Checks.model_fields,
    *(name for name in ArtifactSpec.model_fields if name not in {*Checks.model_fields, *NO_CHECKS}),
]
OF_EVERY_FILE = ("mime", "min_bytes", "max_bytes", "not_blank", "min_count", "max_count")
EXEC_PARAMS = list(ExecParams.model_fields)
NOT_OF_A_LOOP = ("explore", "prog_name", "args", "env", "cwd", "workspace")
PROMISES = ("contract", "explore")
"""Clients make them of ``promises``."""
OFFICE = "application/vnd.openxmlformats-officedocument."
EXTENSION_ALIASES = [
    *(
        "jpeg",
        "tif",
        "markdown",
        "htm",
        "tgz",
        "tbz2",
        "txz",
        "rst",
        "tex",
        "log",
        "mmd",
        "ini",
        "cfg",
        "sh",
        "mjs",
        "ts",
    )
]
MARKS = {variant: key for key, variant in reversed(executions._MARKS.items())}


def class_name(variant: str) -> str:
    return executions.VARIANTS[variant].__name__


def key_of(variant: str) -> str:
    return MARKS.get(variant, variant)


PLACES = {
    "themes": (THEMES, [
        Place("sandbox_images/render/themes.py", within("^BUILT_IN = ")),
        Place("contracts/render_tools.py", within(r'theme: .*\n    """', ", or the path", WORD)),
        Place("service/mcp/arguments.py", within(r'theme: [^\n]*\n    """', ", or the path", WORD)),
        Place(GENERATED, within(r"\* (?=``plain)", ", or the path", WORD)),
        Place("proofbox/cli/render.py", within(r'"--theme", default="plain", help="', ", or a theme", WORD)),
        Place("proofbox/cli/document_files.py", within("^_BUILT_IN_THEMES = ")),
        Place("service/console/source/parts/schema_fields.js", within(r"\{ theme: ")),
        Place(BUNDLE, within(r"\{theme:")),
        Place("Makefile", within(r"\[THEME=(?=\w)", r"\]", r"\w+")),
        Place("docs/rendering.md", within("^## Themes\n\n", ", or the path", MARKED)),
        Place("docs/rendering.md", within("^- `extends`: ", r" \(default", MARKED)),
        Place("docs/themes.md", within("^## Colours\n\n", "\n", WORD)),
        Place("docs/reference/theme_page.py", within("same report in the themes ", r"\]", WORD)),
        Place("docs/reference/remedies.py", within('"unknown_theme": "Use ', ", or the path", MARKED)),
        Place("docs/gallery/make.py", within("^THEMES = ")),
        Place("docs/gallery/make.py", within(r'Sheet\("themes", "Four themes", ', ",$", MARKED)),
        Place("tests/container/in_image/render/test_pdf_and_png.py", within(r'parametrize\("theme", ')),
        Place("tests/container/in_image/render/test_pptx_writer.py", within(r'parametrize\("theme", ')),
    ]),
    "checks of a contract": (CHECKS, [
        Place("contracts/checks.py", values(EXTENSIONS_OF_CHECK), without=OF_EVERY_FILE),
        Place("service/console/source/lib/checks.json", lambda text: [json.loads(text)], without=OF_EVERY_FILE),
        Place("sandbox_images/inspector/formats.py", values(
            {*INSPECTOR["CHECKS_JUDGED_ELSEWHERE"], *frozenset().union(*INSPECTOR["CHECKS_BY_FAMILY"].values())}
        ), beside=["glob"]),
        Place("sandbox_images/inspector/checks.py", within(r"^_KINDS: .*? = \{", r"^\}", KEY),
              without=INSPECTOR["CHECKS_JUDGED_ELSEWHERE"]),
        Place("sandbox_images/inspector/families/parquet.py", within("    for check in "),
              without=set(CHECKS) - INSPECTOR["CHECKS_BY_FAMILY"]["parquet"] | {"mime"}),
        Place("service/console/source/lib/contract_form.js",
              within("^export const CHECKS = ", r"^\}", r"^  (\w+): ")),
        Place(BUNDLE, within(r"=\{(?=min_rows:\{)", r"\}\}", r"(\w+):\{")),
        Place("docs/contract.md", within("<!-- checks -->", "<!-- /checks -->", r"^\| `(\w+)`")),
        Place("docs/wire-types.md", within("^## ArtifactSpec", "^## ", r"^\| `(\w+)`"), beside=ANY),
        Place(GENERATED, within("^export type ArtifactSpec = ", r"^\}", FIELD), beside=ANY),
        Place("contracts/schemas/artifact_spec.schema.json", properties("properties"), beside=ANY),
        Place("tests/contracts/test_contract.py", within(r"^    checks = \{", r"^    \}", KEY),
              without=["min_count", "max_count"]),
    ]),
    "variants of execution": (list(executions.VARIANTS), [
        Place("contracts/gateway/executions.py", within("^_MARKS = ", name=r': "(\w+)"')),
        Place("contracts/gateway/executions.py", values(frozenset().union(*executions.VARIANTS_BY_TYPE.values()))),
        Place("contracts/gateway/executions.py", within("^UNKNOWN_VARIANT = ", r"^\)", r"\w+"),
              beside=ANY, spell=key_of),
        Place("contracts/gateway/configuration.py", within('"webhookUrl" if .* else "', '"', r"\w+"),
              without=["webhook", "space"], spell=key_of),
        Place("service/app/gateway*.py", whole(r'"(\w+)": \w+Tool\('), beside=["none"]),
        Place("service/gateway/agents/execution_check.py", within("^_CHECKS: .*? = ", r"^\}", r"(\w+Execution):"),
              without=["image", "sub_agent", "space"], spell=class_name),
        Place("docs/agents.md", within("^## Execution", "^## ", r"`(\w+)"), beside=ANY, spell=key_of),
        Place("docs/wire-types.md", whole(r"^## (\w+Execution)$"), spell=class_name),
        Place(GENERATED, whole(r"^export type (\w+Execution) ="), spell=class_name),
        Place("contracts/schemas/agent_configuration.schema.json", properties("$defs"),
              beside=ANY, spell=class_name),
    ]),
    "exec parameters": (EXEC_PARAMS, [
        Place("proofbox/client/call_bodies.py", within("^class RunOptions", "^@", FIELD), without=PROMISES,
              beside=["files", "promises", "language", "network", "params", "on_event"]),
        Place("proofbox/client/call_bodies.py", within("^    names = "), without=[*PROMISES, "packages"]),
        Place("proofbox/cli/run.py", within(r"^    options: dict\[str, Any\] = ", r"^    \}", KEY),
              without=[*PROMISES, "cwd", "workspace"], beside=["language", "files", "promises", "network"]),
        Place("service/mcp/arguments.py", within("^class RunArguments", "^class RenderArguments", FIELD),
              without=["contract", *NOT_OF_A_LOOP],
              beside=["code", "files_promised", "files", "conversation", "wait_s"]),
        Place("service/mcp/actions.py", within("    def _program", "return run$", r'params(?:: .* = \{|\[)"(\w+)"'),
              without=NOT_OF_A_LOOP),
        Place("service/console/source/lib/run_form.js",
              within("^function programParams", r"^\}", r"params\.(\w+) =|\{ (contract) \}|\{ (explore):"),
              without=["prog_name", "timeout_s", "env", "cwd", "packages"]),
        Place("service/facades/librechat/runs.py", within(r"^        params=\{", r"^        \}", KEY),
              without=["explore", "prog_name", "stdin", "env", "workspace", "packages"]),
        Place("docs/exec.md", within("^## Parameters", "^No value", r"^- `(\w+)`")),
        Place("docs/client.md", within("^- (?=`stdin`)", r" are those of \[exec", MARKED),
              without=[*PROMISES, "prog_name", "packages"], beside=["limits"]),
        Place("docs/wire-types.md", within("^## ExecParams", "^## ", r"^\| `(\w+)`")),
        Place("docs/tool-parameters.md", within("^## exec_tools.execute_code_python", "^## ", r"^\| `(\w+)`"),
              without=["workspace", "packages"]),
        Place(GENERATED, within("^export type ExecParams = ", r"^\}", FIELD)),
        Place("contracts/schemas/exec_params.schema.json", properties("properties")),
    ]),
    "formats of renderings": (list(OutputFormat), [
        Place("contracts/render_tools.py", values(RENDER_PARAMS)),
        Place("contracts/render_tools.py", values(RENDER_DESCRIPTIONS)),
        Place("sandbox_images/render/model.py", within("^Format = ")),
        Place("sandbox_images/render/request.py", within("^OUTPUTS = ")),
        Place("sandbox_images/render/writers.py", whole(r"as write_document|import write_(\w+)"), beside=ANY),
        Place("proofbox/cli/render.py", within("^_FORMATS = ")),
        Place("proofbox/cli/render.py", within("Markdown or HTML file to ", '"', WORD), spell=str.upper),
        Place("proofbox/client/call_bodies.py", within("^RENDERED_FORMATS = ")),
        Place("proofbox/client/*sync_client.py", within("``output_name`` is the format: ", r"\.", WORD)),
        Place("service/mcp/arguments.py", within("its extension is the format: ", r"\.", WORD)),
        Place("service/mcp/tools.py", within(" Markdown or HTML to a ", "without", CAPITALS), spell=str.upper),
        Place("service/react/text_formats.py", within("^_RENDERED = "), without=["xlsx"]),  # a program makes it
        Place("service/console/source/views/run.js", within("^const OUTPUTS = ", r"\}", r"(\w+):")),
        Place(BUNDLE, within(r"\{(?=pdf:\"PDF\")", r"\}", r"(\w+):")),
        Place("clients/typescript/src/options.ts", within("^type RenderParams = ", ";", r"Write(\w+)Params"),
              spell=str.capitalize),
        Place("clients/typescript/src/proofbox.ts", within("of the output is the format: ", r"\.", WORD)),
        Place("docs/mcp.md", within(r"^\| `render` \|", "file", CAPITALS), spell=str.upper),
        Place("docs/console.md", within('^"Document" has Markdown or HTML .*?: ', r"\.", WORD), spell=str.upper),
        Place("docs/rendering.md", within("^# Rendering", "parameters", r"write_(\w+)")),
        Place("README.md", within(r"\*Documents\.\*\* Markdown or HTML to ", r"\(", CAPITALS), spell=str.upper),
        Place("docs/README.md", within(r"\[Render (?=PDF)", r"\]", CAPITALS), spell=str.upper),
    ]),
    "formats of files": (list(MIME_BY_EXTENSION), [
        Place("sandbox_images/inspector/formats.py", values(INSPECTOR["FORMATS"])),
        Place("docs/contract.md", judged_formats, without=EXTENSION_ALIASES, beside=ANY),
    ]),
    "media types of previews": (list(KINDS), [
        Place("service/console/source/parts/server_preview.js",
              lambda text: whole(r"[\"`]([\w/.+-]+)[\"`],")(text.replace("${OFFICE}", OFFICE)),
              without=[f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp", "bmp")], beside=ANY),
    ]),
    "settings": (list(Settings.model_fields), [
        Place("docs/settings.md", whole(r"^- `PROOFBOX_(\w+)`"), spell=str.upper),
        Place("deploy/proofbox.toml.example", whole(r"^#(\w+) ="),
              spell=lambda name: f"{name}_file" if is_secret(Settings, name) else name),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("kind", PLACES)
def test_every_list_is_that_of_its_registry(kind: str) -> None:
    registry, places = PLACES[kind]
    differences = [line for place in places for line in place.differences(registry)]
    if differences:
        pytest.fail(f"{kind}:\n" + "\n".join(dict.fromkeys(differences)), pytrace=False)


def test_a_service_is_not_built_without_what_runs_each_variant() -> None:
    known = {*executions.VARIANTS, "mcp", "none"}
    require_executions(known)
    with pytest.raises(LookupError, match="no ToolExecution runs the variant image, space of execution"):
        require_executions(known - {"space", "image"})


def trees(*patterns: str) -> Iterator[ast.Module]:
    for pattern in patterns:
        for path in ROOT.glob(pattern):
            yield ast.parse(path.read_text(encoding="utf-8"))


def attributes_of(objects: Iterable[str], *patterns: str) -> set[str]:
    """The attributes that modules read of objects, given by the last part of their names."""
    read = set()
    for node in (node for tree in trees(*patterns) for node in ast.walk(tree)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name.lstrip("_") in objects:
                read.add(node.attr)
    return read


def keys_of_checks(*patterns: str) -> set[str]:
    """The keys that programs read of ``checks``: ``checks["x"]``, ``checks.get("x")``, or a loop over keys."""
    read: set[str] = set()
    for function in (node for tree in trees(*patterns) for node in ast.walk(tree)):
        if not isinstance(function, ast.FunctionDef):
            continue
        texts = {node.value for node in ast.walk(function) if isinstance(node, ast.Constant)} & set(CHECKS)
        parts = {str(node.value) for node in ast.walk(function) if isinstance(node, ast.Constant)}
        for node in ast.walk(function):
            match node:
                case (
                    ast.Subscript(value=ast.Attribute(attr="checks"), slice=key)
                    | ast.Call(func=ast.Attribute(value=ast.Attribute(attr="checks"), attr="get"), args=[key, *_])
                ):
                    match key:
                        case ast.Constant(value=text):
                            read.add(text)
                        case ast.JoinedStr(values=[ast.Constant(value=text), _]):
                            read |= {f"{text}{part}" for part in parts}
                        case _:
                            read |= texts
    return read


READERS = {
    "ExecParams": (
        ExecParams.model_fields,
        lambda: attributes_of({"params", "given"}, "service/execution/*.py", "service/packages/*.py"),
    ),
    "Checks": (
        Checks.model_fields,
        lambda: attributes_of({"checks"}, "service/jobs/*.py") | keys_of_checks("sandbox_images/inspector/**/*.py"),
    ),
    "ArtifactSpec": (
        ArtifactSpec.model_fields.keys() - Checks.model_fields.keys(),
        lambda: attributes_of({"spec"}, "contracts/artifacts.py"),
    ),
    "Settings": (
        Settings.model_fields,
        # Only the wiring reads settings, and their own properties do.
        lambda: (
            {*limit_names()}
            | attributes_of({"settings"}, "service/app/**/*.py", "proofbox/cli/**/*.py")
            | attributes_of({"self"}, "service/app/**/*settings.py")
        ),
    ),
}


@pytest.mark.parametrize("model", READERS)
def test_every_field_is_read_somewhere(model: str) -> None:
    fields, find_read = READERS[model]
    read = find_read()
    unread = [
        f"{model}.{name} is accepted and has no effect: no code reads it" for name in fields if name not in read
    ]
    if unread:
        pytest.fail("\n".join(unread), pytrace=False)
