"""Build the documentation site: stage the pages, then let zensical make it; part of ``make docs-site``.

Usage: python docs/site/build.py ZENSICAL OUT. ZENSICAL is the program, OUT the archive that is replaced.
"""

import html
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from finish import finish
from pages import (
    CODE_SPAN,
    INDEX,
    LINK,
    ROOT,
    all_pages,
    headings_of,
    is_page,
    is_relative,
    lines_outside_code,
    navigation,
    resolve,
    site_path,
    tracked,
)

HERE = Path(__file__).parent
_FENCE = re.compile(r"^(?P<fence> *`{3,})(?P<language>[\w+-]*)[ \t].*$")
_PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)">\s*'
    r'<img src="(?P<light>[^"]+)" alt="(?P<alt>[^"]*)">\s*</picture>'
)
_FENCED = re.compile(r"^(?P<mark> *`{3,})[^`\n]*\n.*?^(?P=mark) *$", re.DOTALL | re.MULTILINE)
_MADE = re.compile(r"^Made by `docs/generate\.py`(?: from `[^`]+`)?\. ", re.MULTILINE)
_FILE_NAME = re.compile(r"\[(?P<name>[\w./-]+\.md)\]\((?P<target>[^)\s]+)\)")
_DECISIONS = "docs/adr/README.md"
_LISTED_IN = {"docs/adr/": _DECISIONS, "bench/results/": "bench/README.md"}
_FIRST_PART = "## "
_UNUSED = ("sitemap.xml", "sitemap.xml.gz", "objects.inv", "404.html")


class Stage:
    """The source of the site in a folder: pages with links to each other, and the files that they name.

    Args:
        folder: an empty folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self) -> None:
        """Write all pages and files.

        Raises:
            ValueError: a link leads to nothing.
        """
        for page in all_pages():
            self._write(site_path(page), self._page(page))

    def _page(self, page: str) -> str:
        text = (ROOT / page).read_text(encoding="utf-8")
        if not text.startswith("# "):
            text = f"# Figures: {Path(page).stem.replace('_', ' ')}\n\n{text}"
        # How a page is made is for those who change it.
        text = _MADE.sub("", _PICTURE.sub(self._two_pictures, text), count=1)
        text = _with_way_up(page, text)
        if page.startswith("docs/adr/") and page != _DECISIONS:
            text = f"---\nsearch:\n  exclude: true\n---\n\n{text}"
        if page == INDEX:
            text = f"{text.partition(_FIRST_PART)[0]}{cards()}"
        # What follows the language of a block is for the tests of the commands.
        lines = lines_outside_code(text)
        shown = (line if is_text else _FENCE.sub(r"\g<fence>\g<language>", line) for line, is_text in lines)
        return self._with_links(page, "\n".join(shown)) + "\n"

    @staticmethod
    def _two_pictures(picture: re.Match[str]) -> str:
        # The site has a switch of its own between light and dark.
        alt = html.unescape(picture["alt"]).replace("[", "(").replace("]", ")")
        return f"![{alt}]({picture['light']}#only-light)\n![{alt}]({picture['dark']}#only-dark)"

    def _with_links(self, page: str, text: str) -> str:
        code: list[str] = []

        def hide(span: re.Match[str]) -> str:
            # A bar in the code of a table has a backslash, which zensical would show.
            in_row = span.string[: span.start()].rpartition("\n")[2].startswith("|")
            code.append(span[0].replace(r"\|", "|") if in_row else span[0])
            return f"\0{len(code) - 1}\0"

        hidden = CODE_SPAN.sub(hide, _FENCED.sub(hide, text))
        hidden = _FILE_NAME.sub(lambda link: self._with_title(page, link), hidden)
        linked = LINK.sub(lambda link: f"]({self._target(page, link['target'])})", hidden)
        while "\0" in linked:  # a span may be in a block
            linked = re.sub("\0(\\d+)\0", lambda hidden: code[int(hidden[1])], linked)
        return linked

    @staticmethod
    def _with_title(page: str, link: re.Match[str]) -> str:
        """A link whose text is the name of a page, with the title of that page or section in its place."""
        path, _, anchor = link["target"].partition("#")
        if not is_relative(path) or not is_page(found := resolve(page, path)):
            return link[0]
        text = (ROOT / found).read_text(encoding="utf-8")
        title = headings_of(text)[anchor] if anchor else text.partition("\n")[0].removeprefix("# ")
        return f"[{title}]({link['target']})"

    def _target(self, page: str, target: str) -> str:
        if not is_relative(target):
            return target
        path, _, anchor = target.partition("#")
        found = resolve(page, path)
        if found.endswith("/"):
            self._list_folder(found)
            goal = f"files/{found}index.md"
        else:
            goal = site_path(found)
            if not is_page(found):
                self._copy(found)
        depth = site_path(page).count("/")
        return f"{'../' * depth}{goal}{'#' if anchor else ''}{anchor}"

    def _list_folder(self, folder: str) -> None:
        inside = {name: name.removeprefix(folder) for name in tracked() if name.startswith(folder)}
        names = sorted(name for name, rest in inside.items() if "/" not in rest)
        for name in names:
            self._copy(name)
        rows = "".join(f"- [{Path(name).name}]({Path(site_path(name)).name})\n" for name in names)
        self._write(f"files/{folder}index.md", f"# {folder.rstrip('/')}\n\n{rows}")

    def _copy(self, path: str) -> None:
        target = self._folder / site_path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, target)

    def _write(self, name: str, text: str) -> None:
        target = self._folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def _with_way_up(page: str, text: str) -> str:
    """A page that the navigation lacks, with a link to the page that lists it below its title."""
    index = _LISTED_IN.get(f"{Path(page).parent}/")
    if not index or page == index:
        return text
    title, _, rest = text.partition("\n")
    name = next(entry.title for entry in navigation() if entry.path == index)
    up = os.path.relpath(index, Path(page).parent)
    return f"{title}\n\n[← {name}]({up})\n{rest}"


def cards() -> str:
    """The index as groups of links, for the first page."""
    text, part = "", ""
    for key, entries in itertools.groupby(navigation(), key=lambda entry: (entry.part, entry.group)):
        if key[0] != part:
            text += f'{"</div>" if part else ""}\n\n## {key[0]}\n\n<div class="pb-cards">\n'
            part = key[0]
        links = "".join(
            f'<li><a href="{site_path(entry.path).removesuffix(".md")}.html">{html.escape(entry.title)}</a></li>'
            for entry in entries
        )
        heading = f"<p>{html.escape(key[1])}</p>" if key[1] else ""
        text += f"<div>{heading}<ul>{links}</ul></div>\n"
    return f"{text.lstrip()}</div>\n"


def navigation_toml() -> str:
    """The navigation in the form of zensical's configuration: parts, groups, pages."""
    parts = {navigation()[0].part: ['{"All pages" = "index.md"}']}
    groups: dict[tuple[str, str], list[str]] = {}
    for entry in navigation():
        item = f"{{{json.dumps(entry.title, ensure_ascii=False)} = {json.dumps(site_path(entry.path))}}}"
        if not entry.group:
            parts.setdefault(entry.part, []).append(item)
            continue
        key = (entry.part, entry.group)
        if key not in groups:
            groups[key] = []
            parts.setdefault(entry.part, []).append(f"\0{entry.group}")
        groups[key].append(item)
    rows = []
    for part, items in parts.items():
        shown = [
            f"{{{json.dumps(item[1:])} = [{', '.join(groups[part, item[1:]])}]}}" if item[0] == "\0" else item
            for item in items
        ]
        rows.append(f"  {{{json.dumps(part)} = [{', '.join(shown)}]}},\n")
    return f"nav = [\n{''.join(rows)}]\n"


def build(zensical: str, out: Path) -> None:
    """Build the site, and put its archive in place of an older one.

    Raises:
        subprocess.CalledProcessError: zensical failed.
        ValueError: a link leads to nothing.
    """
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        Stage(work / "pages").write()
        shutil.copytree(HERE / "assets", work / "pages" / "assets")
        config = (HERE / "zensical.toml").read_text(encoding="utf-8")
        (work / "zensical.toml").write_text(config.replace("# navigation\n", navigation_toml()), encoding="utf-8")
        subprocess.run([zensical, "build", "--clean", "--strict"], cwd=work, check=True)  # noqa: S603
        built = work / "site"
        for unused in [*_UNUSED, *(path.relative_to(built).as_posix() for path in built.rglob("*.map"))]:
            (built / unused).unlink(missing_ok=True)
        for page in built.rglob("*.html"):
            page.write_text(finish(page.read_text(encoding="utf-8")), encoding="utf-8")
        pack(built, out)


def pack(folder: Path, out: Path) -> None:
    """Pack a folder as an archive, the same for the same content; it replaces an older one at once."""
    fresh = out.with_name(f"{out.name}.new")
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix())
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())
    fresh.replace(out)


if __name__ == "__main__":
    build(sys.argv[1], Path(sys.argv[2]))
