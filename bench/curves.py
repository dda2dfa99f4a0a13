"""Draws the curves of the parts ``growth`` and ``observed`` as SVG files. Both axes begin at zero."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 30, 40, 70
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")
TICKS = 5
STEPS = (1, 2, 2.5, 5, 10)
Points = Sequence[tuple[float, float]]


def svg(title: str, x_label: str, y_label: str, series: Mapping[str, Points]) -> str:
    """Return a chart with a line and a legend entry for each series of points (x, y)."""
    points = [point for each in series.values() for point in each]
    x_max, y_max = (_end(max(point[axis] for point in points)) for axis in (0, 1))

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = (WIDTH - LEFT - RIGHT) * x / x_max, (HEIGHT - TOP - BOTTOM) * y / y_max
        return round(LEFT + across, 1), round(HEIGHT - BOTTOM - up, 1)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif" '
        'font-size="12">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 22, title, "middle", 15),
        _text(WIDTH / 2, HEIGHT - 34, x_label, "middle"),
        _text(LEFT, TOP - 8, y_label, "start"),
    ]
    for n in range(TICKS + 1):
        (x, bottom), (_, y) = place(x_max * n / TICKS, 0), place(0, y_max * n / TICKS)
        lines.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="#ddd"/>')
        lines.append(_text(LEFT - 6, y + 4, _number(y_max * n / TICKS), "end"))
        lines.append(_text(x, bottom + 16, _number(x_max * n / TICKS), "middle"))
    for n, (name, each) in enumerate(series.items()):
        colour, places = COLOURS[n % len(COLOURS)], [place(x, y) for x, y in each]
        path = " ".join(f"{x},{y}" for x, y in places)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines += [f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in places]
        at = LEFT + n * (WIDTH - LEFT) / len(series)
        lines.append(f'<rect x="{at:.0f}" y="{HEIGHT - 20}" width="12" height="4" fill="{colour}"/>')
        lines.append(_text(at + 18, HEIGHT - 14, name, "start"))
    return "\n".join([*lines, "</svg>\n"])


def draw(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the curves of the measured parts into the folder; return the files."""
    written = []
    for part, charts in CHARTS.items():
        for name, chart in charts.items() if part in document else ():
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{name}.svg"
            path.write_text(chart(document[part]), encoding="utf-8")
            written.append(path)
    return written


def _curve(points: Sequence[Mapping[str, Any]], x: str, y: str, factor: float = 1.0) -> Points:
    return [(point[x], point[y] * factor) for point in points]


def _holds(axis: str, label: str) -> Callable[[Mapping[str, Any]], str]:
    def chart(part: Mapping[str, Any]) -> str:
        points = part[f"by_{axis}"]
        names = {"portal, median": "portal_p50_s", "portal, p95": "portal_p95_s", "bare client, median": "bare_p50_s"}
        series = {name: _curve(points, axis, key, 1000) for name, key in names.items()}
        return svg(f"POST to active, by {label}", label, "ms", series)

    return chart


def _pages(axis: str, label: str) -> Callable[[Mapping[str, Any]], str]:
    def chart(part: Mapping[str, Any]) -> str:
        points = part[f"by_{axis}"]
        series = {
            route: [(point[axis], point["routes_ms"][route]) for point in points] for route in points[0]["routes_ms"]
        }
        return svg(f"Answers to an operator, by {label}", label, "ms, median", series)

    return chart


def _watcher(title: str, unit: str, factor: float, names: Mapping[str, str]) -> Callable[[Mapping[str, Any]], str]:
    def chart(part: Mapping[str, Any]) -> str:
        series = {name: _curve(part["points"], "objects", key, factor) for name, key in names.items()}
        return svg(title, "observed objects", unit, series)

    return chart


MIB = 1 / 1024**2
CHARTS: Mapping[str, Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "growth": {
        "holds-by-live": _holds("live", "live allocations"),
        "holds-by-ended": _holds("ended", "ended allocations"),
        "answers-by-live": _pages("live", "live allocations"),
        "answers-by-ended": _pages("ended", "ended allocations"),
    },
    "observed": {
        "watcher-memory": _watcher(
            "Memory of the watcher", "MiB", MIB, {"running": "memory_bytes", "highest, while it lists": "peak_bytes"}
        ),
        "watcher-start": _watcher(
            "Start of the watcher", "seconds", 1, {"rows known": "restart_s", "rows unknown": "cold_start_s"}
        ),
        "watcher-lag": _watcher(
            "Lag of the watcher behind a bare watch", "ms", 1000, {"median": "lag_p50_s", "p95": "lag_p95_s"}
        ),
    },
}


def _end(highest: float) -> float:
    """Return the round number at which an axis ends."""
    power = 1.0
    while power * 10 <= highest:
        power *= 10
    while power > highest > 0:
        power /= 10
    return next(power * step for step in STEPS if power * step >= highest) if highest else 1.0


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.3g}"


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
