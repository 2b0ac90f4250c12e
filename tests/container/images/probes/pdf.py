"""Sets one sentence in each of seven scripts and prints the fonts of each PDF and what is missing in it."""
# ruff: noqa: T201 -- what a probe prints is its answer

import json
import logging
import os
import sys

import pypdf
import weasyprint

TEXTS = {
    "Latin": "Café 123",
    "Chinese": "简体中文软件漢字",
    "Japanese": "日本語のかなカナ",
    "Korean": "한국어",
    "Arabic": "العربية",
    "Hindi": "हिन्दी",
    "emoji": "🎉👍🏽",
}
# WeasyPrint reports missing glyphs and fonts to its logger: they shall show on standard error.
logging.getLogger("weasyprint").addHandler(logging.StreamHandler(sys.stderr))

told: dict[str, object] = {"not_embedded": [], "fonts": {}, "texts_lost": []}
for script, text in TEXTS.items():
    path = f"/out/{script}.pdf"
    weasyprint.HTML(string=f'<html lang="en"><p style="font-family: sans-serif">{text}</p></html>').write_pdf(path)
    page = pypdf.PdfReader(path).pages[0]
    names = []
    for font in page["/Resources"]["/Font"].values():
        described = font.get_object().get("/DescendantFonts", [font])[0].get_object()["/FontDescriptor"]
        name = font.get_object()["/BaseFont"].rpartition("+")[2]
        names.append(name)
        if not {"/FontFile", "/FontFile2", "/FontFile3"} & set(described):
            told["not_embedded"].append(name)
    told["fonts"][script] = sorted(names)
    if text not in page.extract_text() and script != "Arabic":
        # Arabic is stored in the order of its glyphs, which the reader turns round or not, as it likes.
        told["texts_lost"].append(script)
print(json.dumps(told), flush=True)
os._exit(0)  # pango has a thread that may still run when Python unloads its library
