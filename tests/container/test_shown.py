"""What a program shows is stored, the value of its last line is reported, and notebooks' habits run."""

import asyncio
import io
from collections.abc import Sequence

import pytest
from PIL import Image

from proofbox.contracts.logical_paths import parse
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.contracts.tools import Language
from proofbox.service.artifacts.path_resolver import PathContent
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

PLT = "import matplotlib.pyplot as plt\n"
NO_TEXT = "whose text cannot be had"
PLOTLY = "import plotly.graph_objects as go\nfig = go.Figure(go.Bar(x=['a'], y=[1]))\n"


def shown(response: ToolCallResponse) -> list[str]:
    return [file.physical_path.removeprefix("turn_1/files/") for file in response.shown]


async def explore(call: Caller, code: str, **fields: object) -> ToolCallResponse:
    return await call(code, explore=True, **fields)


async def pictures(call: Caller, names: Sequence[str]) -> list[Image.Image]:
    opened = []
    for name in names:
        content = await call.stored(f"turn_1/files/{name}")
        assert content is not None
        opened.append(Image.open(io.BytesIO(content)).convert("RGB"))
    return opened


@pytest.mark.parametrize(
    "code",
    [
        PLT + "plt.hist([1, 2, 2]); plt.show()",
        PLT + "fig, ax = plt.subplots(); ax.plot([1, 2]); fig.show()",
        PLT + "plt.plot([1, 2])\n",
        "import pandas as pd\npd.DataFrame({'a': [1, 2]}).plot()\nprint(1)",
        "import pandas as pd\npd.Series([1, 2]).plot(kind='bar');",
        "import seaborn as sns\nsns.lineplot(x=[1, 2], y=[3, 4])",
        "from sympy import *\nx = symbols('x')\nplot(sin(x))",
        "from PIL import Image\nImage.new('RGB', (40, 30), 'red').show()",
        "from PIL import Image\nImage.new('CMYK', (40, 30))",
        "from matplotlib.figure import Figure\nfig = Figure()\nfig.subplots().plot([1, 2])\nfig",
        "from IPython.display import display\n" + PLT + "fig, ax = plt.subplots()\nax.plot([1, 2])\ndisplay(fig)",
        "from pylab import *\nplot([1, 2])\nshow()",
        "import seaborn.objects as so\nso.Plot(x=[1, 2], y=[3, 4]).add(so.Line())",
        PLT + "plt.plot([1, 2])\nraise SystemExit(0)",
        PLT + "def main():\n    plt.plot([1, 2])\nif __name__ == '__main__':\n    main()",
    ],
)
async def test_a_picture_that_is_shown_or_left_open_is_stored(call: Caller, code: str) -> None:
    response = await explore(call, code)
    assert (response.ok, shown(response)) == (True, ["shown_1.png"]), response.report
    assert "\nShown: turn_1/files/shown_1.png" in response.report
    assert "Files written" not in response.report
    [picture] = await pictures(call, ["shown_1.png"])
    assert min(picture.size) >= 30


async def test_a_figure_that_is_left_open_by_a_program_that_fails_is_stored(call: Caller) -> None:
    response = await explore(call, PLT + "plt.plot([1, 2])\n1 / 0")
    assert (response.ok, shown(response)) == (False, ["shown_1.png"])


@pytest.mark.parametrize(
    "code",
    [
        PLOTLY + "fig.show()",
        PLOTLY + "fig",
        PLOTLY + "import plotly.io as pio\npio.show(fig)",
        "import plotly.express as px\npx.line(x=[1, 2], y=[1, 2]).show()",
        "from IPython.display import display, HTML\ndisplay(HTML('<b>ü</b>'))",
        "import pandas as pd\npd.DataFrame({'a': [1]}).style.highlight_max()",
    ],
)
async def test_a_page_that_is_shown_is_stored(call: Caller, code: str) -> None:
    response = await explore(call, code)
    assert (response.ok, shown(response)) == (True, ["shown_1.html"]), response.report
    assert "<html" in (await call.text("shown_1.html"))[:2000]


@pytest.mark.parametrize(
    "code",
    [
        PLT + "plt.plot([1, 2]); plt.savefig('mine.png')",
        PLT + "plt.plot([1, 2]); plt.savefig('mine.png'); plt.show()",
        PLT + "plt.plot([1, 2]); plt.savefig('mine.pdf'); plt.show()",
        PLT + "plt.plot([1, 2]); plt.savefig('mine.svg', dpi=300, transparent=True)",
        PLT + "from matplotlib.backends.backend_pdf import PdfPages\n"
        "with PdfPages('mine.pdf') as pdf:\n    plt.plot([1, 2]); pdf.savefig()",
        PLT + "fig, ax = plt.subplots(); ax.plot([1]); fig.savefig('mine.png', bbox_inches='tight'); fig.show()",
        PLT + "from io import BytesIO\nplt.plot([1, 2]); plt.savefig(BytesIO())\nopen('mine.png', 'w').write('x');",
        PLT + "plt.plot([1, 2]); plt.savefig('mine.png'); plt.clf(); plt.close('all')",
        PLT + "fig, ax = plt.subplots()\nopen('mine.png', 'w').write('x');",
        PLT + "plt.plot([1, 2]); plt.close()\nopen('mine.png', 'w').write('x');",
    ],
)
async def test_a_figure_that_is_saved_closed_or_empty_is_not_stored_again(call: Caller, code: str) -> None:
    response = await explore(call, code)
    assert (response.ok, shown(response)) == (True, []), response.report
    assert "Shown:" not in response.report
    assert [file.physical_path[:18] for file in response.artifacts] == ["turn_1/files/mine."]


async def test_each_show_begins_a_new_figure_and_a_shown_one_can_be_saved_still(call: Caller) -> None:
    code = PLT + (
        "plt.figure(figsize=(2, 2), facecolor='red'); plt.plot([1, 2]); plt.show()\n"
        "plt.gcf().savefig('after.png')\n"
        "plt.plot([2, 1]); print(len(plt.gca().lines)); plt.show(); plt.show()\n"
    )
    response = await explore(call, code)
    assert (response.output.combined, shown(response)) == ("1\n", ["shown_1.png", "shown_2.png"])
    first, second, after = await pictures(call, ["shown_1.png", "shown_2.png", "after.png"])
    assert [picture.getpixel((1, 1)) for picture in (first, second, after)] == [
        (255, 0, 0),
        (255, 255, 255),
        (255, 0, 0),
    ]


async def test_a_figure_that_goes_on_after_it_was_saved_is_shown(call: Caller) -> None:
    code = PLT + "plt.plot([1]); plt.savefig('mine.png', dpi=300); plt.title('more'); plt.show()"
    assert shown(await explore(call, code)) == ["shown_1.png"]


async def test_warnings_and_tracebacks_of_drawing_name_the_program_alone(call: Caller) -> None:
    code = PLT + r"plt.title('\ue000')" + "\nplt.savefig('files/a.png', dpi=50)\nplt.figure(figsize='x')"
    response = await explore(call, code)
    assert "/job/main.py:3: UserWarning: Glyph" in response.output.stderr
    assert "/opt/proofbox/runner" not in response.output.stderr


async def test_names_of_files_that_are_there_are_not_taken(call: Caller) -> None:
    await call(PLT + "plt.plot([1, 2]); plt.show()")
    response = await explore(call, PLT + "open('files/shown_2.png', 'w').write('x')\nplt.plot([2, 1]); plt.show()")
    assert shown(response) == ["shown_3.png"]
    assert await call.text("shown_2.png") == "x"


async def test_pictures_of_calls_side_by_side_are_all_there(call: Caller) -> None:
    code = PLT + "import time\nplt.figure(figsize=(%d, 1)); plt.plot([1, 2]); time.sleep(1); plt.show()"
    responses = await asyncio.gather(*(explore(call, code % width) for width in (2, 4, 6)))
    names = [name for response in responses for name in shown(response)]
    assert sorted(names) == ["shown_1.png", "shown_2.png", "shown_3.png"]
    narrow, middle, wide = await pictures(call, names)
    assert narrow.width < middle.width < wide.width


CHILD = (
    f"import subprocess, sys\nopen('p.py', 'w').write({PLT!r} + %r)\n"
    "subprocess.run([sys.executable, 'p.py'], check=True)"
)


@pytest.mark.parametrize(
    ("language", "code"),
    [
        (Language.PYTHON, CHILD % "plt.plot([1, 2]); plt.show()"),
        (Language.PYTHON, CHILD % "plt.plot([1, 2])"),
        (Language.PYTHON, (CHILD % "plt.plot([1, 2])").replace("check", "env={}, check")),
        (
            Language.PYTHON,
            "open('shown.py', 'w').write('')\n" + CHILD % "import shown; plt.plot([shown.__name__], [1])",
        ),
        (
            Language.BASH,
            f"mkdir -p app; cat >app/run.py <<E\n{PLT}plt.plot([1, 2]); plt.show()\nE\ncd app && python run.py",
        ),
        (Language.BASH, f"python3 - <<E\n{PLT}plt.plot([1, 2])\nE"),
        (Language.BASH, "python3 -c \"from PIL import Image; Image.new('L', (40, 30)).show()\""),
        (
            Language.NODE,
            "require('child_process').execSync(`python3 -c 'from pylab import *; plot([1, 2]); show()'`)",
        ),
    ],
)
async def test_what_a_program_shows_that_the_program_starts_is_stored(
    call: Caller, language: Language, code: str
) -> None:
    response = await explore(call, code, language=language)
    assert (response.ok, response.output.combined, shown(response)) == (True, "", ["shown_1.png"]), response.report


async def test_what_is_shown_is_bounded_in_number(call: Caller) -> None:
    response = await explore(call, PLT + "for n in range(25):\n    plt.plot([1, n]); plt.show()")
    assert len(response.shown) == 20
    show = "plt.plot([1, n]); plt.show()"
    parts = (
        f"{PLT}import os\nfor n in range(25):\n    if not os.fork():\n        {show}; os._exit(0)\n    os.wait()"
    )
    assert shown(await explore(call, parts))[-1] == "shown_40.png"
    assert "Note: only the first 20 things that the program shows are stored" in response.report


async def test_what_is_shown_counts_before_other_files_and_when_the_program_is_killed(call: Caller) -> None:
    code = PLT + (
        "for n in range(60): open(f'files/a{n:02}.txt', 'w').write('x')\n"
        "plt.plot([1, 2]); plt.show()\nimport os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert shown(await explore(call, code)) == ["shown_1.png"]


@pytest.mark.parametrize(
    ("code", "promised", "hint"),
    [
        (PLT + "plt.plot([1, 2]); plt.show()", "chart.png", "plt.savefig('files/chart.png')"),
        (PLOTLY + "fig.show()", "c.html", "fig.write_html('files/c.html')"),
        (PLOTLY + "fig.show()", "c.png", "savefig"),
    ],
)
async def test_the_hint_on_a_promised_picture_that_was_only_shown_says_how_to_save_it(
    call: Caller, code: str, promised: str, hint: str
) -> None:
    response = await call(code, [promised])
    [line] = [line for line in response.report.splitlines() if line.startswith("Hint: ")]
    assert (response.ok, hint in line) == (False, True), response.report


# ---- the value of the last line ----


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("5 * 6", "30"),
        ("print(1)\n'a' + 'b'", "'ab'"),
        ("x = [1, (2,), {'a': {3}}]\nx", "[1, (2,), {'a': {3}}]"),
        ("x = []\nx.append(x)\nx", "[...]"),
        ("False", "False"),
        ("(n for n in 'ab').__next__()", "'a'"),
        ("import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})", "   a  b\n0  1  x\n1  2  y"),
        ("import pandas as pd\npd.Series([1.5], name='s')", "0    1.5\nName: s, dtype: float64"),
        ("import numpy as np\nnp.arange(3)", "array([0, 1, 2])"),
        ("class A:\n    def __repr__(self): raise KeyError(5)\nA()", f"<__main__.A, {NO_TEXT}: KeyError: 5>"),
        ("import asyncio\nasync def f(): return 7\nawait f()", "7"),
        ("f = lambda: 1\nf", "<function <lambda>>"),
        ("x = 1\n'hello'", "'hello'"),
        ("x = 1\n'''of two\nlines'''", "'of two\\nlines'"),
    ],
)  # fmt: skip
async def test_the_value_of_the_last_line_is_reported(call: Caller, code: str, value: str) -> None:
    response = await explore(call, code)
    line = f"Last value:\n{value}" if "\n" in value else f"Last value: {value}"
    assert (response.ok, response.last_value, line in response.report) == (True, value, True), response.report
    assert value not in response.output.stdout or value == "1"


@pytest.mark.parametrize(
    "code",
    [
        "print(5)",
        "x = 5",
        "[].append(1)",
        "'''text'''",
        "...",
        "import sys\nsys.exit(print(1))",
        "def main(): return 5\nif __name__ == '__main__':\n    main()",
        "None",
        "print(1); x = 2",
    ],
)
async def test_a_program_whose_last_line_has_no_value_reports_none(call: Caller, code: str) -> None:
    response = await explore(call, code)
    assert (response.ok, response.last_value, "Last value" in response.report) == (True, None, False)


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("list(range(3_000_000))", "2999000 more]"),
        ("'x' * 200_000_000", "199992200 more"),
        ("10 ** 2_000_000", "<int of 6643857 bits>"),
        ("class A:\n    def __repr__(self): return 'x' * 10**10\nA()", "more than"),
        ("class A:\n    def __repr__(self):\n        while True: pass\nA()", "takes more than 2 s>"),
        (
            "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: list\nA([10**15] * 20_000_000)",
            "more than",
        ),
        ("import numpy as np, pandas as pd\npd.DataFrame(np.zeros((500_000, 3)))", "[500000 rows x 3 columns]"),
        ("{n: 'x' * 100 for n in range(500)}", "more}"),
        ("chr(0xD800)", "'\\ud800'"),
        ("class A:\n    def __repr__(self): return '\\ud800'\nA()", "?"),
    ],
)
async def test_a_huge_value_costs_neither_the_run_nor_the_report(call: Caller, code: str, part: str) -> None:
    response = await explore(call, code)
    assert response.last_value is not None
    assert (response.ok, part in response.last_value, len(response.last_value) <= 9_000) == (True, True, True)
    assert len(response.report) < 9_000


async def test_the_last_line_is_evaluated_once_and_leaves_no_name(call: Caller) -> None:
    code = (
        "import atexit\natexit.register(lambda: print([n for n in globals() if 'last' in n]))\n"
        "def f(): print('once'); return 1\nf()"
    )
    response = await explore(call, code)
    assert (response.output.combined, response.last_value) == ("once\n[]\n", "1")


# ---- display, magics, await ----


async def test_display_prints_what_is_no_picture(call: Caller) -> None:
    code = "import pandas as pd\ndisplay(pd.DataFrame({'a': [1]}), [1, 'x'])\ndisplay('text')"
    response = await explore(call, code)
    assert (response.output.combined, response.shown) == ("   a\n0  1\n[1, 'x']\ntext\n", [])


async def test_a_program_has_no_name_display_that_it_does_not_use(call: Caller) -> None:
    response = await explore(call, "import builtins\nprint([n for n in dir(builtins) if n.startswith('dis')])")
    assert response.output.combined == "[]\n"


@pytest.mark.parametrize(
    "head",
    [
        "%matplotlib inline",
        "%%time",
        "%load_ext autoreload\n%autoreload 2",
        "!pip install -q pandas 'numpy<3'",
        "%pip install pandas",
        "! pip3 install x",
        "!{sys.executable} -m pip install x",
        "%config InlineBackend.figure_format = 'retina'",
        "# a comment\n\n%%capture out",
        "!apt-get -y install libfoo",
    ],
)
async def test_a_command_of_a_notebook_whose_meaning_is_certain_does_not_stop_the_program(
    call: Caller, head: str
) -> None:
    code = f"{head}\nif True:\n    %time x = 2\n    !pip install y\nimport sys\nprint(x, sys._getframe().f_lineno)"
    response = await explore(call, code)
    assert (response.ok, response.output.combined) == (True, f"2 {code.count(chr(10)) + 1}\n"), response.report


async def test_a_program_is_told_of_an_installation_that_was_left_out(call: Caller) -> None:
    response = await explore(call, "!pip install polars==1.0\nprint(1)")
    assert "Note: line 1 was left out: !pip install polars==1.0" in response.report


@pytest.mark.parametrize("line", ["!ls", "%%bash", "%timeit f()", "%cd /tmp", "!pip install x && ls"])
async def test_a_command_of_a_notebook_that_does_something_is_answered_with_a_hint(call: Caller, line: str) -> None:
    response = await explore(call, f"{line}\nprint(1)")
    assert response.ok is False
    assert "Hint: lines that begin with ! or % are commands of notebooks" in response.report


async def test_lines_of_a_text_that_look_like_commands_are_text(call: Caller) -> None:
    response = await explore(call, "%matplotlib inline\nprint('''\n%matplotlib inline\n!pip install x\n''')")
    assert response.output.combined == "\n%matplotlib inline\n!pip install x\n\n"


async def test_await_outside_of_functions_runs_and_its_traceback_is_the_programs(call: Caller) -> None:
    code = (
        "import asyncio\nasync def f(x):\n    await asyncio.sleep(0)\n    return 1 / x\n"
        "print(await f(1))\nasync with asyncio.timeout(5):\n    print([await f(n) for n in (1, 2)])\nawait f(0)"
    )
    response = await explore(call, code)
    assert response.output.stdout == "1.0\n[1.0, 0.5]\n"
    frames = [line.strip() for line in response.output.stderr.splitlines() if "File" in line]
    assert [frame.partition(", ")[2] for frame in frames] == ["line 8, in <module>", "line 4, in f"]


async def test_a_syntax_error_is_shown_as_python_shows_it(call: Caller) -> None:
    response = await explore(call, "import os\nx = = 1\n")
    lines = response.output.stderr.splitlines()
    assert lines[0].startswith('  File "/job/')
    assert lines[0].endswith(", line 2")
    assert lines[-1] == "SyntaxError: invalid syntax"


# ---- the whole output ----


async def read(call: Caller, path: str) -> ToolCallResponse:
    return await call.tool("react.read", {"paths": [path]})


@pytest.mark.parametrize("end", ["", "1 / 0"])
async def test_the_cut_of_a_long_output_names_the_path_of_all_of_it(call: Caller, end: str) -> None:
    code = f"for n in range(3000): print('row', 'abcdefghij'[n % 10] * (n % 7 + 1), n)\n{end}"
    response = await explore(call, code, tool_call_id="tc_long")
    assert "all of it is fi:turn_1.output.tc_long …]" in response.report
    part = await read(call, "fi:turn_1.output.tc_long#L1500-1501")
    texts = [block.text for block in part.blocks if block.path == "fi:turn_1.output.tc_long#L1500-1501"]
    assert [text.rstrip("\n") for text in texts if text] == [
        f"[lines 1500-1501 of {3000 + 5 * bool(end)}]\nrow jj 1499\nrow aaa 1500"
    ], part.report
    whole = await read(call, "fi:turn_1.output.tc_long")
    assert "Loaded: fi:turn_1.output.tc_long" in whole.report


async def test_lines_of_an_output_that_the_answer_shortens_are_those_that_were_printed(call: Caller) -> None:
    code = "for n in range(9000): print('é' * 60, n)\nimport sys\nprint('a warning', file=sys.stderr)"
    response = await explore(call, code, tool_call_id="tc_long")
    lost = response.usage.stdout_bytes - 2**20
    assert (response.output.truncated, lost > 0) == (True, True)
    assert f"all but {lost:,} bytes in the middle is fi:turn_1.output.tc_long, which" in response.report
    response = await explore(call, code.replace("9000", "8000"), tool_call_id="tc_whole")
    assert "all of it is fi:turn_1.output.tc_whole …]" in response.report
    path = "fi:turn_1.output.tc_whole#L6000-6000"
    texts = [block.text for block in (await read(call, path)).blocks if block.path == path and block.text]
    assert [text.rstrip("\n") for text in texts] == [f"[lines 6000-6000 of 8001]\n{'é' * 60} 5999"]


async def test_the_route_of_paths_has_what_was_printed_too(call: Caller) -> None:
    await explore(call, "print('ü')\n1 / 0", tool_call_id="tc_1")
    found = await call.service.paths.find(call.scope, parse("fi:turn_1.output.tc_1"))
    assert isinstance(found, PathContent)
    assert found.content.decode().startswith("ü\nTraceback")


async def test_what_no_call_printed_is_missing(call: Caller) -> None:
    await explore(call, "print(1)", tool_call_id="tc_1")
    for path in ("fi:turn_1.output.tc_2", "fi:turn_2.output.tc_1"):
        assert (await read(call, path)).ok is False


async def test_a_script_has_neither_a_last_value_nor_figures(call: Caller) -> None:
    response = await explore(call, "echo 5", language=Language.BASH)
    assert (response.last_value, response.shown) == (None, [])
