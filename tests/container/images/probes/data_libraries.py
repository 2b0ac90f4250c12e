"""Does one small job with each library for data and statistics and prints what comes out."""
# ruff: noqa: T201 -- what a probe prints is its answer

import io
import json
import sys

import networkx as nx
import numpy as np
import pandas as pd
import plotly.express as px
import pyarrow as pa
import pyarrow.compute as pc
import seaborn as sns
import sklearn.datasets
import statsmodels.formula.api as smf
import sympy
from scipy import optimize, stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score
from tabulate import tabulate
from tqdm import tqdm


def root() -> float:
    return round(optimize.brentq(lambda x: x**2 - 2, 0, 2), 4)


def t_test() -> bool:
    return bool(stats.ttest_ind([1, 2, 3, 4], [11, 12, 13, 14]).pvalue < 0.001)


def classification() -> bool:
    """Two workers: joblib starts processes, which share memory."""
    flowers = sklearn.datasets.load_iris()
    forest = RandomForestClassifier(20, random_state=0, n_jobs=2)
    return bool(cross_val_score(forest, flowers.data, flowers.target, cv=3, n_jobs=2).mean() > 0.9)


def regression() -> list[float]:
    table = pd.DataFrame({"x": range(10), "y": [3 * x + 1 for x in range(10)]})
    return [round(value, 6) for value in smf.ols("y ~ x", table).fit().params]


def algebra() -> str:
    x = sympy.Symbol("x")
    return str(sympy.integrate(x * sympy.cos(x), x))


def shortest_path() -> list[str]:
    return nx.shortest_path(nx.Graph([("a", "b"), ("b", "c"), ("a", "d"), ("d", "e"), ("e", "c")]), "a", "c")


def heat_map() -> bool:
    axes = sns.heatmap(pd.DataFrame(np.eye(3)), annot=True)
    drawn = io.BytesIO()
    axes.figure.savefig(drawn, format="png")
    return drawn.getvalue().startswith(b"\x89PNG")


def chart_page() -> list[bool]:
    page = px.bar(x=["a", "b"], y=[1, 2]).to_html()
    return ["Plotly.newPlot" in page, len(page) > 3_000_000]


def columns() -> list[object]:
    table = pa.table({"kind": ["a", "b", "a"], "value": [1, 2, 3]})
    sums = table.group_by("kind").aggregate([("value", "sum")]).sort_by("kind")
    return [*sums["value_sum"].to_pylist(), pc.mean(table["value"]).as_py()]


def progress() -> bool:
    written = io.StringIO()
    return sum(tqdm(range(4), file=written)) == 6 and "100%" in written.getvalue()


if __name__ == "__main__":
    done = {
        work.__name__: work()
        for work in (
            *(root, t_test, classification, regression, algebra, shortest_path),
            *(heat_map, chart_page, columns, progress),
        )
    }
    done["table"] = tabulate([["a", 1]], headers=["name", "n"], tablefmt="github")
    print(json.dumps(done))
    sys.stdout.flush()
