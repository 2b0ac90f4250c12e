"""Files of the user: by path, by another name, from standard input, and those that cannot be used."""

import subprocess
import sys

import pytest

from proofbox.cli import main
from proofbox.cli.shared.exit_codes import CommandError
from proofbox.cli.shared.inputs import StandardInput, parse_inputs


def test_names_with_spaces_and_signs_are_files_of_their_own(tmp_path):
    for name in ("my data.csv", "a=b.csv", "c.csv"):
        (tmp_path / name).write_text(name)
    given = [str(tmp_path / "my data.csv"), str(tmp_path / "a=b.csv"), f"other name.csv={tmp_path / 'c.csv'}"]
    assert parse_inputs(given, StandardInput()) == {
        "my data.csv": tmp_path / "my data.csv",
        "a=b.csv": tmp_path / "a=b.csv",
        "other name.csv": tmp_path / "c.csv",
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["{}/gone.csv"], "gone.csv: no such file"),
        (["{}"], "this is a folder, not a file"),
        (["x={}/gone.csv"], "gone.csv: no such file"),
        (["{}/a.csv", "a.csv={}/b.csv"], "two files have the name 'a.csv'"),
        (["-"], "'-' names no file"),
        (["../x={}/a.csv"], "names no file"),
    ],
)
def test_a_file_that_cannot_be_sent_is_refused(tmp_path, values, message):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("1")
    with pytest.raises(CommandError) as raised:
        parse_inputs([value.replace("{}", str(tmp_path)) for value in values], StandardInput())
    assert message in raised.value.message
    assert raised.value.field == "--in"


def test_standard_input_has_one_reader(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "proofbox.cli", "run", "-", "--in", "a.csv=-", "--local"],
        input="print(1)",
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "proofbox: CODE: standard input is used by --in already\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["run", "nope.py"], "proofbox: nope.py: no such file\n"),
        (["run", "latin.py"], "proofbox: CODE: latin.py: not UTF-8 text (byte 1)\n"),
        (
            ["run", "a.rb"],
            "proofbox: a.rb: the language is not known by its name (.py, .sh, .js); give --language\n",
        ),
        (["run", "a.py", "--in", "gone.csv"], "proofbox: --in: gone.csv: no such file\n"),
        (
            ["run", "a.py", "--detach", "--local"],
            "proofbox: --detach needs a service; give --url, or run without it\n",
        ),
        (["render", "nope.md", "a.pdf"], "proofbox: IN: nope.md: no such file\n"),
        (
            ["render", "a.md", "a.odt"],
            (
                "proofbox: a.odt: the extension is not a format that can be rendered "
                "(.pdf, .docx, .pptx, .png, .xlsx)\n"
            ),
        ),
        (["call", "react.read", "{"], "proofbox: PARAMS: not JSON: "),
        (["files", "put", "c", "gone.csv"], "proofbox: FILE: gone.csv: no such file\n"),
    ],
)
def test_what_is_wrong_on_this_machine_is_found_before_a_service_is_used(
    tmp_path, monkeypatch, capsys, arguments, error
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("print(1)")
    (tmp_path / "a.md").write_text("# T")
    (tmp_path / "latin.py").write_bytes(b"#\xe9\n")
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(error)
    assert (printed.out, printed.err.count("\n")) == ("", 1)
