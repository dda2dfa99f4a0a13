"""Compares times of the other team without and with the attack. Pure.

Medians are compared: with some twenty allocations a high percentile is one or two of them, and random on a machine with
other load. The 95th percentile is in the table for information.
"""

from collections.abc import Iterator, Mapping, Sequence

from bench.statistics import compare, percentile

TIMES = 2.0
FLOOR_S = 0.25
"""Seconds that a median may grow in addition: on two shared cores tens of milliseconds may double without the attack,
and a quarter of a second is hardly noticed.
"""
FEWEST = 8
"""The minimum number of samples of each side for a meaningful median."""
LAG = "watcher behind the API server"
MOST_LAG_S = 5.0
Series = Mapping[str, Sequence[float]]


def slower(calm: Series, attacked: Series) -> Iterator[str]:
    """Return a sentence for each measure that became too slow, or has too few samples."""
    for name in sorted({*calm, *attacked} - {LAG}):
        before, after = calm.get(name, ()), attacked.get(name, ())
        if min(len(before), len(after)) < FEWEST:
            yield f"{name}: measured {len(before)} times without him and {len(after)} with him; {FEWEST} are needed"
            continue
        allowed = TIMES * percentile(before, 0.5) + FLOOR_S
        if (now := percentile(after, 0.5)) > allowed:
            yield (
                f"{name}: {now:.2f} s with him, median of {len(after)}; {percentile(before, 0.5):.2f} s without, so "
                f"at most {allowed:.2f} s"
            )


def late(attacked: Series) -> Iterator[str]:
    """Return a sentence if the watcher was too late, or was measured too rarely."""
    behind = attacked.get(LAG, ())
    if len(behind) < FEWEST:
        yield f"{LAG}: measured {len(behind)} times; {FEWEST} are needed"
    if above := [one for one in behind if one > MOST_LAG_S]:
        yield f"{LAG}: {max(above):.1f} s at the most, {len(above)} of {len(behind)} times above {MOST_LAG_S:g} s"


def table(calm: Series, attacked: Series) -> list[str]:
    """Return a line for each measure with samples of both sides."""
    lines = [f"{'measure':<44}{'calm':>16}{'attacked':>16}{'ratio':>7}  95 % interval   samples"]
    for name in sorted(set(calm) & set(attacked)):
        found = compare(attacked[name], calm[name])
        before, after = f"{found.beside_p50_s:.3f} {found.beside_p95_s:.3f}", f"{found.p50_s:.3f} {found.p95_s:.3f}"
        between, samples = f"{found.low:.2f}-{found.high:.2f}", f"{len(calm[name])}, {len(attacked[name])}"
        lines.append(f"{name:<44}{before:>16}{after:>16}{found.ratio:>7.2f}  {between:<14}  {samples}")
    return [*lines, "(seconds: median and 95th percentile)"]
