"""What `render` sends beside a document, and what makes `--watch` render again."""

import os

import pytest

from proofbox.cli.render import file_times, nearby_assets
from proofbox.client.results import replacing

ROOT = "turn_1/files/"


@pytest.fixture
def sent(tmp_path):
    """The names of the files that are sent with a document, from a folder with the given files."""

    def send(text, *names, name="doc.md", contents=None, **params):
        for each in (*names, *(contents or {})):
            path = tmp_path / "documents" / each
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((contents or {}).get(each, each))
        document = tmp_path / "documents" / name
        document.parent.mkdir(exist_ok=True)
        document.write_text(text)
        return [asset["physical_path"].removeprefix(ROOT) for asset in nearby_assets(document, text, params)]

    return send


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("![](img/my%20logo.svg)", ["img/my logo.svg"]),
        ("![A [b]](<img/my logo.svg> 'Title')", ["img/my logo.svg"]),
        ('![](./a.png "Figure 1")', ["a.png"]),
        ("![](b (1).png)", ["b (1).png"]),
        ("![](img/../a.png){width=50%}", ["a.png"]),
        ("![alt][ref]\n\n[ref]: a.png", ["a.png"]),
        ("<img src='a.png'><img src=b.png>", ["a.png", "b.png"]),
        ('<img srcset="a.png 1x, b.png 2x">', ["a.png", "b.png"]),
        ('<img src="R&amp;D.png">', ["R&D.png"]),
        ('<section data-background-image="a.png">', ["a.png"]),
        ("<div style=\"background: url('a.png')\">", ["a.png"]),
        ("<style>p { background: url(a.png) }</style>", ["a.png"]),
        ("---\nlogo: img/my logo.svg\n---\n# T", ["img/my logo.svg"]),
    ],
)
def test_a_document_is_sent_with_the_files_that_it_refers_to(sent, text, names):
    files = ("a.png", "b.png", "b (1).png", "R&D.png", "img/my logo.svg", "other.svg")
    assert sent(text, *files) == names


def test_a_name_in_the_text_sends_no_file(sent):
    files = ("a", "id_rsa", "notes/key.txt", "img.png")
    assert sent("Put the key into .env, id_rsa or notes/key.txt; img.png is a picture", *files, ".env") == []


@pytest.mark.parametrize(
    "text", ["![](.env)", "![](.git/config)", "![](../secret.txt)", "![](img/../../secret.txt)", "![](out.txt)"]
)
def test_hidden_files_and_files_outside_of_the_folder_are_never_sent(sent, tmp_path, text):
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "out.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "documents" / "env.txt").symlink_to(".env")
    assert sent(text + "![](env.txt)" + f"![]({tmp_path}/secret.txt)", ".env", ".git/config") == []


def test_a_missing_file_and_a_remote_one_are_left_to_the_renderer(sent):
    assert sent(f"![](gone.png) ![](https://a.example/a.png) ![](data:a.png) ![]({'x' * 300})", "a.png") == []


def test_files_that_parameters_and_style_sheets_refer_to_are_sent(sent):
    contents = {
        "themes/house.yaml": "extends: plain\nlogo: mark.svg  # ours\n",
        "style/main.css": "@import 'more.css'; h1 { background: url(back.png) }",
    }
    files = ("themes/mark.svg", "style/more.css", "style/back.png", "template.docx", "title", "part.md", "foot.png")
    text = '<link rel="stylesheet" href="style/main.css">'
    params = {"theme": "themes/house.yaml", "title": "title", "footer": "![](foot.png)", "merge": ["part.md"]}
    assert sent(text, *files, contents=contents, name="doc.html", **params) == [
        *("foot.png", "part.md", "style/back.png", "style/main.css", "style/more.css"),
        *("themes/house.yaml", "themes/mark.svg"),
    ]


def test_a_built_in_theme_is_no_file(sent):
    assert sent("# T", "plain", theme="plain") == []


def test_a_picture_is_found_among_many_files(sent):
    assert sent("![](z.png)", *(f"many/{number}" for number in range(5_001)), "z.png") == ["z.png"]


@pytest.mark.parametrize("name", ["doc.pdf", "out/doc.pdf"])
def test_the_file_that_watch_writes_is_no_change(tmp_path, name):
    document, out = tmp_path / "doc.md", tmp_path / name
    document.write_text("# T")
    out.parent.mkdir(exist_ok=True)
    before = file_times(document, out)
    with replacing(out, "doc.pdf") as (_, file):
        file.write(b"1")
        assert file_times(document, out) == before
    assert file_times(document, out) == before
    os.utime(out.parent if out.parent != tmp_path else out, (1, 1))
    assert file_times(document, out) == before


def test_a_change_of_the_document_or_of_a_file_beside_it_is_seen(tmp_path):
    document, picture, out = tmp_path / "doc.md", tmp_path / "a.png", tmp_path / "doc.pdf"
    document.write_text("# T")
    picture.write_text("1")
    before = file_times(document, out)
    os.utime(picture, (1, 1))
    assert file_times(document, out) != before
    picture.unlink()
    assert file_times(document, out) != before
