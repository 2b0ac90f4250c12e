"""The wheel, built from the files of the repository, and installed in an environment without anything else."""

import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
_BUILD = "from setuptools import build_meta; build_meta.build_wheel('dist')"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built offline from a copy of the checkout without what git ignores, with a documentation site."""
    copy = tmp_path_factory.mktemp("checkout")
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        source, target = ROOT / name, copy / name
        if source.is_symlink() or source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    _put_site(copy / "proofbox" / "docs_site.zip")
    subprocess.run([sys.executable, "-c", _BUILD], cwd=copy, capture_output=True, text=True, check=True)
    (built,) = (copy / "dist").glob("*.whl")
    return built


def _put_site(target: Path) -> None:
    """Put the documentation site into a checkout: the built one, or a page in its place."""
    built = ROOT / "proofbox" / target.name
    if built.exists():
        shutil.copyfile(built, target)
        return
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("index.html", "<p>a page of the site")


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and what it requires without extras; its folder ``bin`` has the program.

    The requirements are links to the files of the environment that runs the tests, so nothing is downloaded.
    """
    folder = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    for distribution in requirements_of(wheel):
        _link_files(distribution, site_packages)
    install = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet"]
    offline = ["--disable-pip-version-check", "--no-index", "--no-deps", wheel]
    subprocess.run([*install, *offline], capture_output=True, text=True, check=True)
    return folder


def requirements_of(wheel: Path) -> list[metadata.Distribution]:
    """The distributions that the wheel requires without extras, and all that these require."""
    (own,) = metadata.distributions(path=[str(wheel)])
    waiting = [Requirement(text) for text in own.requires or ()]
    found: dict[tuple[str, frozenset[str]], metadata.Distribution] = {}
    extras = frozenset[str]()
    waiting = [requirement for requirement in waiting if _applies(requirement, extras)]
    while waiting:
        requirement = waiting.pop()
        key = requirement.name.lower(), frozenset(requirement.extras)
        if key not in found:
            found[key] = metadata.distribution(requirement.name)
            further = map(Requirement, found[key].requires or ())
            waiting += [one for one in further if _applies(one, frozenset(requirement.extras))]
    return list({distribution.name: distribution for distribution in found.values()}.values())


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    return requirement.marker is None or any(
        requirement.marker.evaluate({"extra": extra}) for extra in extras or {""}
    )


def _link_files(distribution: metadata.Distribution, site_packages: Path) -> None:
    for file in distribution.files or ():
        source = Path(str(distribution.locate_file(file)))
        if ".." not in file.parts and source.is_file():
            target = site_packages / file
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                target.symlink_to(source)
