"""Formulas of a DOCX: Office Math that Word and others edit."""

from docx_reading import M, W, written
from lxml import etree


def test_formulas_can_be_edited(tmp_path):
    made = written("Inline $\\frac{a}{b}$.\n\n$$\n\\sum_{i=1}^n \\sqrt{x_i}\n$$\n", tmp_path)
    assert [len(made.body.findall(f".//{M}{name}")) for name in ("oMath", "oMathPara", "f", "nary", "rad")] == [
        2,
        1,
        1,
        1,
        1,
    ]


def test_structures_of_formulas_have_all_their_parts(tmp_path):
    made = written(
        "$\\sqrt{x}$ $\\int f$ $\\oint_C F$ ${}_a^b X$ "
        "$\\begin{aligned}a&=b\\\\c&=d\\end{aligned}$ $\\lim_{x\\to0}x$",
        tmp_path,
    )
    wanted = {
        "rad": ["radPr", "deg", "e"],
        "nary": ["naryPr", "sub", "sup", "e"],
        "sSubSup": ["sSubSupPr", "e", "sub", "sup"],
    }
    for name, parts in wanted.items():
        for element in made.body.iter(M + name):
            assert [etree.QName(child).localname for child in element] == parts
    assert [warning.code for warning in made.document.warnings] == []


def test_a_formula_that_cannot_be_converted_keeps_its_tex(tmp_path):
    assert "\\frac{" in " ".join(written("a $\\frac{$ b", tmp_path).words())


def test_brackets_enclose_what_is_raised_to_a_power(tmp_path):
    bracket = written("$(x_i-y)^2$", tmp_path).body.find(f".//{M}sSup/{M}e/{M}d")
    ends = [element.get(M + "val") for element in bracket.find(M + "dPr")]
    assert (ends, "".join(bracket.itertext())) == (["(", ")"], "xi\u2212y")


def test_a_bracket_without_a_partner_is_a_letter(tmp_path):
    made = written("$(a + b$", tmp_path)
    assert (made.body.find(f".//{M}d"), made.words()) == (None, ["(a+b"])


def test_accents_are_accents_and_bars_are_bars(tmp_path):
    made = written("$\\hat{\\mathbf{x}} \\vec{v} \\bar{y} \\overline{AB}$", tmp_path)
    assert [mark.get(M + "val") for mark in made.body.iterfind(f".//{M}accPr/{M}chr")] == ["\u0302", "\u20d7"]
    assert [mark.get(M + "val") for mark in made.body.iterfind(f".//{M}barPr/{M}pos")] == ["top", "top"]
    assert made.body.find(f".//{W}p") is not None
