"""The jobs that are measured. Their programs read and write relative paths that are the same on every side."""

import random

from bench.render.speed import book, page
from bench.speed.model import INPUTS, OUTPUTS, Job

FILE_BYTES = 10_000
LARGE_BYTES = 50_000_000
BOOK_SECTIONS = 38
"""What fills thirty pages."""
_ROWS = 2_000
_WORDS = ("the", "report", "was", "read", "twice", "and", "compared", "with", "first")
_CHART = f"""\
import pandas
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
sales = pandas.read_csv("{INPUTS}/sales.csv", parse_dates=["day"])
monthly = sales.groupby([sales.day.dt.month, "region"]).revenue.sum().unstack()
axes = monthly.plot(kind="bar", stacked=True, figsize=(8, 4.5), title="Revenue by month and region")
axes.set_xlabel("month")
plt.tight_layout()
plt.savefig("{OUTPUTS}/chart.png", dpi=100)
print(1)
"""
_CONTRACT = f"""\
import csv
import json
rows = [(number, number * 37 % 100) for number in range(200)]
with open("{OUTPUTS}/rows.csv", "w", newline="") as file:
    csv.writer(file).writerows([("number", "score"), *rows])
with open("{OUTPUTS}/totals.json", "w") as file:
    json.dump({{"count": len(rows), "sum": sum(score for _, score in rows)}}, file)
with open("{OUTPUTS}/summary.md", "w") as file:
    file.write("# Scores\\n\\n" + "".join(f"- {{number}}: {{score}}\\n" for number, score in rows))
print(1)
"""
_LARGE = f"""\
with open("{OUTPUTS}/large.tar", "wb") as file:
    import io, random, tarfile
    content = random.Random(7).randbytes(1_000_000) * {LARGE_BYTES // 1_000_000}
    with tarfile.open(fileobj=file, mode="w") as tar:
        member = tarfile.TarInfo("content.bin")
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
print(1)
"""


def printing() -> Job:
    """``print(1)``. A contract cannot be empty: this one allows a file, and promises none."""
    promised = {"glob": "*.txt", "description": "nothing, or notes", "min_count": 0}
    return Job("print", "`print(1)`", code="print(1)", contract=(promised,), stdout=b"1")


def chart() -> Job:
    """A CSV read with pandas, a chart drawn with matplotlib."""
    promised = {"filename": "chart.png", "description": "revenue by month", "min_width": 400, "not_blank": True}
    return Job(
        "chart",
        "CSV to chart: pandas, matplotlib",
        code=_CHART,
        contract=(promised,),
        inputs={"sales.csv": _sales()},
        outputs={"chart.png": 5_000},
        stdout=b"1",
        needs_home=True,
    )


def contract() -> Job:
    """Three files with checks."""
    wants_object = {"type": "object", "required": ["count", "sum"]}
    promised = (
        {"filename": "rows.csv", "description": "scores", "min_rows": 200, "columns": ["number", "score"]},
        {"filename": "totals.json", "description": "their sum", "json_schema": wants_object},
        {"filename": "summary.md", "description": "the same to read", "min_bytes": 1_000},
    )
    outputs = {"rows.csv": 1_000, "totals.json": 10, "summary.md": 1_000}
    return Job("contract", "3 promised files", code=_CONTRACT, contract=promised, outputs=outputs, stdout=b"1")


def one_page() -> Job:
    """One page of A4 from HTML."""
    return Job("pdf", "1-page PDF", document=page().text, outputs={"report.pdf": 5_000}, needs_home=True)


def thirty_pages() -> Job:
    """Thirty pages of A4 from HTML."""
    document = book(BOOK_SECTIONS).text
    return Job("pdf30", "30-page PDF", document=document, outputs={"report.pdf": 50_000}, needs_home=True)


def many_files(count: int = 100) -> Job:
    """So many files of 10 KB in, as many out."""
    names = [f"part-{number}.txt" for number in range(count)]
    paths = [f"{INPUTS}/{name}" for name in names]
    code = (
        f"import os\nfor path in {paths!r}:\n"
        f'    with open(path) as given, open("{OUTPUTS}/" + os.path.basename(path), "w") as made:\n'
        "        made.write(given.read().upper())\nprint(1)\n"
    )
    promised = {"glob": "*.txt", "description": "in capitals", "min_count": count, "visibility": "internal"}
    return Job(
        "files",
        f"{count} {'file' if count == 1 else 'files'} of 10 KB in and out",
        code=code,
        contract=(promised,),
        inputs={name: _words(number, FILE_BYTES) for number, name in enumerate(names)},
        outputs=dict.fromkeys(names, FILE_BYTES),
        stdout=b"1",
    )


def large_file() -> Job:
    """One file of 50 MB out."""
    promised = {"filename": "large.tar", "description": "an archive"}
    outputs = {"large.tar": LARGE_BYTES}
    return Job("large", "one file of 50 MB out", code=_LARGE, contract=(promised,), outputs=outputs, stdout=b"1")


def _sales() -> bytes:
    numbers = random.Random(7)  # noqa: S311 - the same table in every run
    rows = ["day,region,revenue"]
    for row in range(_ROWS):
        day = f"2026-{row % 12 + 1:02}-{row % 28 + 1:02}"
        rows.append(f"{day},{numbers.choice(('north', 'south', 'west'))},{numbers.uniform(10, 900):.2f}")
    return ("\n".join(rows) + "\n").encode()


def _words(seed: int, size: int) -> bytes:
    numbers = random.Random(seed)  # noqa: S311 - the same files in every run
    words = " ".join(numbers.choices(_WORDS, k=size // 4))
    return (words * 2)[:size].encode()
