"""Writes a table with accents and Chinese characters to Excel and Parquet and prints what is read back."""
# ruff: noqa: T201 -- what a probe prints is its answer

import json

import pandas as pd

table = pd.DataFrame({"number": [1, 2], "text": ["é", "漢"]})
table.to_excel("/out/table.xlsx", index=False)
table.to_parquet("/out/table.parquet")
print(
    json.dumps(
        {
            "xlsx": pd.read_excel("/out/table.xlsx").to_numpy().tolist(),
            "parquet": pd.read_parquet("/out/table.parquet").to_numpy().tolist(),
        }
    )
)
