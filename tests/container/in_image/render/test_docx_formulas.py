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


ALIGNED = "\\begin{%s} aaaaaaaaaaaaaaaaaaaaa &= b \\\\ &= \\text{R&D} \\end{%s}"


def test_aligned_equations_are_rows_in_pictures_and_in_office_math(tmp_path):
    for name in ("aligned", "align", "split", "eqnarray", "alignat*"):
        made = written(f"$${ALIGNED % (name, name)}$$", tmp_path)
        rows = ["".join(row.itertext()) for row in made.body.iter(f"{M}mr")]
        assert (rows, made.document.warnings) == (["a" * 21 + "\u200b=b", "\u200b\u200b=R&D"], []), name


def test_operators_without_a_side_have_a_text_of_no_width_there(tmp_path):
    made = written("$= 4$ $x =$ $x_{<n}$ $x \\sim y$", tmp_path)
    rows = ["".join(formula.itertext()) for formula in made.body.iter(f"{M}oMath")]
    assert rows == ["\u200b=4", "x=\u200b", "x\u200b<n", "x\u223cy"]


def test_a_pair_of_bars_is_a_bracket_and_one_bar_is_that_of_a_condition(tmp_path):
    made = written("$|v|$ $P(a|b)$", tmp_path)
    brackets = [
        ([end.get(f"{M}val") for end in bracket[0]], "".join(bracket.itertext()))
        for bracket in made.body.iter(f"{M}d")
    ]
    assert brackets == [(["|", "|"], "v"), (["(", ")"], "a\u2223b")]
