"""Formats the results of a benchmark run as a table. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

MIB = 1024 * 1024
STATEMENTS = ("web", "worker", "watcher", "all", "reconciles")


def table(document: Mapping[str, Any]) -> str:
    lines = [f"{document['rounds']} rounds per side, {document['machine']['processors']} processors"]
    for part, tell in PARTS.items():
        if part in document:
            lines += ["", *tell(document[part])]
    return "\n".join(lines)


def _holds(part: Mapping[str, Any]) -> list[str]:
    lines = [_head("POST to active", "portal", "bare")]
    for name, path in part["paths"].items():
        lines.append(_line(name, path["post_to_active"]))
        lines.append(_line("  bare by itself", path["noise"]))
    lines += ["", f"{'writes at the API server':<30}{'to hold':>9}{'to release':>12}"]
    for name, path in part["paths"].items():
        lines.append(f"{name:<30}{path['writes']['hold']:>9}{path['writes']['release']:>12}")
    lines += ["", f"{'SQL statements to hold':<30}" + "".join(f"{name:>9}" for name in STATEMENTS)]
    for name, path in part["paths"].items():
        lines.append(f"{name:<30}" + "".join(f"{path['statements'][each]:>9g}" for each in STATEMENTS))
    few, many = list(next(iter(part["queries"].values())))
    lines += ["", f"{'SQL queries of GET':<36}{few + ' row':>8}{many + ' rows':>10}"]
    return lines + [f"{route:<36}{n[few]:>8}{n[many]:>10}" for route, n in part["queries"].items()]


def _catalogue(part: Mapping[str, Any]) -> list[str]:
    fleet = f"{part['nodes']} nodes, {part['devices']} named GPUs, {part['allocations']} allocations"
    lines = [f"{fleet}; inventory anew in {part['inventory_s']:.1f} s", _head("", "portal", "SQL, JSON") + "  queries"]
    return lines + [f"{_line(name, one)}  {one['queries']:>7}" for name, one in part["routes"].items()]


def _watcher(part: Mapping[str, Any]) -> list[str]:
    lag, memory = part["lag"], part["memory"]
    few = memory["few_bytes"]
    grown = {name: (memory[f"{name}_bytes"] - few) / MIB for name in ("watched", "listed", "peak")}
    return [
        f"watch to row, after a bare watch of {lag['changes']} changes: "
        f"p50 {lag['p50_s'] * 1000:.0f} ms, p95 {lag['p95_s'] * 1000:.0f} ms, worst {lag['worst_s'] * 1000:.0f} ms",
        f"memory of the watcher, {few / MIB:.0f} MiB, for {memory['objects']} objects more: watched "
        f"{grown['watched']:+.0f} MiB, listed {grown['listed']:+.0f} MiB, at the most {grown['peak']:+.0f} MiB",
    ]


def _rollups(part: Mapping[str, Any]) -> list[str]:
    head = f"{part['rows']} rows of usage in a year, made in {part['fill_s']:.0f} s"
    lines = [head, _head("", "portal", "by hand") + "  queries    rows"]
    for name, one in part["queries"].items():
        lines.append(f"{_line(name, one)}  {one['queries']:>7}{one['answer']:>8}")
        beside = {"DuckDB, usage": "duckdb_usage", "DuckDB, days": "duckdb_days", "with rounded money": "costs"}
        lines += [_alone(words, one[key]) for words, key in beside.items() if key in one]
        if "ledger_s" in one:
            lines.append(f"{'  from the ledger alone':<30}{one['ledger_s']:>10.3f} s")
    lines += ["", _head("over REST", "portal", "SQL, JSON") + "  queries    rows"]
    lines += [f"{_line(name, one)}  {one['queries']:>7}{one['answer']:>8}" for name, one in part["rest"].items()]
    sizes = [f"{name:<30}{one['rows']:>12}{one['bytes_per_row']:>14}" for name, one in part["tables"].items()]
    lines += ["", f"{'table':<30}{'rows':>12}{'bytes a row':>14}", *sizes]
    lines += ["", f"{'intervals a second':<30}{'recorded':>12}{'inserted':>14}{'ratio':>8}"]
    for name, one in part["recording"]["recorded"].items():
        lines.append(f"{name:<30}{one['recorded_per_s']:>12}{one['inserted_per_s']:>14}{one['ratio']:>8.2f}")
    hour = part["recording"]["rolled_up"]
    return [*lines, f"an hour of {hour['intervals']} is rolled up in {hour['seconds']} s, {hour['per_s']} a second"]


def _alone(name: str, one: Mapping[str, float]) -> str:
    return f"{'  ' + name:<30}{one['p50_s']:>10.3f} s{one['p95_s']:>9.3f}"


PARTS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "holds": _holds,
    "watcher": _watcher,
    "catalogue": _catalogue,
    "rollups": _rollups,
}


def _head(what: str, ours: str, beside: str) -> str:
    return f"{what:<30}{ours + ' p50':>12}{'p95':>9}{beside + ' p50':>15}{'p95':>9}{'ratio':>8}  95 % interval"


def _line(name: str, c: Mapping[str, float]) -> str:
    ours, beside = (
        (f"{c['p50_s']:.3f} s", f"{c['p95_s']:.3f}"),
        (f"{c['beside_p50_s']:.3f} s", f"{c['beside_p95_s']:.3f}"),
    )
    figures = f"{ours[0]:>12}{ours[1]:>9}{beside[0]:>15}{beside[1]:>9}"
    between = f"{c['low']:.2f}-{c['high']:.2f}"
    return f"{name:<30}{figures}{c['ratio']:>8.2f}  {between:<13}"
