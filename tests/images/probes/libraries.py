"""Imports what programs import and prints the version of every installed distribution."""
# ruff: noqa: T201 -- what a probe prints is its answer

import json
import re
from importlib import import_module, metadata

MODULES = """
    docx fastparquet fontTools jsonschema lxml.etree matplotlib.pyplot numpy numpy.testing openpyxl pandas PIL.Image
    pptx pypdf pypdfium2 weasyprint xlsxwriter
    bz2 ctypes curses decimal hashlib lzma multiprocessing readline sqlite3 ssl xml.etree.ElementTree zoneinfo zlib
"""
for module in MODULES.split():
    import_module(module)
print(
    json.dumps(
        {
            re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower(): distribution.version
            for distribution in metadata.distributions()
        }
    )
)
