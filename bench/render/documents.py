"""Documents that we write ourselves: formulas, scripts, emoji, citations."""

from collections.abc import Iterator

SCRIPTS = {
    "Arabic": "ar", "Armenian": "hy", "Bengali": "bn", "Cherokee": "chr", "Cyrillic": "ru", "Devanagari": "hi",
    "Ethiopic": "am", "Georgian": "ka", "Greek": "el", "Gujarati": "gu", "Gurmukhi": "pa", "Han": "zh",
    "Hangul": "ko", "Hebrew": "he", "Japanese": "ja", "Kannada": "kn", "Khmer": "km", "Lao": "lo",
    "Latin": "vi", "Malayalam": "ml", "Myanmar": "my", "Odia": "or", "Sinhala": "si", "Tamil": "ta",
    "Telugu": "te", "Thai": "th", "Tibetan": "dz",
}  # fmt: skip
"""Scripts, and a language that is written in each."""
EMOJI_A_PAGE = 20
EMOJI = 200

FORMULAS = tuple(
    line.strip()
    for line in r"""
a+b=c
x=\frac{-b\pm\sqrt{b^2-4ac}}{2a}
e^{i\pi}+1=0
\int_0^\infty e^{-x^2}\,dx=\frac{\sqrt{\pi}}{2}
\sum_{n=1}^{\infty}\frac{1}{n^2}=\frac{\pi^2}{6}
\prod_{p}\frac{1}{1-p^{-s}}
\lim_{x\to 0}\frac{\sin x}{x}=1
\nabla\cdot\mathbf{E}=\frac{\rho}{\varepsilon_0}
\nabla\times\mathbf{B}=\mu_0\mathbf{J}+\mu_0\varepsilon_0\frac{\partial\mathbf{E}}{\partial t}
i\hbar\frac{\partial}{\partial t}\Psi=\hat{H}\Psi
\begin{pmatrix}a&b\\c&d\end{pmatrix}
\begin{bmatrix}1&0&0\\0&1&0\\0&0&1\end{bmatrix}
\begin{vmatrix}a&b\\c&d\end{vmatrix}=ad-bc
\begin{cases}x&x\ge 0\\-x&x<0\end{cases}
\begin{aligned}a&=b+c\\&=d\end{aligned}
\begin{array}{cc}1&2\\3&4\end{array}
\left(\frac{a}{b}\right)^n
\left[\sum_{i}x_i\right]
\left\{x\mid x>0\right\}
\left|\frac{x}{y}\right|
\left\lfloor x\right\rfloor
\left\lceil x\right\rceil
\left\langle\psi\middle|\phi\right\rangle
\sqrt[3]{x+y}
\sqrt{1+\sqrt{1+\sqrt{1+x}}}
x_{i,j}^{2}
{}^{14}_{6}\mathrm{C}
\binom{n}{k}=\frac{n!}{k!(n-k)!}
\frac{d}{dx}\left(x^n\right)=nx^{n-1}
\oint_C\mathbf{F}\cdot d\mathbf{r}
\iint_D f(x,y)\,dA
\iiint_V\rho\,dV
\forall x\in\mathbb{R}\;\exists y\in\mathbb{N}:y>x
A\cup B\cap C\setminus D
A\subseteq B\subset C
p\land q\lor\neg r\Rightarrow s
x\notin\emptyset
\mathbb{N}\subset\mathbb{Z}\subset\mathbb{Q}\subset\mathbb{R}\subset\mathbb{C}
\mathcal{L}\{f(t)\}=\int_0^\infty f(t)e^{-st}\,dt
\mathfrak{g}\oplus\mathfrak{h}
\mathrm{Var}(X)=\mathrm{E}[X^2]-\mathrm{E}[X]^2
\operatorname{softmax}(x)_i=\frac{e^{x_i}}{\sum_j e^{x_j}}
\log_2 n+\ln x
\sin^2\theta+\cos^2\theta=1
\tan\left(\frac{\pi}{4}\right)=1
\max_{x\in X}f(x)
\arg\min_{\theta}L(\theta)
\gcd(a,b)\cdot\operatorname{lcm}(a,b)=ab
a\equiv b\pmod{n}
a\bmod b
\hat{\beta}=(X^{T}X)^{-1}X^{T}y
\bar{x}=\frac{1}{n}\sum_{i=1}^{n}x_i
\vec{v}\times\vec{w}
\dot{x}+\ddot{y}
\tilde{f}\ast g
\overline{z_1+z_2}
\underline{x}
\overbrace{a+b+c}^{3}
\underbrace{1+1+\dots+1}_{n}
\overset{!}{=}
\underset{n}{\max}
x\xrightarrow{f}y
a\leftarrow b\leftrightarrow c
f\colon X\to Y
x\mapsto x^2
A\iff B
\alpha\beta\gamma\delta\epsilon\zeta\eta\theta
\iota\kappa\lambda\mu\nu\xi\pi\rho
\sigma\tau\upsilon\phi\chi\psi\omega
\Gamma\Delta\Theta\Lambda\Xi\Pi\Sigma\Phi\Psi\Omega
\varepsilon\vartheta\varphi\varrho\varsigma
\infty\pm\mp\times\div\cdot
\le\ge\ne\approx\sim\cong\propto
\ll\gg\prec\succ
\perp\parallel\angle
\partial\nabla\hbar\ell\Re\Im
1,2,\ldots,n\quad a+\cdots+z
\text{if } x>0\text{ then } y
\mathbf{x}^{\top}\mathbf{A}\mathbf{x}
\boldsymbol{\mu}
\color{red}{x}+y
\boxed{E=mc^2}
\cancel{x}
\tfrac12+\dfrac{1}{2}
\cfrac{1}{1+\cfrac{1}{1+x}}
\frac{\partial^2 u}{\partial x^2}+\frac{\partial^2 u}{\partial y^2}=0
P(A\mid B)=\frac{P(B\mid A)P(A)}{P(B)}
f(x)=\frac{1}{\sigma\sqrt{2\pi}}e^{-\frac{(x-\mu)^2}{2\sigma^2}}
\zeta(s)=\sum_{n\ge 1}n^{-s}
F_n=F_{n-1}+F_{n-2}
\det(A-\lambda I)=0
\|x\|_2=\sqrt{\sum_i|x_i|^2}
\lvert x\rvert\le\lVert y\rVert
O(n\log n)
90^\circ
50\%\;\$5\;\#1\;\&
x'+y''
\substack{i<n\\j<m}
\mathop{\sum\sum}_{i\ne j}a_{ij}
\bigl(\bigcup_{i}A_i\bigr)\bigotimes B
\begin{matrix}a&b\\c&d\end{matrix}\;\therefore\;a\because b
""".strip().splitlines()
)
"""A hundred formulas of school, university and papers."""


def scripts() -> Iterator[tuple[str, str]]:
    """A page for each script: names of languages as it writes them, with digits and Latin letters between."""
    from babel import Locale  # noqa: PLC0415 - fetched at run time

    for script, code in SCRIPTS.items():
        names = list(dict(sorted(Locale.parse(code).languages.items())).values())[:40]
        rows = "\n".join(f"| {number} | {name} |" for number, name in enumerate(names[20:30], 1))
        text = f"# {script}: {names[0]}\n\n{', '.join(names[:20])}, 0123456789 ABC.\n\n"
        yield script.lower(), f"{text}- {names[1]}\n- **{names[2]}** 42\n\n| 1 | 2 |\n|---|---|\n{rows}\n"


def emoji(listed: list[str]) -> Iterator[tuple[str, str]]:
    """Pages of emoji, evenly drawn from a list, with digits, ``#`` and ``*`` around them."""
    drawn = listed[:: len(listed) // EMOJI][:EMOJI]
    for start in range(0, EMOJI, EMOJI_A_PAGE):
        rows = [f"{number} {sign} #{number}*" for number, sign in enumerate(drawn[start : start + EMOJI_A_PAGE], 1)]
        yield f"{start:03}", "# Emoji 123\n\n" + "\n".join(f"- {row}" for row in rows) + f"\n\n{' '.join(rows)}\n"


PLACES = {
    "sentence": ("A claim {0} in a sentence.", "<p>A claim {1} in a sentence.</p>"),
    "strong": ("**Bold {0}** text.", "<p><strong>Bold {1}</strong> text.</p>"),
    "heading": ("## Result {0}\n\nText.", "<h2>Result {1}</h2><p>Text.</p>"),
    "item": ("- One {0}\n- Two", "<ul><li>One {1}</li><li>Two</li></ul>"),
    "cell": (
        "| a | b |\n|---|---|\n| x {0} | y |",
        "<table><tr><th>a</th><th>b</th></tr><tr><td>x {1}</td><td>y</td></tr></table>",
    ),
    "quote": ("> Said {0} so.", "<blockquote><p>Said {1} so.</p></blockquote>"),
    "parenthesis": ("See {0}(here).", "<p>See {1}(here).</p>"),
    "code span": ("Type `{0}` here.", "<p>Type <code>{0}</code> here.</p>"),
    "fence": ("```python\nx = '{0}'\n```", "<pre><code>x = '{0}'</code></pre>"),
    "indented": ("Text.\n\n    {0}\n", "<p>Text.</p><pre><code>{0}</code></pre>"),
    "double backticks": ("A ``code {0} `` here.", "<p>A <code>code {0}</code> here.</p>"),
    "html code": ("<pre>{0}</pre>\n\nText.", "<pre>{0}</pre><p>Text.</p>"),
}
"""Where a citation stands: the Markdown, and what it says; ``{0}`` is the token, ``{1}`` what is shown for it."""

TOKENS = {
    "one": ("[[S:1]]", "[1]"),
    "row": ("[[S:1,2]]", "[1, 2]"),
    "range": ("[[S:1-3]]", "[1, 2, 3]"),
    "en dash": ("[[S:1\u20133]]", "[1, 2, 3]"),
    "loose": ("[[ s: 2 ; 3 ]]", "[1, 2]"),
    "unknown": ("[[S:99]]", "[99?]"),
}
"""Spellings of a citation, and what is shown with a pool of three sources."""


def citations() -> Iterator[tuple[str, str, str]]:
    """Every spelling at every place: a name, the Markdown, and what it says as HTML."""
    for place, (text, said) in PLACES.items():
        for kind, (token, shown) in TOKENS.items():
            yield f"{place}-{kind}".replace(" ", "-"), text.format(token), said.format(token, shown)
