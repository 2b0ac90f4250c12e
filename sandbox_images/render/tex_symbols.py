"""TeX and its MathML as the converters know them."""

import re

ALIGNED = re.compile(
    r"\\(begin|end)\{(aligned|split|gathered|gather\*?|align\*?|eqnarray\*?|alignat\*?|alignedat)\}(\{\d*\})?"
)
_SIMILAR = re.compile(r"\\sim(?![A-Za-z])")
_BARE = re.compile(r"&(?!(?:#\d+|#x[0-9A-Fa-f]+|\w+);)")


def known_tex(tex: str) -> str:
    r"""A formula whose aligned environments are those that the converters know, without numbers of equations.

    Of the others they make one line that runs on, and of ``\sim`` the small letter of a keyboard.
    """
    return _SIMILAR.sub(r"\\thicksim ", ALIGNED.sub(_known, tex))


def _known(found: re.Match[str]) -> str:
    name = "gather*" if found[2].startswith("gather") else "align*"
    rest = (found[3] or "") if not found[2].startswith(("alignat", "alignedat")) else ""
    return f"\\{found[1]}{{{name}}}{rest}"


def escaped(mathml: str) -> str:
    """MathML of the converter as XML: ampersands that part no cells come out of it as they are."""
    return _BARE.sub("&amp;", mathml)
