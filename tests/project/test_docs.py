"""The documents say what the code does: targets, variables and files that they name."""

import re
from pathlib import Path

import pytest

from proofbox.service.app.config.secret_files import file_settings
from proofbox.service.app.settings import Settings
from proofbox.service.app.unknown_settings import OTHER_NAMES

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_TARGET = re.compile(r"(?:^|[`\s(])make ([a-z][a-z-]*)", re.MULTILINE)
_VARIABLE = re.compile(r"\bPROOFBOX_[A-Z0-9_]*[A-Z0-9]\b")
_CODE_PATH = re.compile(r"`((?:contracts|service|sandbox_images|tests|docs|bench)/[\w./-]*\w)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    code = "\n".join(_code(page))

    assert [name for name in _TARGET.findall(code) if name not in targets] == []


# The changelog names those that are gone.
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_variable_that_a_page_names_is_a_setting_or_known(page: Path) -> None:
    names = (*Settings.model_fields, *file_settings(Settings))
    known = {f"PROOFBOX_{name.upper()}" for name in names} | OTHER_NAMES

    named = {name for name in _VARIABLE.findall(page.read_text()) if not name.startswith("PROOFBOX_TEST_")}
    assert named - known == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    assert [path for path in _CODE_PATH.findall(page.read_text()) if not (ROOT / path).exists()] == []


def _code(page: Path) -> list[str]:
    """What a page shows as code: shell blocks and inline spans."""
    text = page.read_text()
    blocks = re.findall(r"```sh[^\n]*\n(.*?)```", text, re.DOTALL)
    return [*blocks, *re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))]
