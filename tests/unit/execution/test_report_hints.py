"""What a report says to a program that met a missing file, library or command."""

import time

import pytest

from proofbox.contracts.artifacts import Contract, no_promises, parse_contract
from proofbox.contracts.codes import RuntimeCode, VerdictCode
from proofbox.contracts.tools import Language
from proofbox.service.execution.report_hints import RanProgram, build_hints, names_missing_library, run_hints
from proofbox.service.jobs.failures import RuntimeFailure
from proofbox.service.jobs.runner import JobResult
from proofbox.service.jobs.verdicts import Verdict
from proofbox.service.sandbox.port import OutputPiece, ProcessOutcome

KNOWN = ["turn_2/files/sales.csv", "turn_1/files/helper.py", "turn_1/attachments/a.docx"]
LIBRARIES = {"numpy": "2.5.5", "scikit-learn": "1.9.1", "PyYAML": "6.0"}
NO_FILE = "[Errno 2] No such file or directory: 'sales2.csv'"
CLOSE = "sales2.csv does not exist; the conversation has files/sales.csv"
FFMPEG = "the command ffmpeg is not installed; without a network nothing can be installed"
FAILED = RuntimeFailure(RuntimeCode.NONZERO_EXIT, "exit status 1")
PROMISED = parse_contract([{"filename": "out.csv", "description": "the result"}], "turn_2")


def result_of(stdout: str = "", stderr: str = "", failure: RuntimeFailure | None = None) -> JobResult:
    pieces = (OutputPiece("stdout", stdout.encode()), OutputPiece("stderr", stderr.encode()))
    return JobResult(outcome=ProcessOutcome(output=pieces), failure=failure)


def verdicts_of(code: VerdictCode, contract: Contract = PROMISED) -> list[Verdict]:
    return [Verdict(promise.path, promise, code, None, "text/csv", None) for promise in contract.promises]


def hints_of(
    result: JobResult,
    code: VerdictCode = VerdictCode.MISSING_FILE,
    contract: Contract = PROMISED,
    language: Language = Language.PYTHON,
    **more: bool,
) -> list[str]:
    verdicts = verdicts_of(code, contract)
    return run_hints(RanProgram("", language, "turn_2", contract, result, verdicts, KNOWN, LIBRARIES, **more))


@pytest.mark.parametrize(
    ("result", "code", "contract"),
    [
        (result_of(f"Error: {NO_FILE}\n"), VerdictCode.MISSING_FILE, PROMISED),
        (result_of(f"Error: {NO_FILE}\n", failure=FAILED), VerdictCode.PRODUCED, PROMISED),
        (result_of(f"Error: {NO_FILE}\n"), VerdictCode.PRODUCED, no_promises("turn_2")),
        (result_of(f"Error: {NO_FILE}\n", f"{NO_FILE}\n"), VerdictCode.MISSING_FILE, PROMISED),
    ],
)
def test_an_error_that_a_program_caught_and_printed_gets_its_hint_once(result, code, contract):
    assert hints_of(result, code, contract) == [CLOSE]


def test_what_a_run_printed_that_kept_its_promises_is_not_read():
    result = result_of(f"Error: {NO_FILE}\n")
    assert hints_of(result, VerdictCode.PRODUCED) == []


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("failed HTTPSConnectionPool(…): (Caused by NameResolutionError(…))", Language.PYTHON),
        ("failed <urlopen error [Errno -3] Temporary failure in name resolution>", Language.PYTHON),
        ("curl: (6) Could not resolve host: example.com", Language.BASH),
        ("failed fetch failed", Language.NODE),
    ],
)
def test_a_program_that_goes_on_without_a_network_is_told_that_there_is_none(text, language):
    [hint] = hints_of(result_of(text), VerdictCode.PRODUCED, language=language)
    assert hint.startswith("the sandbox has no network")
    assert hints_of(result_of(text), VerdictCode.PRODUCED, language=language, has_network=True) == []


def test_a_program_that_reads_of_networks_is_told_nothing():
    log = "kernel: Network is unreachable\nfetch failed: Temporary failure in name resolution"
    assert hints_of(result_of(log), VerdictCode.PRODUCED) == []


def test_a_library_that_a_program_found_missing_and_printed_is_one():
    result = result_of("No module named 'torch'\n")
    assert names_missing_library(PROMISED, result, verdicts_of(VerdictCode.MISSING_FILE))
    assert not names_missing_library(PROMISED, result, verdicts_of(VerdictCode.PRODUCED))
    [hint] = hints_of(result)
    assert hint.startswith("the library torch is not installed; use sklearn")


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        ("sklearn.externals", "sklearn.externals is not a module of scikit-learn 1.9.1"),
        ("yaml.odd", "yaml.odd is not a module of PyYAML 6.0"),
        ("os.paths", "os.paths is not a module of Python in the sandbox"),
        (
            "helper",
            (
                "the conversation has turn_1/files/helper.py; "
                "before the import write sys.path.insert(0, 'turn_1/files')"
            ),
        ),
        (
            "tools.io",
            "the conversation has files/tools/io.py; before the import write sys.path.insert(0, 'files')",
        ),
    ],
)
def test_a_module_that_cannot_be_imported_is_said_to_be_what_it_is(module, hint):
    known = [*KNOWN, "turn_2/files/tools/io.py"]
    assert build_hints(f"ModuleNotFoundError: No module named '{module}'", known, LIBRARIES, "turn_2") == [hint]


def test_a_library_that_is_not_there_is_named_with_the_way_to_see_those_that_are():
    text = "No module named 'h5py'\nNo module named 'tables'"
    *named, listed = build_hints(text, KNOWN, LIBRARIES)
    assert named == ["the library h5py is not installed", "the library tables is not installed"]
    assert listed == "importlib.metadata.distributions() names what is installed"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("pip list | grep -i pdf", "/job/main.sh: line 1: pip: command not found"),
        ("subprocess.run([sys.executable, '-m', 'pip', 'freeze'])", "/usr/bin/python3: No module named pip"),
    ],
)
def test_a_program_that_asks_what_is_installed_gets_the_list(code, text):
    ran = RanProgram(code, Language.PYTHON, "turn_2", no_promises("turn_2"), result_of(text), [], KNOWN, LIBRARIES)
    assert run_hints(ran) == ["installed are numpy, scikit-learn and 1 more"]


@pytest.mark.parametrize(
    ("text", "has_index", "hint"),
    [
        ("No module named 'PyPDF2'", False, "the library PyPDF2 is not installed; use pypdf"),
        (
            "No module named 'polars'",
            True,
            ('the library polars is not installed; use pandas, or duckdb; call again with packages: ["polars"]'),
        ),
        ("No module named 'h5py'", True, 'the library h5py is not installed; call again with packages: ["h5py"]'),
        ("No module named 'pip'", False, "nothing can be installed while a program runs"),
        (
            'Image export using the "kaleido" engine requires the Kaleido package,',
            True,
            (
                "the library kaleido is not installed; use matplotlib for pictures; fig.write_html for pages of "
                "plotly"
            ),
        ),
        (
            "/job/main.sh: line 1: soffice: command not found",
            False,
            "the command soffice is not installed; use the rendering tools, rendering_tools.write_pdf and others",
        ),
    ],
)
def test_what_is_missing_is_named_with_what_does_the_same(text, has_index, hint):
    assert build_hints(text, KNOWN, LIBRARIES, has_index=has_index) == [hint]


def test_the_name_of_a_style_is_no_file():
    text = (
        "FileNotFoundError: [Errno 2] No such file or directory: 'seaborn-whitegrid'\n"
        "OSError: 'seaborn-whitegrid' is not a valid package style, path of style file, URL of style file"
    )
    assert build_hints(text, KNOWN, LIBRARIES) == []


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "FileNotFoundError: sales.csv not found.",
            "sales.csv does not exist; the conversation has files/sales.csv",
        ),
        (
            "FileNotFoundError: files/sales.csv not found.",
            "the program's folder has no files/sales.csv; write /mnt/data/files/sales.csv",
        ),
        (
            "FileNotFoundError: data/sales.csv",
            "data/sales.csv does not exist; the conversation has files/sales.csv",
        ),
        (
            (
                "FileNotFoundError: [Errno 2] Failed to open local file 'sales.csv'. "
                "Detail: [errno 2] No such file or directory"
            ),
            "sales.csv does not exist; the conversation has files/sales.csv",
        ),
        (
            "docx.opc.exceptions.PackageNotFoundError: Package not found at 'a.docx'",
            "a.docx does not exist; the conversation has turn_1/attachments/a.docx",
        ),
        (
            "OSError: Cannot save file into a non-existent directory: 'outputs'",
            "the folder outputs does not exist; write results to files/<name>",
        ),
        (
            "sqlite3.OperationalError: unable to open database file",
            "the folder of the database does not exist or is read-only; open a copy in files/ or in /tmp",
        ),
        (
            "ImportError: Missing optional dependency 'pyxlsb'. Use pip or conda to install pyxlsb.",
            "the library pyxlsb is not installed",
        ),
        (
            "I/O Error: Couldn't open file 'A.docx': No such file or directory.",
            "A.docx does not exist; the conversation has turn_1/attachments/a.docx",
        ),
        (
            "sed: can't read data/sales.csv: No such file or directory",
            "data/sales.csv does not exist; the conversation has files/sales.csv",
        ),
        (
            "jq: error: Could not open file sales2.csv: No such file or directory",
            CLOSE,
        ),
        (
            "python3: can't open file '/out/turn_2/files/help.py': [Errno 2] No such file or directory",
            "/out/turn_2/files/help.py does not exist; the conversation has turn_1/files/helper.py",
        ),
        ("tar: sales2.csv: Cannot open: No such file or directory", CLOSE),
        ("unzip:  cannot find or open sales2.csv, sales2.csv.zip or sales2.csv.ZIP.", CLOSE),
        ("/job/main.sh: line 1: ffmpeg: command not found", FFMPEG),
        ("sh: 1: ffmpeg: not found", FFMPEG),
        ("Error: spawn ffmpeg ENOENT", FFMPEG),
        (
            (
                'Traceback (most recent call last):\n  File "subprocess.py", line 1972, in _execute_child\n'
                "FileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'"
            ),
            FFMPEG,
        ),
    ],
)
def test_each_library_and_shell_has_its_own_words_for_what_is_missing(text, hint):
    assert build_hints(text, KNOWN, None, "turn_2") == [hint]


def test_a_folder_that_is_missing_is_no_command():
    text = "Traceback (most recent call last):\nFileNotFoundError: [Errno 2] No such file or directory: 'data'"
    assert build_hints(text, [], None) == ["data does not exist; the conversation has no files yet"]


def test_an_error_without_its_place_may_be_of_a_command():
    [hint] = build_hints("[Errno 2] No such file or directory: 'ffmpeg'", [], None)
    assert hint.endswith("a command ffmpeg is not installed either")


@pytest.mark.parametrize(
    "part", ["a: ", "FileNotFoundError: a", "x", "sh: 1: a", "spawn ", "'", ": ", "cannot open "]
)
def test_hints_on_long_output_take_bounded_time(part):
    began = time.process_time()
    build_hints(part * (1_000_000 // len(part)), KNOWN, LIBRARIES, "turn_2")
    assert time.process_time() - began < 20  # quadratic time would be hours


def test_a_missing_file_of_a_run_without_an_error_gets_the_place_where_it_belongs():
    assert hints_of(result_of("done\n")) == ["out.csv was not written; write it to files/out.csv"]
    assert hints_of(result_of("ValueError: a\n", failure=FAILED)) == []
    assert hints_of(result_of("done\n"), VerdictCode.EMPTY_FILE) == []
