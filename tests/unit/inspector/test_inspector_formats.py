import json
import subprocess
import sys

import pytest
from inspector_run import INSPECTOR


def tell(expression: str):
    """Evaluate an expression beside the table of formats, in an interpreter that has nothing else."""
    program = f"import sys, json; sys.path.insert(0, sys.argv[1]); import formats; print(json.dumps({expression}))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(INSPECTOR)], capture_output=True, check=True, text=True
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def extensions():
    paths = [
        "a.PDF",
        "x/a.tar.gz",
        "x.tar/a.gz",
        "a.b.csv",
        "tar.gz",
        ".csv",
        "README",
        "a.",
        "a.tar.gz.txt",
        "x.y/z",
    ]
    return tell(f"{{path: formats.extension_of(path) for path in {paths!r}}}")


def test_the_longest_known_extension_counts(extensions):
    assert extensions == {
        "a.PDF": "pdf",
        "x/a.tar.gz": "tar.gz",
        "x.tar/a.gz": "gz",
        "a.b.csv": "csv",
        "tar.gz": "gz",
        ".csv": "",
        "README": "",
        "a.": "",
        "a.tar.gz.txt": "txt",
        "x.y/z": "",
    }


def test_every_family_has_its_module_and_its_checks():
    families = tell("sorted({f.family for f in [*formats.FORMATS.values(), formats.OCTET_STREAM]})")
    assert families == sorted(tell("sorted(formats.CHECKS_BY_FAMILY)"))
    modules = [INSPECTOR / "families" / f"{name.replace('.', '/')}.py" for name in families]
    assert [module for module in modules if not module.is_file()] == []


def test_every_alias_leads_to_a_media_type_of_the_table():
    assert tell("sorted(set(formats.MIME_ALIASES.values()) - {f.mime for f in formats.FORMATS.values()})") == []


def test_no_alias_is_itself_a_media_type_of_the_table():
    assert tell("sorted(set(formats.MIME_ALIASES) & {f.mime for f in formats.FORMATS.values()})") == []


def test_the_table_imports_nothing_of_the_inspector():
    assert tell("sorted({'model', 'families', 'judge', 'magic_bytes', 'lxml', 'PIL'} & set(sys.modules))") == []


def test_the_protocol_knows_which_formats_take_a_library():
    program = (
        "import sys; sys.path[:0] = sys.argv[1:]; import formats, subprocess_judge as judges\n"
        "from runner_protocol import file_kinds\n"
        "print([name for name, told in formats.FORMATS.items() "
        "if file_kinds.needs_library(f'a.b/x.{name.upper()}') is (told.family in judges._PLAIN_FAMILIES)], "
        "file_kinds.needs_library('notes'))"
    )
    command = [sys.executable, "-I", "-c", program, str(INSPECTOR), str(INSPECTOR.parent)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[] False"
