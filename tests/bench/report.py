"""The document of a bench run as a table for people. Pure."""

from typing import Any


def table(document: dict[str, Any]) -> str:
    lines = [
        f"{document['rounds']} rounds per side and path, {document['machine']['processors']} processors",
        "",
        f"{'POST to active':<16}{'portal p50':>12}{'p95':>9}{'bare p50':>12}{'p95':>9}{'ratio':>8}  95 % interval",
    ]
    for name, path in document["paths"].items():
        lines.append(_line(name, path["post_to_active"]))
        lines.append(_line("  bare by itself", path["noise"]))
    lines += ["", f"{'writes at the API server':<28}{'to hold':>9}{'to release':>12}"]
    for name, path in document["paths"].items():
        lines.append(f"{name:<28}{path['writes']['hold']:>9}{path['writes']['release']:>12}")
    few, many = list(next(iter(document["queries"].values())))
    lines += ["", f"{'SQL queries of GET':<36}{few + ' row':>8}{many + ' rows':>10}"]
    lines += [f"{route:<36}{n[few]:>8}{n[many]:>10}" for route, n in document["queries"].items()]
    return "\n".join(lines)


def _line(name: str, c: dict[str, float]) -> str:
    ours, beside = (
        (f"{c['p50_s']:.3f} s", f"{c['p95_s']:.3f}"),
        (f"{c['beside_p50_s']:.3f} s", f"{c['beside_p95_s']:.3f}"),
    )
    figures = f"{ours[0]:>12}{ours[1]:>9}{beside[0]:>12}{beside[1]:>9}"
    return f"{name:<16}{figures}{c['ratio']:>8.2f}  {c['low']:.2f}-{c['high']:.2f}"
