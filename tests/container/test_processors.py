"""What a program sees of its processors is what ``limits.cpus`` gives it."""

import json
import os
from typing import Any

import pytest

from proofbox.contracts.tools import Language
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

ALL = os.cpu_count() or 1
SEEN = """
import json, multiprocessing, os, subprocess, sys
told = {
    "cpu_count": os.cpu_count(), "process_cpu_count": os.process_cpu_count(),
    "affinity": len(os.sched_getaffinity(0)),
    "multiprocessing": multiprocessing.cpu_count(), "nproc": int(subprocess.check_output("nproc")),
    "child": int(subprocess.check_output([sys.executable, "-c", "import os; print(os.cpu_count())"])),
    "threads": int(os.environ["OMP_NUM_THREADS"]), "openblas": int(os.environ["OPENBLAS_NUM_THREADS"]),
}
if "numpy" in sys.modules:
    import joblib, threadpoolctl, pyarrow
    told["joblib"], told["pyarrow"] = joblib.cpu_count(), pyarrow.cpu_count()
    pools = threadpoolctl.threadpool_info()
    told |= {f"{pool['prefix']} {at}": pool["num_threads"] for at, pool in enumerate(pools)}
print(json.dumps(told))
"""
NODE_SEES = """
const os = require("os");
console.log(JSON.stringify([os.availableParallelism(), +process.env.OMP_NUM_THREADS]));
"""


async def seen(call: Caller, code: str, cpus: float, **fields: Any) -> set[int]:
    response = await call(code, limits={"cpus": cpus}, **fields)
    assert response.ok, response.report
    told = json.loads(await call.output())
    return set(told.values() if isinstance(told, dict) else told)


@pytest.mark.parametrize(("cpus", "count"), [(1, 1), (0.5, 1), (ALL, ALL)])
@pytest.mark.parametrize("imports", ["", "import numpy, pandas\n", "import sklearn.ensemble, pandas\n"])
async def test_a_program_sees_its_processors(call: Caller, imports: str, cpus: float, count: int) -> None:
    assert await seen(call, imports + SEEN, cpus) == {count}


async def test_node_and_a_shell_see_them(call: Caller) -> None:
    assert await seen(call, NODE_SEES, 1, language=Language.NODE) == {1}
    code = "nproc; python3 -c 'import os; print(os.cpu_count())'"
    assert (await call(code, language=Language.BASH, limits={"cpus": 1})).ok
    assert await call.output() == "1\n1\n"


async def test_what_the_caller_sets_counts(call: Caller) -> None:
    response = await call("import os; print(os.environ['OMP_NUM_THREADS'])", env={"OMP_NUM_THREADS": "7"})
    assert (response.ok, await call.output()) == (True, "7\n"), response.report
