"""What an agent might write: a workbook, a chart, a PDF and a summary from an attachment of an earlier turn."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.colors import LightSource
from openpyxl import Workbook
from openpyxl.styles import Font
from weasyprint import HTML

points = pd.read_csv("turn_1/attachments/heights.csv")
bands = points.groupby(pd.cut(points["height_m"], range(200, 1200, 100), right=False), observed=True)["height_m"]
table = pd.DataFrame({"points": bands.size(), "mean": bands.mean().round(1)})
table["share_pct"] = (100 * table["points"] / len(points)).round(1)
names = [f"{band.left}-{band.right} m" for band in table.index]
print(len(points), "points,", points["height_m"].min(), "to", points["height_m"].max(), "m")

book = Workbook()
sheet = book.active
sheet.title = "Height bands"
sheet.append(["Band", "Points", "Mean height m", "Share %"])
for cell in sheet[1]:
    cell.font = Font(bold=True)
for name, row in zip(names, table.itertuples(), strict=True):
    sheet.append([name, row.points, row.mean, row.share_pct])
sheet.freeze_panes = "A2"
book.save("files/height_bands.xlsx")

grid = points.pivot(index="latitude", columns="longitude", values="height_m").sort_index(ascending=False)
shaded = LightSource(315, 40).shade(grid.to_numpy(), plt.cm.gist_earth, vert_exag=0.05, blend_mode="soft")
edges = [grid.columns.min(), grid.columns.max(), grid.index.min(), grid.index.max()]
figure, axes = plt.subplots(figsize=(9, 6), dpi=144, layout="constrained")
axes.imshow(shaded, extent=edges, aspect="auto", interpolation="bicubic")
lines = axes.contour(grid.columns, grid.index, grid, levels=range(300, 1100, 100), colors="k", linewidths=0.4)
axes.clabel(lines, fontsize=7)
axes.set(title="Ground height around the Jacksboro fault, Tennessee", xlabel="longitude", ylabel="latitude")
figure.savefig("files/chart.png")

STYLE = """
@page { size: A4; margin: 2cm; @bottom-right { content: counter(page) " / " counter(pages); font: 9pt sans-serif } }
body { font: 10.5pt/1.5 sans-serif; color: #223 } h1 { color: #2f6b4f; font-size: 22pt } img { width: 100% }
table { border-collapse: collapse; width: 100% } th { background: #eef3ef }
td, th { padding: 4pt 8pt; text-align: right; border-bottom: .5pt solid #cdd }
"""
rows = "".join(
    f"<tr><td>{name}<td>{row.points:,}<td>{row.mean:.1f}<td>{row.share_pct:.1f}"
    for name, row in zip(names, table.itertuples(), strict=True)
)
HTML(
    string=f"""<html lang="en"><title>Ground heights</title><style>{STYLE}</style><h1>Ground heights</h1>
    <p>{len(points):,} points, {points.height_m.min()} to {points.height_m.max()} m.</p>
    <img src="files/chart.png" alt="relief map">
    <table><tr><th>Band<th>Points<th>Mean m<th>Share %{rows}</table>""",
    base_url=".",
).write_pdf("files/report.pdf")

most = table["points"].idxmax()
with open("files/summary.md", "w") as file:
    file.write(f"# Ground heights\n\n- {len(points):,} points\n")
    file.write(f"- lowest {points.height_m.min()} m, highest {points.height_m.max()} m\n")
    file.write(f"- most ground lies at {most.left} to {most.right} m ({table.share_pct[most]:.0f} %)\n")
