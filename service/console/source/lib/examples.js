// What the view "Run" begins with: a run that shows promises, verdicts and files at once.
export const PROGRAMS = {
  python: `import matplotlib.pyplot as plt
import pandas as pd

sales = pd.DataFrame({"month": ["Jan", "Feb", "Mar", "Apr"], "total": [120, 150, 90, 180]})
sales.to_csv("files/sales.csv", index=False)

sales.plot.bar(x="month", y="total", legend=False, title="Sales by month", rot=0)
plt.tight_layout()
plt.savefig("files/sales.png", dpi=120)

best = sales.loc[sales.total.idxmax()]
print(f"{len(sales)} months, the best is {best.month} with {best.total}")
`,
  bash: `set -eu
printf 'month,total\\nJan,120\\nFeb,150\\nMar,90\\nApr,180\\n' > files/sales.csv
awk -F, 'NR > 1 { sum += $2 } END { print "total:", sum }' files/sales.csv
`,
  node: `const fs = require("node:fs");

const rows = [["month", "total"], ["Jan", 120], ["Feb", 150], ["Mar", 90], ["Apr", 180]];
fs.writeFileSync("files/sales.csv", rows.map((row) => row.join(",")).join("\\n") + "\\n");
console.log(\`\${rows.length - 1} months\`);
`,
};

export const PROMISES = [
  { name: "sales.csv", description: "Sales by month", visibility: "external", checks: { columns: "month, total", min_rows: "4" } },
  { name: "sales.png", description: "A chart of the sales", visibility: "external", checks: { min_width: "600" } },
];

export const DOCUMENTS = {
  markdown: `# Quarterly report

Sales rose by **18 %**. The north leads again.

| Region | Sales | Change |
|--------|------:|-------:|
| North  |   420 |  +12 % |
| South  |   310 |   +9 % |
| West   |   275 |  +31 % |

> [!NOTE]
> Figures are preliminary until the audit in May.

## What is next

1. Open the second store in the west.
2. Review prices in the south.

\`\`\`mermaid
flowchart LR
  Draft --> Review --> Published
\`\`\`
`,
  html: `<h1>Quarterly report</h1>
<p>Sales rose by <strong>18 %</strong>. The north leads again.</p>
<table>
  <thead><tr><th>Region</th><th>Sales</th></tr></thead>
  <tbody><tr><td>North</td><td>420</td></tr><tr><td>South</td><td>310</td></tr></tbody>
</table>
`,
};
