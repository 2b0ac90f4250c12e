# ruff: noqa: RUF001 - Greek letters and signs are what this module is about
"""Small formulas as text: what can stand in a line of a slide without a picture."""

import re

_NAMES = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π",
    "rho": "ρ", "sigma": "σ",
    "tau": "τ", "phi": "φ", "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ",
    "Theta": "Θ", "Lambda": "Λ", "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "times": "×",
    "cdot": "·", "div": "÷", "pm": "±", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠",
    "approx": "≈", "sim": "∼", "infty": "∞", "to": "→", "rightarrow": "→", "in": "∈", "partial": "∂", "ll": "≪",
    "gg": "≫", "equiv": "≡", "propto": "∝", "forall": "∀", "exists": "∃", "ldots": "…", "dots": "…", "cdots": "⋯",
    "quad": " ", "log": "log ", "ln": "ln ", "sin": "sin ", "cos": "cos ", "exp": "exp ", "max": "max ",
    "min": "min ",
    "%": "%", "$": "$", "#": "#", "&": "&", "_": "_", ",": " ", ";": " ", "!": "", " ": " ",
}  # fmt: skip
_UP = dict(zip("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ", strict=True))
_DOWN = dict(zip("0123456789+-=()aeoxijkmnpt", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₒₓᵢⱼₖₘₙₚₜ", strict=True))
_TOKEN = re.compile(r"\\([A-Za-z]+|.)|([\^_])\s*(?:\{([^{}\\]{1,12})\}|([^{}\\\s]))|([^\\^_{}])", re.DOTALL)
_LENGTH_MAX = 60


def tex_as_text(tex: str) -> str | None:
    """A formula as plain characters, or None if it takes a picture (fractions, roots, sums, odd exponents)."""
    if not tex or len(tex) > _LENGTH_MAX:
        return None
    out: list[str] = []
    end = 0
    for match in _TOKEN.finditer(tex):
        if match.start() != end:
            return None
        end = match.end()
        name, script, group, single, plain = match.groups()
        if name is not None:
            if name not in _NAMES:
                return None
            out.append(_NAMES[name])
        elif script:
            table = _UP if script == "^" else _DOWN
            characters = [table.get(character) for character in (group or single)]
            if None in characters:
                return None
            out.extend(str(character) for character in characters)
        else:
            out.append("−" if plain == "-" else plain)
    text = re.sub(r"\s+", " ", "".join(out)).strip()
    return re.sub(r"\s*([=<>≤≥≈≠+×→∈∝])\s*", r" \1 ", text).strip() if end == len(tex) and text else None
