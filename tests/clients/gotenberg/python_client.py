"""Uses the service through PyPI's gotenberg-client: URL, key and output folder as arguments."""

import json
import sys
from pathlib import Path

from gotenberg_client import GotenbergClient
from gotenberg_client.constants import A4
from gotenberg_client.options import Measurement, MeasurementUnitType, PageMarginsType, PageOrientation, PdfAFormat


def main() -> None:
    """Make one file of each kind."""
    url, key, out = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    page = out / "index.html"
    page.write_text("<title>From Python</title><link rel=stylesheet href=style.css><h1>Hello</h1>")
    style = out / "style.css"
    style.write_text("h1 { color: #ff0000 }")
    footer = out / "footer.html"
    footer.write_text("<p>Page <span class=pageNumber></span> of <span class=totalPages></span></p>")
    template = out / "template.html"
    template.write_text('<h1>Notes</h1>{{ toHTML "notes.md" }}')
    notes = out / "notes.md"
    notes.write_text("* first\n* **second**\n")
    with GotenbergClient(host=url) as client:
        client.add_headers({"Authorization": f"Bearer {key}"})
        health = client.health.health()
        facts = {"up": health.overall.value, "chromium": health.chromium.status.value}
        facts["version"] = client.version.get()
        margins = PageMarginsType(
            Measurement(1, MeasurementUnitType.Inches), Measurement(25.4, MeasurementUnitType.Millimeters)
        )
        with client.chromium.html_to_pdf() as route:
            route.index(page).resource(style).footer(footer).size(A4).margins(margins)
            route.orient(PageOrientation.Landscape).metadata(title="Given title", author="Ann")
            route.output_filename("hello").trace_id("trace-of-python")
            answer = route.run()
        facts["trace"] = answer.headers["Gotenberg-Trace"]
        facts["disposition"] = answer.headers["Content-Disposition"]
        answer.to_file(out / "hello.pdf")
        with client.chromium.html_to_pdf() as route:
            route.index(page).resource(style).pdf_format(PdfAFormat.A2b).run().to_file(out / "archive.pdf")
        with client.chromium.markdown_to_pdf() as route:
            route.index(template).markdown_file(notes).run().to_file(out / "notes.pdf")
        with client.chromium.screenshot_html() as route:
            route.index(page).resource(style).width(400).height(300).clip(clip=True).output_format("jpeg").quality(
                80
            )
            route.run().to_file(out / "hello.jpeg")
        with client.merge.merge() as route:
            route.merge([out / "notes.pdf", out / "hello.pdf"]).run().to_file(out / "merged.pdf")
        with client.split.split() as route:
            route.split(out / "merged.pdf").split_mode("intervals").split_span("1").run().to_file(out / "split.zip")
        with client.metadata.read() as route:
            facts["metadata"] = route.read(out / "hello.pdf").run()
        with client.metadata.write() as route:
            route.write(out / "hello.pdf").metadata(title="Written").run().to_file(out / "written.pdf")
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
