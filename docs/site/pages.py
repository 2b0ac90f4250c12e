"""The pages of the documentation site: which files it has, and where each one lies in it.

`docs/README.md` is the index and the navigation: its second-level headings are the four parts, its third-level ones
groups, its items pages in this order. Pages that only other pages link to are built too.
"""

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
INDEX = "docs/README.md"
# Pages outside of docs, and folders, by their path in the repository.
ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "bench/README.md": "bench/index.md",
    "clients/typescript/README.md": "typescript.md",
}
FOLDERS = {"contracts": "docs/wire-types.md", "examples": "docs/gallery/README.md"}
_AS_THEY_ARE = frozenset({".json", ".png", ".svg"})
LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)\s]+)(?P<after>\))")
_ITEM = re.compile(r"^- \[(?P<title>[^\]]+)\]\((?P<target>[^)]+)\)$")
_FENCE = re.compile(r"^( *)(`{3,}|~{3,})")
CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(?:[^\n]|\n(?!\n))+?(?<!`)\1(?!`)")


@dataclass(frozen=True, slots=True)
class Entry:
    """One page of the navigation.

    Attributes:
        part: the heading of its part.
        group: the heading of its group; empty if it is in none.
        title: its name in the navigation.
        path: its file, from the root of the repository.
    """

    part: str
    group: str
    title: str
    path: str


@cache
def tracked() -> frozenset[str]:
    """The files of the repository, with new ones that git does not ignore."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    return frozenset(name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file())


def site_path(path: str) -> str:
    """Where a file of the repository lies in the source of the site.

    Args:
        path: the file, from the root of the repository.
    """
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    if path.startswith("docs/") and Path(path).suffix in {".md", *_AS_THEY_ARE}:
        return re.sub(r"(^|/)README\.md$", r"\1index.md", path.removeprefix("docs/"))
    if path.startswith("bench/results/") and path.endswith(".md"):
        return path
    # Sources are shown as text: a page of an example would otherwise run beside ours.
    return f"files/{path}" if Path(path).suffix in _AS_THEY_ARE else f"files/{path}.txt"


def is_page(path: str) -> bool:
    """Whether a file of the repository is a page of the site."""
    return path.endswith(".md") and not site_path(path).startswith("files/")


def navigation() -> list[Entry]:
    """All pages of the index, in order."""
    part = group = ""
    entries = []
    for line in (ROOT / INDEX).read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            part, group = line.removeprefix("## "), ""
        elif line.startswith("### "):
            group = line.removeprefix("### ")
        elif item := _ITEM.match(line):
            entries.append(Entry(part, group, item["title"], resolve(INDEX, item["target"])))
    return entries


def resolve(page: str, target: str) -> str:
    """The file that a relative link of a page names, from the root of the repository.

    Raises:
        ValueError: the link leads out of the repository, or to nothing that git knows.
    """
    path = (ROOT / page).parent.joinpath(target.partition("#")[0]).resolve()
    if not path.is_relative_to(ROOT):
        raise ValueError(f"{page}: {target} leads out of the repository")
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        readme = f"{name}/README.md"
        name = FOLDERS.get(name, readme if readme in tracked() else f"{name}/")
    elif name not in tracked():
        raise ValueError(f"{page}: {target} does not exist")
    return name


def is_relative(target: str) -> bool:
    """Whether a link leads to a file of the repository."""
    return not re.match(r"[a-z][a-z0-9+.-]*:|#|//", target)


def lines_outside_code(text: str) -> list[tuple[str, bool]]:
    """The lines of a page, and whether each is a line of text rather than of a fenced block."""
    lines: list[tuple[str, bool]] = []
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if not fence and found:
            fence = found[2]
            lines.append((line, False))
            continue
        lines.append((line, not fence))
        if fence and line.strip() == fence:
            fence = ""
    return lines


def links(page: str) -> list[str]:
    """The targets of all links and pictures of a page, code left out."""
    return links_of((ROOT / page).read_text(encoding="utf-8"))


def links_of(text: str) -> list[str]:
    """The targets of all links and pictures of a text, code left out."""
    plain = CODE_SPAN.sub("", "\n".join(line if is_text else "" for line, is_text in lines_outside_code(text)))
    html = [found for names in re.findall(r'\b(?:src|srcset|href)="([^"]+)"', plain) for found in names.split()]
    return [found["target"] for found in LINK.finditer(plain)] + html


@cache
def anchors(page: str) -> frozenset[str]:
    """The anchors of the headings of a page."""
    return frozenset(anchors_of((ROOT / page).read_text(encoding="utf-8")))


def anchors_of(text: str) -> set[str]:
    """The anchors of the headings of a text, as code hosts and the site make them."""
    return set(headings_of(text))


def headings_of(text: str) -> dict[str, str]:
    """The headings of a text by their anchors."""
    found: dict[str, str] = {}
    counts: dict[str, int] = {}
    for line, is_text in lines_outside_code(text):
        if not (is_text and (heading := re.match(r"#{1,6} +(.+?)(?: +#+)?$", line))):
            continue
        slug = slug_of(heading[1])
        seen = counts[slug] = counts.get(slug, -1) + 1
        found[f"{slug}-{seen}" if seen else slug] = heading[1]
    return found


def slug_of(heading: str) -> str:
    """The anchor of a heading: lower case, hyphens for spaces, no punctuation."""
    plain = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def all_pages() -> list[str]:
    """The pages of the navigation, and all that pages of the site link to."""
    found = [INDEX, *dict.fromkeys(entry.path for entry in navigation())]
    for page in found:
        for target in links(page):
            if is_relative(target):
                path = resolve(page, target)
                if is_page(path) and path not in found and path != "README.md":
                    found.append(path)
    return found
