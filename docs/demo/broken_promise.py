"""What an agent might write on a bad day: it promises two files, writes one, and raises."""

import pandas as pd

points = pd.read_csv("turn_1/attachments/heights.csv")
points.describe().to_csv("files/statistics.csv")
raise RuntimeError(f"no forecast: {len(points)} heights hold no rainfall")
