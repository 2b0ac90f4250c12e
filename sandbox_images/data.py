"""Lays out what the image takes from packages beside libraries: data of nltk, and amaro, which knows TypeScript.

Arguments: the folder with the wheels of data.txt, the folder of WordNet, the target's prefix, the settings of npm.
Runs while the image is built.
"""

import hashlib
import io
import re
import ssl
import sys
import tarfile
import urllib.request
import zipfile
from pathlib import Path

AMARO = "amaro/-/amaro-1.2.1.tgz"
AMARO_SHA512 = (
    "457341d7f99ba5ba70af8995950818655758e021e5eeb144c70a2ff9739359f8"
    "21a6c335b36b03ff9bb8a1342428be0fb740463481314958d170b323732b480d"
)
_AMARO_FILES = ("dist/errors.js", "dist/index.js", "dist/internal.js", "dist/LICENSE", "package.json", "LICENSE.md")
# Of punkt the languages that are spoken most: each takes half a megabyte.
_PUNKT = "dutch|english|french|german|italian|polish|portuguese|russian|spanish|turkish"
_NLTK = re.compile(rf"corpora/stopwords/[^/]+$|tokenizers/punkt_tab/({_PUNKT})/[^/]+$")
_NPM = "https://registry.npmjs.org/"
# WordNet's own list of its lexicographer files, which Debian leaves out; nltk needs it. The last part is the part of speech.
_LEXNAMES = {
    3: "adj.all adj.pert",
    4: "adv.all",
    1: "noun.Tops noun.act noun.animal noun.artifact noun.attribute noun.body noun.cognition noun.communication noun.event noun.feeling "
    "noun.food noun.group noun.location noun.motive noun.object noun.person noun.phenomenon noun.plant noun.possession noun.process "
    "noun.quantity noun.relation noun.shape noun.state noun.substance noun.time",
    2: "verb.body verb.change verb.cognition verb.communication verb.competition verb.consumption verb.contact verb.creation "
    "verb.emotion verb.motion verb.perception verb.possession verb.social verb.stative verb.weather",
}
_LAST_LEXNAME = ("adj.ppl", 3)


def lexnames() -> str:
    """The file lexnames: number, name and part of speech of each lexicographer file."""
    rows = [(name, part) for part, names in _LEXNAMES.items() for name in names.split()]
    return "".join(f"{number:02}\t{name}\t{part}\n" for number, (name, part) in enumerate([*rows, _LAST_LEXNAME]))


def lay_out_nltk(wheels: Path, wordnet: Path, target: Path) -> None:
    """Writes the folder ``nltk_data`` as nltk's own downloader would."""
    (llama,) = wheels.glob("llama_index_core-*.whl")
    with zipfile.ZipFile(llama) as wheel:
        for name in wheel.namelist():
            _, found, below = name.partition("/nltk_cache/")
            if (
                found
                and below.startswith(("corpora/stopwords/", "tokenizers/punkt_tab/"))
                and not name.endswith("/")
            ):
                path = target / below
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(wheel.read(name))
    (vader,) = wheels.glob("vader[sS]entiment-*.whl")
    (target / "sentiment").mkdir()
    with zipfile.ZipFile(vader) as wheel, _zip(target / "sentiment/vader_lexicon.zip") as made:
        made.writestr("vader_lexicon/vader_lexicon.txt", wheel.read("vaderSentiment/vader_lexicon.txt"))
    with _zip(target / "corpora/wordnet.zip") as made:
        for file in sorted(wordnet.iterdir()):
            made.write(file, f"wordnet/{file.name}")
        made.writestr("wordnet/lexnames", lexnames())


def _zip(path: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)


def lay_out_amaro(target: Path, settings: Path) -> None:
    """Writes the package amaro from npm's registry.

    Raises:
        ValueError: the registry gave another file than the one that is pinned.
    """
    lines = (settings / "npmrc").read_text(encoding="utf-8").splitlines()
    registry = next((line.partition("=")[2] for line in lines if line.startswith("registry=")), _NPM)
    bundle = settings.parent / "pip/ca.pem"
    trusted = ssl.create_default_context(cafile=str(bundle) if bundle.stat().st_size else None)
    with urllib.request.urlopen(f"{registry.rstrip('/')}/{AMARO}", context=trusted, timeout=60) as answer:  # noqa: S310
        packed = answer.read()
    if hashlib.sha512(packed).hexdigest() != AMARO_SHA512:
        raise ValueError(f"{AMARO} is not the file that is pinned")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for name in _AMARO_FILES:
            member = archive.extractfile(f"package/{name}")
            if member is None:
                raise ValueError(f"{AMARO} lacks {name}")
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(member.read())


if __name__ == "__main__":
    wheels, wordnet, prefix, npm_settings = map(Path, sys.argv[1:])
    lay_out_nltk(wheels, wordnet, prefix / "nltk_data")
    lay_out_amaro(prefix / "lib/node_modules/amaro", npm_settings)
