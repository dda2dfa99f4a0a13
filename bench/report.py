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
    return lines


def _catalogue(part: Mapping[str, Any]) -> list[str]:
    fleet = f"{part['nodes']} nodes, {part['devices']} named GPUs, {part['allocations']} allocations"
    lines = [f"{fleet}; inventory anew in {part['inventory_s']:.1f} s", _head("", "portal", "SQL, JSON") + "  queries"]
    return lines + [f"{_line(name, one)}  {one['queries']:>7}" for name, one in part["routes"].items()]


def _rollups(part: Mapping[str, Any]) -> list[str]:
    lines = [f"{part['rows']} rows of usage in a year"]
    for head, beside in (("queries", "by hand"), ("rest", "SQL, JSON")):
        lines += ["", _head("over REST" if head == "rest" else "", "portal", beside) + "  queries    rows"]
        lines += [f"{_line(name, one)}  {one['queries']:>7}{one['answer']:>8}" for name, one in part[head].items()]
    lines += ["", f"{'intervals a second':<30}{'recorded':>12}{'inserted':>14}{'ratio':>8}"]
    for name, one in part["recording"]["recorded"].items():
        lines.append(f"{name:<30}{one['recorded_per_s']:>12}{one['inserted_per_s']:>14}{one['ratio']:>8.2f}")
    hour = part["recording"]["rolled_up"]
    return [*lines, f"an hour of {hour['intervals']} is rolled up in {hour['seconds']} s, {hour['per_s']} a second"]


def _throughput(part: Mapping[str, Any]) -> list[str]:
    portal, (first, second) = part["portal"], part["bare"]
    ratio, even, written = part["ratio"], portal["fairness"], portal["writes"]
    objects = ", ".join(f"{name} {written[name]}" for name in ("workloads", "resourcequotas", "gpuprojects", "status"))
    return [
        f"{portal['requests']} requests at once by {part['teams']} teams, {portal['held']} held",
        f"{'':<14}{'accepted/s':>12}{'held/s':>9}{'p50':>11}{'p95':>9}",
        *(_rates(name, each) for name, each in (("portal", portal), ("bare", first), ("bare again", second))),
        f"portal to bare: accepted {ratio['accepted']:.2f}, held {ratio['held']:.2f}; bare by itself "
        f"{part['bare_by_itself']:.2f}; released {part['released_per_s']:.1f}/s",
        f"writes at the API server: {written['all']} ({objects}), "
        + ("exactly one an object and status step" if written["is_exact"] else "NOT one an object and status step"),
        f"when half was held, a team held {even['least_at_half']} to {even['most_at_half']} of its {even['each']}; "
        f"all of a team's: {even['first_team_done_s']:.1f} to {even['last_team_done_s']:.1f} s",
        f"bound by {portal['bound_by']}; processors busy {portal['processors_busy']:.0%}; "
        f"at the most {portal['most_targets_due']} targets due",
        *(f"  {name:<52}{seconds:>8.2f} s" for name, seconds in portal["stages_s"].items()),
        f"  processor time a hold: {_processors(portal['processor_ms_per_hold'])}",
    ]


def _rate(part: Mapping[str, Any]) -> list[str]:
    portal, bare, halves = part["portal"], part["bare"], part["bare_halves_p95_s"]
    return [
        f"{part['per_s']:g} requests a second for {part['seconds']} s by {part['teams']} teams",
        f"{'':<14}{'held':>9}{'p50':>11}{'p95':>9}{'worst':>9}",
        *(
            f"{name:<14}{one['requests']:>9}{one['p50_s']:>9.3f} s{one['p95_s']:>9.3f}{one['worst_s']:>9.3f}"
            for name, one in (("portal", portal), ("bare", bare))
        ),
        f"added: p50 {part['added_p50_s']:.3f} s, p95 {part['added_p95_s']:.3f} s; the bare client's p95 before and "
        "after " + ", ".join(f"{half:.3f} s" for half in halves),
        f"processors busy {part['processors_busy']:.0%}; a hold: {_processors(part['processor_ms_per_hold'])}",
    ]


def _growth(part: Mapping[str, Any]) -> list[str]:
    routes = list(part["by_ended"][0]["routes_ms"])
    head = f"{'ended':>9}{'live':>7}{'portal p50':>12}{'p95':>8}{'bare p50':>10}{'ratio':>7}{'SQL':>6}"
    lines = [head + "".join(f"{route:>28}" for route in routes)]
    for one in [*part["by_ended"], *part["by_live"][1:]]:
        lines.append(
            f"{one['ended']:>9}{one['live']:>7}{one['portal_p50_s']:>10.3f} s{one['portal_p95_s']:>8.3f}"
            f"{one['bare_p50_s']:>8.3f} s{one['ratio']:>7.2f}{one['statements']:>6g}"
            + "".join(f"{one['routes_ms'][route]:>25.1f} ms" for route in routes)
        )
    return lines


def _observed(part: Mapping[str, Any]) -> list[str]:
    lines = [f"{'objects':>9}{'watcher':>11}{'highest':>10}{'lag p50':>10}{'p95':>8}{'restart':>10}{'cold start':>12}"]
    for one in part["points"]:
        lines.append(
            f"{one['objects']:>9}{one['memory_bytes'] / MIB:>7.0f} MiB{one['peak_bytes'] / MIB:>6.0f} MiB"
            f"{one['lag_p50_s'] * 1000:>7.0f} ms{one['lag_p95_s'] * 1000:>8.0f}{one['restart_s']:>8.1f} s"
            f"{one['cold_start_s']:>10.1f} s"
        )
    lines += ["", f"{'processor ms an event':<24}{'watcher':>9}{'PostgreSQL':>12}"]
    lines += [f"{name:<24}{c['watcher_ms']:>9.2f}{c['database_ms']:>12.2f}" for name, c in part["cost_ms"].items()]
    fleet = part["fleet"]
    events = ", ".join(f"{rate:g} {name}" for name, rate in fleet["events_per_s"].items())
    memory, highest = fleet["memory_bytes"] / MIB, fleet["peak_bytes"] / MIB
    return [
        *lines,
        "",
        f"on paper, {fleet['assumed']['nodes']} nodes of {fleet['assumed']['gpus_of_node']} GPUs: {events} events and "
        f"{fleet['holds_per_s']:g} holds a second",
        f"  watcher {fleet['watcher_processors']:.2f} of a processor, "
        f"PostgreSQL {fleet['database_processors']:.2f} for it",
        f"  {fleet['objects']} objects: {memory:.0f} MiB, highest {highest:.0f} MiB, "
        f"restart {fleet['restart_s']:.0f} s, cold start {fleet['cold_start_s']:.0f} s",
    ]


def _rates(name: str, one: Mapping[str, Any]) -> str:
    return (
        f"{name:<14}{one['accepted_per_s']:>12.1f}{one['held_per_s']:>9.1f}{one['p50_s']:>9.2f} s{one['p95_s']:>9.2f}"
    )


def _processors(ms: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {each:g} ms" for name, each in ms.items() if each >= 1)


PARTS: Mapping[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "holds": _holds,
    "throughput": _throughput,
    "rate": _rate,
    "growth": _growth,
    "observed": _observed,
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
