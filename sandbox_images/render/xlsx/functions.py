"""Functions that a formula may call: those of Excel that only count with cells.

Left out are functions that ask another computer or program (WEBSERVICE, RTD, IMAGE, CUBE…, STOCKHISTORY, CALL),
that make a reference out of text, which may lead to another file (INDIRECT), and those that name variables or take
several cells of a fixed number, which need more than the text of a formula in a file (LET, LAMBDA, MMULT).
"""

from openpyxl.utils import FORMULAE

_ASKS_OTHERS = frozenset({
    "CALL", "CUBEKPIMEMBER", "CUBEMEMBER", "CUBEMEMBERPROPERTY", "CUBERANKEDMEMBER", "CUBESET", "CUBESETCOUNT",
    "CUBEVALUE", "DDE", "ENCODEURL", "EXEC", "FILTERXML", "IMAGE", "IMPORTDATA", "IMPORTFEED", "IMPORTHTML",
    "IMPORTRANGE", "IMPORTXML", "INDIRECT", "PY", "REGISTER", "REGISTER.ID", "RTD", "SQL.REQUEST", "STOCKHISTORY",
    "TRANSLATE", "WEBSERVICE", "GOOGLEFINANCE", "GOOGLETRANSLATE", "DETECTLANGUAGE", "INFO",
})  # fmt: skip
"""``formula_refused``: they reach out of the workbook, or reveal the reader's machine."""
_LATER = (  # noqa: SIM905 - a name to a line would be a hundred lines
    """
ACOT ACOTH AGGREGATE ARABIC BASE BETA.DIST BETA.INV BINOM.DIST BINOM.DIST.RANGE BINOM.INV BITAND BITLSHIFT BITOR
BITRSHIFT BITXOR CEILING.MATH CHISQ.DIST CHISQ.DIST.RT CHISQ.INV CHISQ.INV.RT CHISQ.TEST COMBINA CONCAT
CONFIDENCE.NORM CONFIDENCE.T COT COTH COVARIANCE.P COVARIANCE.S CSC CSCH DAYS DECIMAL ERF.PRECISE ERFC.PRECISE
EXPON.DIST F.DIST F.DIST.RT F.INV F.INV.RT F.TEST FLOOR.MATH FORECAST.LINEAR FORMULATEXT GAMMA GAMMA.DIST GAMMA.INV
GAMMALN.PRECISE GAUSS HYPGEOM.DIST IFNA IFS IMCOSH IMCOT IMCSC IMCSCH IMSEC IMSECH IMSINH IMTAN ISFORMULA ISOWEEKNUM
LOGNORM.DIST LOGNORM.INV MAXIFS MINIFS MODE.SNGL MUNIT NEGBINOM.DIST NORM.DIST NORM.INV NORM.S.DIST NORM.S.INV
NUMBERVALUE PDURATION PERCENTILE.EXC PERCENTILE.INC PERCENTRANK.EXC PERCENTRANK.INC PERMUTATIONA PHI POISSON.DIST
QUARTILE.EXC QUARTILE.INC RANK.AVG RANK.EQ RRI SEC SECH SHEET SHEETS SKEW.P STDEV.P STDEV.S SWITCH T.DIST T.DIST.2T
T.DIST.RT T.INV T.INV.2T T.TEST TEXTAFTER TEXTBEFORE TEXTJOIN UNICHAR UNICODE VAR.P VAR.S VALUETOTEXT WEIBULL.DIST
XLOOKUP XMATCH XOR Z.TEST
"""
).split()
"""Younger than the format: in a file their names have a prefix."""
_PLAIN = ("IFERROR", "AVERAGEIF", "AVERAGEIFS", "COUNTIFS", "SUMIFS", "NETWORKDAYS.INTL", "WORKDAY.INTL")
_UNUSABLE = frozenset({"MMULT", "TRANSPOSE", "FREQUENCY", "LINEST", "LOGEST", "TREND", "GROWTH", "MINVERSE"})
"""Their result takes several cells."""

KNOWN = {
    **{name: name for name in (*FORMULAE, *_PLAIN) if name not in _ASKS_OTHERS | _UNUSABLE},
    **{name: f"_xlfn.{name}" for name in (*_LATER, "SEQUENCE", "SORTBY", "UNIQUE")},
    **{name: f"_xlfn._xlws.{name}" for name in ("FILTER", "SORT")},
}
"""The name of a function in a file, by the one that people write."""


def reaches_out(name: str) -> bool:
    """Whether a function asks another computer, program or file."""
    return name in _ASKS_OTHERS or name.startswith("CUBE")
