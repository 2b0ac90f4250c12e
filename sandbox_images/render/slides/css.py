"""The deck's own style sheet: sizes for a slide of 1280 by 720, and what keeps an author's rules on it."""

import re

from render.model import Theme
from render.slides.canvas import slide_width
from render.slides.contrast import contrast
from render.slides.design import Design
from render.themes import KINDS

STEPS = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25)
"""Factors of type; those below 0.75 are for what can be neither scaled properly nor split."""

ROOMY_STEPS = (1.4, 1.28, 1.15, 1.06)
"""Factors of type on slides that are not full: body text of 28, 25.5, 23 and 21 points."""
_DEEP = 6.0
"""Contrast that white text has at least on a title slide's ground."""
_TABLE_MOST, _CODE_MOST = 26.6, 22.0
"""Type of tables and code grows to 20 and 16 points."""

MARGIN_X, MARGIN_TOP, MARGIN_BOTTOM = 72, 60, 52
TITLE_SIZE, BODY_SIZE = 40, 27
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)px")


def deck_css(theme: Theme, design: Design, width: float) -> str:
    """The deck's rules.

    Args:
        theme: colours and fonts.
        design: what the document settles itself: ours stay out of that.
        width: the width that its author designed slides for.
    """
    colours = theme.colours
    variables = "".join(f"--pb-{name.replace('_', '-')}:{value};" for name, value in colours.items())
    parts = [
        f":root{{{variables}}}",
        "@page{size:1280px 400000px;margin:0}",
        *(_zoom_rules(step, design) for step in (*ROOMY_STEPS, *STEPS)),
        _base_rules(theme),
        _own_rules(theme),
        _code_rules(theme),
        _guard_rules(),
    ]
    if design.styled:
        parts.append(".pb-bottom,.pb-header{color:inherit;opacity:.8}")
    if not design.sized:
        parts.append(_larger(_size_rules(), width / slide_width()))
    if not design.bare:
        parts.append(plain_css(theme, design))
    if not design.styled:
        parts.append(_kind_rules(theme, tinted=design.tinted))
    return "\n".join(parts)


def plain_css(theme: Theme, design: Design | None = None) -> str:
    """How text and blocks look in a theme: what slides have whose author's rules are of no use, too."""
    own = [] if design else [_size_rules()]
    if design is None:
        own.append(f".pb-slide{{padding:{MARGIN_TOP}px {MARGIN_X}px {MARGIN_BOTTOM}px}}")
    return "\n".join([*own, _text_rules(theme, styled=bool(design and design.styled)), _block_rules(theme)])


def _larger(rules: str, factor: float) -> str:
    """Rules with all lengths larger by a factor."""
    return _LENGTH.sub(lambda match: f"{float(match[1]) * factor:.2f}px", rules) if factor != 1 else rules


def zoom_class(step: float) -> str:
    """Name of the class and of the page for a factor."""
    return f"pb-z{round(step * 100)}"


def _zoom_rules(step: float, design: Design) -> str:
    """A slide that is laid out wider, to be shown smaller: margins and the title stay as they are."""
    name = zoom_class(step)
    padding = f"{MARGIN_TOP / step:.1f}px {MARGIN_X / step:.1f}px {MARGIN_BOTTOM / step:.1f}px"
    title = (
        ""
        if design.styled or step < 0.75  # noqa: PLR2004 - below, everything is scaled
        else f".{name} :is(.pb-title,.pb-column-title){{font-size:{TITLE_SIZE / step:.2f}px;margin-bottom:{26 / step:.1f}px}}"
    )
    if step > 1 and not design.styled:
        title += (
            f".{name}.pb-slide table{{font-size:{_TABLE_MOST / step:.2f}px}} .{name} pre{{font-size:{_CODE_MOST / step:.2f}px}}"
            f".{name}{{font-size:{BODY_SIZE}px}}"
        )
    return title if design.framed else f".{name}{{padding:{padding}}}{title}"


def _base_rules(theme: Theme) -> str:
    """What holds on every slide, whoever designed it."""
    c = theme.colours
    return f"""
html{{font-family:"{theme.body_font}";color:{c["text"]}}}
body{{overflow-wrap:break-word;hyphens:none}}
.pb-slide{{display:block}}
code,kbd,samp,pre{{font-family:"{theme.mono_font}"}}
img,svg{{max-width:100%;max-height:var(--pb-picture,none)}}
"""


def _size_rules() -> str:
    """Sizes of type and the space around it, where a document has no rules for them."""
    return f"""
html,body,.pb-slide{{line-height:1.35}} body,.pb-slide{{font-size:{BODY_SIZE}px}}
h1,h2,h3,h4,h5,h6{{line-height:1.15;margin:0 0 16px;font-weight:700}}
h1,h2{{font-size:{TITLE_SIZE}px}} h3{{font-size:29px;margin-top:18px;margin-bottom:10px}}
h4,h5,h6{{font-size:26px;margin-top:14px;margin-bottom:8px}}
.pb-title{{margin-bottom:26px}}
p{{margin:0 0 14px}} ul,ol{{margin:0 0 14px;padding-left:25px}} ol{{padding-left:34px}} li{{margin:0 0 9px}}
li>p{{margin:0 0 6px}} .pb-ticks{{padding-left:34px}}
li>ul,li>ol{{margin:9px 0 0;padding-left:32px}}
li li li li li li li ul,li li li li li li li ol{{padding-left:0}}
dl{{margin:0 0 14px}} dt{{font-weight:700}} dd{{margin:0 0 10px 32px}}
small,figcaption,caption{{font-size:19px}} code,kbd,samp{{font-size:0.88em}}
table{{font-size:21px;line-height:1.25;margin:0 0 16px}} th,td{{padding:9px 14px;text-align:left}}
blockquote{{margin:0 0 18px}} figure{{margin:0 0 16px}}
pre{{font-size:19px;line-height:1.3}} pre code{{font-size:1em}}
"""


def _text_rules(theme: Theme, *, styled: bool) -> str:
    c = theme.colours
    tone = "" if styled else f"h3{{color:{c['accent']}}}"
    family = "" if styled else f'font-family:"{theme.heading_font}";color:{c.get("heading", c["text"])};'
    return f"""
h1,h2,h3,h4,h5,h6{{{family}}} {tone}
a{{color:{c["accent"]};text-decoration:underline}}
small,figcaption,caption{{color:{c["muted"]}}}
mark{{background:#fff2a8;color:#1a1a1a}}
del,s{{text-decoration:line-through}} u,ins{{text-decoration:underline}}
img,svg{{max-height:var(--pb-picture,470px)}}
"""


def _block_rules(theme: Theme) -> str:
    c = theme.colours
    return f"""
table{{width:100%;border-collapse:collapse}}
th,td{{vertical-align:middle;border-bottom:1px solid {c["border"]}}}
th{{font-weight:700}} thead th{{background:{c["surface"]};color:{c["heading"]};border-bottom:2px solid {c["accent"]}}}
caption{{text-align:left;padding:0 0 8px}}
blockquote{{padding:6px 0 6px 26px;border-left:5px solid {c["accent"]};font-style:italic}}
blockquote p:last-child,td p:last-child,th p:last-child,.pb-callout p:last-child,
.card p:last-child{{margin-bottom:0}}
td p,th p{{margin:0 0 4px}} td ul,td ol{{margin:0;padding-left:24px}}
pre{{background:{c["code_background"]};border-radius:10px;padding:16px 22px;margin:0 0 18px}}
.card{{background:{c["surface"]};border-radius:14px;padding:20px 24px}}
hr{{border:0;border-top:2px solid {c["border"]};margin:18px 0}}
"""


def _own_rules(theme: Theme) -> str:
    """What our own classes mean, which documents get by Markdown or by notices."""
    c = theme.colours
    callouts = "".join(
        f'.pb-callout[data-kind="{kind}"]{{border-left-color:{c[kind]};background:{c[kind]}1a}}'
        f'.pb-callout[data-kind="{kind}"] .pb-callout-title{{color:{c[kind]}}}'
        for kind in KINDS
    )
    return f"""
sup,sub{{font-size:0.7em;line-height:1}}
.pb-cite,.pb-footnote-ref{{font-size:0.7em;vertical-align:super;line-height:1;text-decoration:none}}
sup .pb-footnote-ref{{font-size:1em;vertical-align:baseline}}
.pb-missing{{color:{c["muted"]};font-style:italic;border:1px dashed {c["border"]}}}
.pb-emoji{{font-family:"Noto Color Emoji"}}
.pb-dense{{font-size:18.7px}} .pb-dense td,.pb-dense th{{padding:5px 12px}}
pre{{white-space:pre-wrap}}
.pb-callout{{background:{c["surface"]};border-left:6px solid {c["accent"]};padding:14px 22px;margin:0 0 18px}}
.pb-callout-title{{font-weight:700;margin:0 0 6px}} {callouts}
.pb-columns{{display:flex;gap:44px;margin:0 0 14px}} .pb-column{{flex:1 1 0;min-width:0}}
figure.pb-diagram{{text-align:center}} figure.pb-diagram>*{{max-height:var(--pb-picture,470px)}}
figure.pb-chart{{height:var(--pb-picture,470px);display:block;width:auto}} .pb-chart>*{{display:none}}
.pb-bottom{{font-size:15px;line-height:1.3;color:{c["muted"]};margin:20px 90px 0 0}} .pb-bottom p{{margin:0 0 3px}}
.pb-bottom .pb-rule{{width:180px;border-top:1px solid {c["border"]};margin:0 0 7px;height:0}}
.pb-header{{font-size:16px;color:{c["muted"]};margin:0 0 12px}}
.pb-slide:is(.pb-grounded,.pb-coloured,.pb-class-invert) :is(.pb-bottom,.pb-header){{color:inherit;opacity:.8}}
.pb-continued{{list-style:none}} .pb-continued::marker{{content:""}}
.pb-sources li,.pb-toc li{{margin:0 0 7px}} .pb-sources,.pb-toc{{font-size:22px}}
div.pb-math{{margin:0 0 16px;text-align:center}}
.pb-p400{{--pb-picture:400px}} .pb-p320{{--pb-picture:320px}} .pb-p240{{--pb-picture:240px}}
"""


_TOKENS = {
    "light": (
        ("k|kc|kd|kn|kp|kr|kt|ow|nt", "#a626a4"),
        ("s|s1|s2|sa|sb|sc|dl|sd|se|sh|si|sr|ss|sx", "#2a7d2e"),
        ("c|c1|cm|ch|cp|cpf|cs|sd", "#6a737d"),
        ("m|mb|mf|mh|mi|il|mo|no", "#b35900"),
        ("nf|nc|fm|ne|nd|na|nb|bp", "#1f5fbf"),
    ),
    "dark": (
        ("k|kc|kd|kn|kp|kr|kt|ow|nt", "#d99bf0"),
        ("s|s1|s2|sa|sb|sc|dl|sd|se|sh|si|sr|ss|sx", "#9ad48c"),
        ("c|c1|cm|ch|cp|cpf|cs|sd", "#8b949e"),
        ("m|mb|mf|mh|mi|il|mo|no", "#f2b077"),
        ("nf|nc|fm|ne|nd|na|nb|bp", "#82b7ff"),
    ),
}


def is_dark(colour: str) -> bool:
    """Whether white text is read better on a ``#rrggbb`` colour than black text."""
    digits = colour.lstrip("#")
    try:
        red, green, blue = (int(digits[index : index + 2], 16) for index in (0, 2, 4))
    except ValueError:
        return False
    return red * 0.299 + green * 0.587 + blue * 0.114 < 140  # noqa: PLR2004 - the usual middle of perceived light


def on_accent(colours: dict[str, str]) -> str:
    """The colour of text on the accent colour."""
    if is_dark(colours["accent"]):
        return "#ffffff"
    return colours["background"] if is_dark(colours["background"]) else "#1a1a1a"


def section_look(colours: dict[str, str]) -> tuple[str, str]:
    """Ground and text of a section slide; where slides are dark, a whole slide in the accent would dazzle."""
    if is_dark(colours["background"]):
        return colours["surface"], colours["heading"]
    return colours["accent"], on_accent(colours)


def _code_rules(theme: Theme) -> str:
    palette = _TOKENS["dark" if is_dark(theme.colours["code_background"]) else "light"]
    return "".join(
        f"{','.join(f'.pb-code .{name}' for name in names.split('|'))}{{color:{colour}}}"
        for names, colour in palette
    )


def _guard_rules() -> str:
    """What an author's rules cannot undo: slides are pages, and their ancestors leave no trace."""
    zooms = "".join(f".{zoom_class(step)}{{page:{zoom_class(step)}}}" for step in (*ROOMY_STEPS, *STEPS))
    return f"""
html{{height:auto!important;min-height:0!important;max-height:none!important;overflow:visible!important}}
[data-pb-chain]{{display:block!important;position:static!important;float:none!important;width:auto!important;
height:auto!important;min-height:0!important;max-height:none!important;max-width:none!important;margin:0!important;
padding:0!important;border:0!important;transform:none!important;overflow:visible!important;columns:auto!important}}
.pb-slide{{position:relative!important;float:none!important;margin:0!important;box-sizing:border-box!important;
max-width:none!important;max-height:none!important;overflow:visible!important;
transform:none!important;visibility:visible!important;break-after:page!important;break-before:auto!important;
break-inside:auto!important;border-radius:0!important;inset:auto!important}}
.pb-slide:not(.pb-fixed){{height:auto!important}}
.pb-slide *{{break-before:auto!important;break-after:auto!important;break-inside:auto!important;max-width:100%}}
.pb-slide td,.pb-slide th{{max-width:none}}
.pb-show{{display:block!important}}
.pb-calm *{{position:static!important;float:none!important;max-width:100%!important;min-width:0!important;
box-sizing:border-box!important;white-space:normal!important;height:auto!important;max-height:none!important;
overflow-wrap:anywhere!important;transform:none!important}}
.pb-calm pre,.pb-calm pre *{{white-space:pre-wrap!important}}
.pb-calm *{{margin-top:max(0px,0px);margin-left:0!important;margin-right:0!important}}
.pb-calm img,.pb-calm svg{{max-height:var(--pb-picture,470px)!important}}
.pb-calm figure.pb-chart{{height:var(--pb-picture,470px)!important}}
.pb-calm table{{width:100%!important}} .pb-calm td,.pb-calm th{{width:auto!important}}
{zooms}"""


def mixed(colour: str, other: str, share: float) -> str:
    """A ``#rrggbb`` colour with a share of another."""
    pairs = [(int(colour[i : i + 2], 16), int(other[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(one * (1 - share) + two * share):02x}" for one, two in pairs)


def title_look(colours: dict[str, str]) -> tuple[str, str, str]:
    """Ground, text and soft text of the title slide: the accent, deep enough for white to be read on it."""
    if is_dark(colours["background"]):
        ground = mixed(colours["background"], colours["accent"], 0.22)
    else:
        ground = colours["accent"]
        for _ in range(12):
            if contrast("ffffff", ground[1:]) >= _DEEP:
                break
            ground = mixed(ground, "#000000", 0.12)
    return ground, "#ffffff", mixed("#ffffff", ground, 0.14)


def _kind_rules(theme: Theme, *, tinted: bool) -> str:
    """The looks of the title slide and of section slides; the layouts of the deck carry the same colours.

    Args:
        theme: its colours.
        tinted: whether the document has colours of its own.
    """
    c = theme.colours
    rows = []
    looks = (("title", *title_look(c)), ("section", *section_look(c), section_look(c)[1]))
    for kind, ground, text, soft in () if tinted else looks:
        own = f".pb-slide.pb-kind-{kind}:not(.pb-grounded):not(.pb-coloured):not(.pb-class-invert)"
        rows.append(f"{own}{{background:{ground};color:{soft}}} {own} *{{color:{soft}}} {own} .pb-title{{color:{text}}}"
                    f"{own} .pb-title *{{color:{text}}}")  # fmt: skip
    return f"""
.pb-slide.pb-kind-title,.pb-slide.pb-kind-section{{display:flex;flex-direction:column;justify-content:center;
padding-left:104px;padding-right:104px}}
.pb-slide.pb-kind-title>*,.pb-slide.pb-kind-section>*{{width:1000px;align-self:flex-start;text-align:left}}
.pb-slide.pb-kind-title{{font-size:30px}}
.pb-slide.pb-kind-title .pb-title{{font-size:76px;line-height:1.08;margin-bottom:28px}}
.pb-slide.pb-kind-title .pb-title.pb-long{{font-size:60px}}
.pb-slide.pb-kind-title>.pb-foot{{position:absolute;left:104px;bottom:64px;margin:0;font-size:24px}}
.pb-slide.pb-kind-title>.pb-bottom{{position:absolute;left:104px;bottom:28px;margin:0}}
.pb-slide.pb-kind-section .pb-title{{font-size:56px;margin-bottom:14px}}
{"".join(rows)}
.pb-coloured :is(h1,h2,h3,h4,h5,h6),.pb-class-invert :is(h1,h2,h3,h4,h5,h6){{color:inherit}}
.pb-slide:is(.pb-grounded,.pb-class-invert) thead th{{background:none;color:inherit}}
.pb-slide:is(.pb-grounded,.pb-coloured,.pb-class-invert) .pb-card{{background:rgba(127,127,127,.16)}}
.pb-slide:is(.pb-grounded,.pb-coloured,.pb-class-invert) :is(.pb-term,.pb-number){{color:inherit}}
.pb-class-lead.pb-kind-content{{text-align:center}}
.pb-class-invert{{background:{c["text"]};color:{c["background"]}}}
{_layout_rules(c)}"""


def _layout_rules(c: dict[str, str]) -> str:
    """The layouts that `render.slides.arrange` chooses."""
    return f"""
.pb-number{{font-size:176px;line-height:1.05;font-weight:700;color:{c["accent"]};margin:20px 0 18px}}
.pb-l-number p:not(.pb-number){{font-size:36px;max-width:900px}}
.pb-cards{{display:flex;gap:28px;align-items:stretch}}
.pb-card{{flex:1 1 0;min-width:0;background:{c["surface"]};border-top:6px solid {c["accent"]};padding:30px 28px 26px;
min-height:300px;font-size:27px}}
.pb-card p:last-child{{margin-bottom:0}} .pb-term{{font-size:31px;margin-bottom:12px;color:{c["heading"]}}}
.pb-figure .pb-term{{font-size:64px;line-height:1.1;color:{c["accent"]}}}
.pb-l-quote blockquote{{border-left:0;padding:0 60px 0 0;font-size:42px;line-height:1.35;margin:0}}
.pb-l-quote blockquote::before{{content:"\\201c";display:block;font-size:120px;line-height:.8;height:64px;
font-style:normal;color:{c["accent"]}}}
.pb-l-quote blockquote p:last-child:not(:first-child){{font-size:26px;font-style:normal;color:{c["muted"]};margin-top:26px}}
.pb-l-table table{{font-size:23px}} .pb-l-table td,.pb-l-table th{{padding:11px 16px}}
.pb-l-table table.pb-narrow{{width:80%}}
.pb-l-table td:first-child{{font-weight:600}}
.pb-total td,.pb-total th{{background:{c["surface"]};font-weight:600;border-top:2px solid {c["accent"]}}}
.pb-beside{{align-items:center}} .pb-beside .pb-words{{flex:4 1 0;font-size:30px}} .pb-beside .pb-seen{{flex:6 1 0}}
.pb-beside .pb-seen figure,.pb-beside .pb-seen p{{margin:0}}
"""
