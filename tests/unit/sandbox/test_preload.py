"""Which libraries a sandbox should have in memory, from the program that it is to run."""

import pytest

from proofbox.service.sandbox.preload import PREIMPORTED, PreloadSet, flavour_of

BARE, DOCUMENTS, DATA, SCIENCE = PreloadSet.BARE, PreloadSet.DOCUMENTS, PreloadSet.DATA, PreloadSet.SCIENCE


@pytest.mark.parametrize(
    ("code", "flavour"),
    [
        ("print(1)", BARE),
        ("import json, os", BARE),
        ("import pandas as pd", DATA),
        ("import numpy", DATA),
        ("from matplotlib import pyplot as plt", DATA),
        ("import matplotlib.pyplot as plt", DATA),
        ("import os, sys, openpyxl", DATA),
        ("import os, \\\n    pandas as pd", DATA),
        ("from pandas import (\n    DataFrame,\n)", DATA),
        ("def draw():\n\timport matplotlib\n", DATA),
        ("try: import numpy\nexcept ImportError: pass", DATA),
        ("x = 1; import numpy", DATA),
        ("import numpy\r\nprint(1)\r\n", DATA),
        ("import seaborn as sns", SCIENCE),
        ("from scipy import stats", SCIENCE),
        ("import pandas as pd\nfrom sklearn.linear_model import LinearRegression", SCIENCE),
        ("import statsmodels.api as sm", SCIENCE),
        ("import weasyprint", DOCUMENTS),
        ("from docx import Document", DOCUMENTS),
        ("from docx.shared import Pt", DOCUMENTS),
        ("import pptx.util", DOCUMENTS),
        ("class Box[T]:\n    import numpy  # of a newer Python than this one\n", DATA),
    ],
)
def test_a_program_gets_the_libraries_that_it_imports(code, flavour):
    assert flavour_of("python", code.encode()) == flavour


@pytest.mark.parametrize(
    ("code", "flavour"),
    [
        ("import docx\nimport matplotlib.pyplot", DATA),
        ("import weasyprint, numpy", DOCUMENTS),
        ("import docx, numpy", DOCUMENTS),
        ("import pptx, pandas", DATA),
        ("import weasyprint, scipy", SCIENCE),
    ],
)
def test_of_two_flavours_the_one_that_spares_more_time_serves(code, flavour):
    assert flavour_of("python", code.encode()) == flavour


@pytest.mark.parametrize(
    "code",
    [
        "# import pandas",
        "print('import pandas')",
        "important = 1",
        "import pandas_like, my.numpy",
        "from numpyx import numpy",
        "from . import numpy",
        "raise ValueError from numpy",
        "",
    ],
)
def test_what_only_looks_like_an_import_of_a_library_asks_for_none(code):
    assert flavour_of("python", code.encode()) == BARE


@pytest.mark.parametrize(
    "line",
    [
        "os.environ['MPLBACKEND'] = 'svg'",
        "os.environ['MATPLOTLIBRC'] = '/out'",
        "open('matplotlibrc', 'w').write('lines.linewidth: 9')",
        "os.environ.setdefault('OMP_NUM_THREADS', '1')",
        "os.environ['OPENBLAS_NUM_THREADS'] = '1'",
        "os.environ.update(NPY_DISABLE_CPU_FEATURES='AVX2')",
        "os.environ['SCIPY_ARRAY_API'] = '1'",
        "os.environ.update(PANDAS_COPY_ON_WRITE='0')",
        "sys.path.insert(0, 'turn_1/files')",
        "sys.modules['pandas'] = None",
    ],
)
def test_a_program_that_may_change_how_libraries_load_loads_them_itself(line):
    assert flavour_of("python", f"import os, sys\n{line}\nimport pandas\n".encode()) == BARE


def test_names_of_a_programs_own_that_resemble_such_variables_change_nothing():
    code = b"import pandas\npandas_df = comp_x = 1\nCOMP_X = pandas_df\n"
    assert flavour_of("python", code) == DATA


def test_the_language_decides_before_the_code():
    code = b"import pandas"
    assert [flavour_of(language, code) for language in ("bash", "render", "page_text")] == [BARE, DOCUMENTS, BARE]


def test_a_very_long_program_is_not_scanned():
    code = b"import pandas\n" + b"x = 1\n" * 20_000
    assert [flavour_of("python", code), flavour_of("python", code + b"#" * 64 * 1024)] == [DATA, BARE]


@pytest.mark.parametrize(
    "code",
    [
        b"\xff\xfeimport pandas",
        b"import " * 10_000,
        b"import " + b"a." * 50_000,
        b":import \\\n" * 10_000,
        b"\0" * 9999,
    ],
    ids=["no UTF-8", "imports", "dots", "continued", "zeros"],
)
def test_no_code_makes_choosing_fail(code):
    assert flavour_of("python", code) in PreloadSet


def test_bare_imports_nothing_and_every_other_flavour_something():
    assert {flavour: bool(modules) for flavour, modules in PREIMPORTED.items()} == {
        flavour: flavour is not BARE for flavour in PreloadSet
    }
