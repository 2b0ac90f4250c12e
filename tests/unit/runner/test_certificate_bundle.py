"""The certificate authorities of a program: which of an image, and whether there are any."""

import importlib.util
from pathlib import Path

import pytest

IMAGES = Path(__file__).parents[3] / "sandbox_images"
OWN = "own authority\n"


@pytest.fixture
def write_roots(monkeypatch):
    monkeypatch.syspath_prepend(str(IMAGES))
    spec = importlib.util.spec_from_file_location("connections_of_the_runner", IMAGES / "runner" / "connections.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.write_roots


@pytest.mark.parametrize(
    ("there", "roots", "expected"),
    [
        (("certifi", "system"), "", "certifi\n"),
        (("certifi",), OWN, "certifi\n" + OWN),
        (("system",), "", "system\n"),
        (("system",), OWN, "system\n" + OWN),
        ((), OWN, OWN),
        ((), "", None),
    ],
    ids=["both", "certifi-own", "system", "system-own", "own", "none"],
)
def test_a_program_trusts_the_first_public_bundle_of_the_image_and_the_authority_of_its_call(
    tmp_path, write_roots, there, roots, expected
):
    for name in there:
        (tmp_path / name).write_text(f"{name}\n", encoding="ascii")
    bundle = tmp_path / "bundle"
    public = (str(tmp_path / "certifi"), str(tmp_path / "system"))
    assert write_roots(roots, str(bundle), public) is (expected is not None)
    assert (bundle.read_text(encoding="ascii") if bundle.exists() else None) == expected


def test_no_roots_at_all_leave_no_file_that_a_variable_could_name(tmp_path, write_roots):
    assert not write_roots("", str(tmp_path / "bundle"), ())
    assert list(tmp_path.iterdir()) == []
