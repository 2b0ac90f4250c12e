"""Imports what programs import and prints the version of every installed distribution."""
# ruff: noqa: T201 -- what a probe prints is its answer

import json
import re
from importlib import import_module, metadata

MODULES = """
    bs4 docx docxtpl fontTools jinja2 jsonschema lxml.etree matplotlib.pyplot networkx numpy numpy.testing openpyxl
    pandas pdfplumber PIL.Image plotly.express plotly.graph_objects pptx pyarrow.compute pyarrow.csv pyarrow.dataset
    pyarrow.parquet pypdf pypdfium2 reportlab.platypus requests scipy.integrate scipy.interpolate scipy.ndimage
    scipy.optimize scipy.signal scipy.spatial scipy.stats seaborn sklearn.cluster sklearn.ensemble
    sklearn.linear_model sklearn.model_selection sklearn.pipeline statsmodels.api statsmodels.formula.api
    statsmodels.tsa.api sympy tabulate tqdm.auto weasyprint xlrd xlsxwriter
    chardet cv2 dotenv duckdb faker folium fpdf httpx humanize lightgbm markdown nltk psutil pydantic pytest qrcode
    rich.table shapely.geometry skimage.filters sqlalchemy.orm tenacity wordcloud xgboost
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
