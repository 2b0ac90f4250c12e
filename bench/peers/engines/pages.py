"""A job's document as an HTML page, for the peers that read only HTML."""

from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin
from mdit_py_plugins.tasklists import tasklists_plugin

WARM_UP = "<!DOCTYPE html><title>x</title><h1>One</h1><p>Two <em>three</em>.</p>"


def source_path(job: dict[str, Any]) -> Path:
    """The file of the document."""
    (path,) = Path(job["folder"]).glob("source.*")
    return path


def html_of(job: dict[str, Any]) -> str:
    """The document if it is HTML; Markdown as markdown-it-py renders it, GitHub's, with footnotes and terms."""
    text = source_path(job).read_text(encoding="utf-8")
    if job["source_format"] == "html":
        return text
    parser = MarkdownIt("gfm-like", {"html": True})
    for plugin in (front_matter_plugin, footnote_plugin, deflist_plugin, tasklists_plugin):
        parser.use(plugin)
    body = parser.render(text)
    head = '<head><meta charset="utf-8"><title>x</title></head>'
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n<body>\n{body}</body>\n</html>\n'


def page_file(job: dict[str, Any], name: str = "page.html") -> Path:
    """Writes the page beside the files that the document names, so that relative paths lead to them."""
    path = Path(job["folder"], "turn_1", "files", name)
    path.write_text(html_of(job), encoding="utf-8")
    return path
