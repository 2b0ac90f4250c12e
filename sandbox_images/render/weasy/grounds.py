"""What is behind a box: its colour and its gradients, as the layout engine has placed them, the lowest first."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from xml.etree.ElementTree import Element

from render.weasy.box_style import Gradient, Look, Paint, paint_of
from weasyprint.images import Gradient as EngineGradient
from weasyprint.images import LinearGradient

_NEAR = 1.0
_EVEN = 0.02
_SVG = "http://www.w3.org/2000/svg"
_FAR = math.sqrt(2)
"""Radius of an ellipse through the corners of a box, in half widths and half heights of the box."""
_TILES_MAX, _ONCE_MAX = 400_000, 2_000
_STOPS_MAX = 100
"""So many colours of a gradient are written; more are finer than what can be seen."""

Stops = list[tuple[float, Paint]]


@dataclass(frozen=True, slots=True)
class Tile:
    """A gradient that does not fill its box as it is: a pattern of lines or dots, or a bar of its own size.

    Attributes:
        x, y, width, height: the area that it is painted on.
        drawing: the area as an ``svg`` element.
    """

    x: float
    y: float
    width: float
    height: float
    drawing: Element


Ground = Paint | Gradient | Tile


def grounds_of(box: Any) -> tuple[Ground, ...]:
    """The colour and the gradients behind a laid-out box of the engine, the lowest first."""
    background = getattr(box, "background", None)
    if background is None:
        return ()
    look = Look(box.style)
    colour = paint_of(background.color, look.colour)
    found: list[Ground] = [colour] if colour.alpha > 0 else []
    for layer in reversed(background.layers):
        if isinstance(layer.image, EngineGradient) and len(layer.image.colors) > 1:
            found.extend(_safely(layer, box.style, look.colour))
    return tuple(found)


def _safely(layer: Any, style: Any, current: Paint) -> list[Ground]:
    """What a layer is; nothing if its lengths are beyond what can be computed."""
    try:
        return _layer(layer, style, current)
    except (ArithmeticError, ValueError, IndexError):
        return []


def canvas_of(page: Any, height: float) -> tuple[Ground, ...]:
    """What ``html`` or ``body`` puts behind a page, on the part of it that is a slide."""
    background = getattr(page, "canvas_background", None)
    if background is None:
        return ()
    look = Look(page.style)
    colour = paint_of(background.color, look.colour)
    found: list[Ground] = [colour] if colour.alpha > 0 else []
    width = float(page.width)
    for layer in reversed(background.layers):
        if isinstance(layer.image, EngineGradient) and len(layer.image.colors) > 1 and min(layer.size) > 0:
            tiled = layer.size[0] < width - _NEAR and not layer.image.repeating
            area = {"painting_area": (0.0, 0.0, width, height), "positioning_area": (0.0, 0.0, width, height)}
            size = layer.size if tiled else (width, height)
            found.extend(_safely(layer._replace(size=size, **area), page.style, look.colour))
    return tuple(found)


def flattened(grounds: Sequence[Ground]) -> tuple[Ground, ...]:
    """The same with each gradient that lies on an opaque colour mixed with it, which makes one fill of the two."""
    out: list[Ground] = []
    for ground in grounds:
        below = out[-1] if out else None
        if isinstance(ground, Gradient) and isinstance(below, Paint) and below.alpha >= 1:
            stops = tuple((at, mixed(paint, below)) for at, paint in ground.stops)
            out[-1] = Gradient(ground.angle, stops, ground.centre)
        elif isinstance(ground, Paint) and ground.alpha >= 1:
            out = [ground]
        elif isinstance(ground, Paint) and isinstance(below, Paint) and below.alpha >= 1:
            out[-1] = mixed(ground, below)
        elif isinstance(ground, Gradient) and all(paint.alpha >= 1 for _, paint in ground.stops):
            out = [ground]
        else:
            out.append(ground)
    return tuple(out)


def mixed(paint: Paint, below: Paint) -> Paint:
    """The colour that a translucent one has on an opaque one."""
    parts = []
    for index in (0, 2, 4):
        upper, lower = int(paint.rgb[index : index + 2], 16), int(below.rgb[index : index + 2], 16)
        parts.append(f"{round(upper * paint.alpha + lower * (1 - paint.alpha)):02x}")
    return Paint("".join(parts))


def _layer(layer: Any, style: Any, current: Paint) -> list[Ground]:
    x, y, width, height = layer.painting_area
    wide, tall = layer.size
    if min(width, height, wide, tall) <= 0:
        return []
    whole = abs(wide - width) <= _NEAR and abs(tall - height) <= _NEAR
    if whole and not layer.image.repeating and _is_native(layer.image, wide, tall, style):
        return [_native(layer.image, wide, tall, style, current)]
    left, top = (layer.positioning_area[side] + layer.position[side] - (x, y)[side] for side in (0, 1))
    if (width / wide) * (height / tall) > _TILES_MAX:  # finer than any screen
        return []
    repeat = tuple(item != "no-repeat" for item in layer.repeat)
    drawing = _drawing(
        (width, height), (left, top, wide, tall), repeat, _defs(layer.image, wide, tall, style, current)
    )
    return [Tile(x, y, width, height, drawing)]


def _is_native(image: Any, width: float, height: float, style: Any) -> bool:
    """Whether slides have such a gradient: of rings, only those around the middle and as flat as their box."""
    scale_y, kind, points, *_ = image.layout(width, height, style)
    if kind in {"solid", "linear"}:
        return True
    even = abs(scale_y * width / height - 1) < _EVEN
    middle = abs(points[3] / width - 0.5) < _EVEN and abs(points[4] * scale_y / height - 0.5) < _EVEN
    return bool(even and middle)


def _native(image: Any, width: float, height: float, style: Any, current: Paint) -> Ground:
    """A gradient over a whole box, its stops in shares of the way that slides count them on."""
    _, kind, points, positions, colours, _ = image.layout(width, height, style)
    if kind == "solid":
        return paint_of(colours[0], current)
    paints = _visible([paint_of(colour, current) for colour in colours])
    if kind == "linear":
        dx, dy = points[2] - points[0], points[3] - points[1]
        length = math.hypot(dx, dy) or 1.0
        ux, uy = dx / length, dy / length
        line = abs(width * ux) + abs(height * uy) or 1.0
        start = ((points[0] - width / 2) * ux + (points[1] - height / 2) * uy) / line + 0.5
        share = length / line
        angle = math.degrees(math.atan2(uy, ux)) % 360
        stops = [(start + at * share, paint) for at, paint in zip(positions, paints, strict=True)]
        return Gradient(angle, _clipped(stops))
    scale_y = image.layout(width, height, style)[0]
    cx, cy = points[3] / width, points[4] * scale_y / height
    far = _FAR * max(cx * width, (1 - cx) * width, 1.0)
    stops = [
        ((points[2] + at * (points[5] - points[2])) / far, paint)
        for at, paint in zip(positions, paints, strict=True)
    ]
    return Gradient(0.0, _clipped(stops), (min(1.0, max(0.0, cx)), min(1.0, max(0.0, cy))))


def _visible(paints: list[Paint]) -> list[Paint]:
    """Colours of stops where nothing is seen take the colour of the stop beside them: no grey in between."""
    out = list(paints)
    for order in (range(len(out)), reversed(range(len(out)))):
        seen: Paint | None = None
        for index in order:
            if paints[index].alpha > 0:
                seen = paints[index]
            elif seen is not None:
                out[index] = Paint(seen.rgb, 0.0)
    return out


def _clipped(stops: Stops) -> tuple[tuple[float, Paint], ...]:
    """Stops between 0 and 1, with those at the ends that the rest comes to there."""
    if len(stops) > _STOPS_MAX:
        stops = stops[:: -(-len(stops) // _STOPS_MAX)]
    inside = [(at, paint) for at, paint in stops if 0 <= at <= 1]
    first, last = _at(stops, 0.0), _at(stops, 1.0)
    if not inside or inside[0][0] > 0:
        inside.insert(0, (0.0, first))
    if inside[-1][0] < 1:
        inside.append((1.0, last))
    return tuple(inside)


def _at(stops: Stops, place: float) -> Paint:
    """The colour at a place."""
    if place <= stops[0][0]:
        return stops[0][1]
    for (start, one), (end, other) in pairwise(stops):
        if start <= place <= end:
            share = (place - start) / (end - start) if end > start else 1.0
            parts = [
                round(int(one.rgb[i : i + 2], 16) * (1 - share) + int(other.rgb[i : i + 2], 16) * share)
                for i in (0, 2, 4)
            ]
            return Paint("".join(f"{part:02x}" for part in parts), one.alpha * (1 - share) + other.alpha * share)
    return stops[-1][1]


def _defs(image: Any, width: float, height: float, style: Any, current: Paint) -> Element:
    """A gradient as a paint server of a drawing."""
    scale_y, kind, points, positions, colours, _ = image.layout(width, height, style)
    paints = _visible([paint_of(colour, current) for colour in colours])
    values = {"id": "g", "gradientUnits": "userSpaceOnUse"}
    if kind == "solid":
        positions, paints = [0.0, 1.0], paints * 2
        values |= {"x1": "0", "y1": "0", "x2": "1", "y2": "0"}
    elif isinstance(image, LinearGradient):
        values |= {name: f"{point:.3f}" for name, point in zip(("x1", "y1", "x2", "y2"), points, strict=True)}
    else:
        first, last = points[2], points[5]
        positions = [(first + at * (last - first)) / last if last else at for at in positions]
        values |= {name: f"{point:.3f}" for name, point in zip(("cx", "cy", "r"), points[3:], strict=True)}
        values["gradientTransform"] = f"scale(1,{scale_y:.4f})"
    tag = "linearGradient" if isinstance(image, LinearGradient) or kind == "solid" else "radialGradient"
    server = Element(f"{{{_SVG}}}{tag}", values)
    for at, paint in zip(positions, paints, strict=True):
        stop = {"offset": f"{at:.4f}", "stop-color": f"#{paint.rgb}", "stop-opacity": f"{paint.alpha:.3f}"}
        server.append(Element(f"{{{_SVG}}}stop", stop))
    return server


def _drawing(
    area: tuple[float, float], tile: tuple[float, float, float, float], repeat: tuple[bool, ...], server: Element
) -> Element:
    """A drawing of an area with a tile on it, once or as a pattern."""
    (width, height), (left, top, wide, tall) = area, tile
    size = {"width": f"{width:.2f}", "height": f"{height:.2f}"}
    root = Element(f"{{{_SVG}}}svg", {**size, "viewBox": f"0 0 {width:.2f} {height:.2f}"})
    step = {"width": f"{wide if repeat[0] else 1e5:.3f}", "height": f"{tall if repeat[1] else 1e5:.3f}"}
    values = {"id": "p", "patternUnits": "userSpaceOnUse", **step}
    x, y = (left % wide if repeat[0] else left), (top % tall if repeat[1] else top)
    values["patternTransform"] = f"translate({x:.3f},{y:.3f})"
    pattern = Element(f"{{{_SVG}}}pattern", values)
    pattern.append(Element(f"{{{_SVG}}}rect", {"width": f"{wide:.3f}", "height": f"{tall:.3f}", "fill": "url(#g)"}))
    defs = Element(f"{{{_SVG}}}defs")
    defs.extend((server, pattern))
    root.append(defs)
    if all(repeat):
        root.append(Element(f"{{{_SVG}}}rect", {**size, "fill": "url(#p)"}))
        return root
    for part in _once((width, height), (x, y, wide, tall), repeat):
        root.append(part)
    return root


def _once(
    area: tuple[float, float], tile: tuple[float, float, float, float], repeat: tuple[bool, ...]
) -> list[Element]:
    """The tiles of a row, of a column, or the one that there is."""
    (width, height), (x, y, wide, tall) = area, tile
    across = min(_ONCE_MAX, math.ceil(width / wide) + 1) if repeat[0] else 0
    down = min(_ONCE_MAX, math.ceil(height / tall) + 1) if repeat[1] else 0
    rows = []
    for column in range(-1 if repeat[0] else 0, across or 1):
        for row in range(-1 if repeat[1] else 0, down or 1):
            values = {"width": f"{wide:.3f}", "height": f"{tall:.3f}", "fill": "url(#g)"}
            values["transform"] = f"translate({x + column * wide:.3f},{y + row * tall:.3f})"
            rows.append(Element(f"{{{_SVG}}}rect", values))
    return rows
