"""What the watcher hears of a week: it is away in gaps, and then lists what there is. It knows nothing of the portal.

| in a gap | is heard of as |
|---|---|
| an end | at the gap's start |
| a start by DRA | when it was: the claim says so |
| a start of a count | when its lease was admitted, but not before the gap |
| a start of foreign use, and what a node has become | at the gap's start |
| a start and its end | nothing |
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.support.week.plan import MOVED_PROJECTS, PROJECTS, NodeState, Plan, Span, Times, Use


def gap_at(second: int, times: Times) -> Span | None:
    """Return the gap in which this second is; None if the watcher hears what happens then."""
    return next((gap for gap in times.gaps if gap.start <= second < gap.end), None)


def as_heard(plan: Plan) -> Plan:
    """Return the week as the ledger should have it. What a project of the moved team begins from the move on is that of
    another project: its number and ``PROJECTS``.
    """
    times = plan.times
    nodes = {name: list(_states(states, times)) for name, states in plan.nodes.items()}
    jobs = [replace(job, project=_project(job.project, job.span.start, times)) for job in plan.jobs]
    return Plan(times, list(_uses(plan.uses, times)), jobs, nodes)


def _uses(uses: Sequence[Use], times: Times) -> Iterator[Use]:
    for use in uses:
        (start, end), begun_in, ended_in = use.span, *(gap_at(edge, times) for edge in use.span)
        if begun_in is not None and begun_in == ended_in:
            continue
        if begun_in is not None and use.project is None:
            start = begun_in.start
        elif begun_in is not None and not use.devices:
            start = max(begun_in.start, use.admitted)
        heard = begun_in.end if begun_in is not None else use.span.start + use.late
        project = None if use.project is None else _project(use.project, heard, times)
        yield replace(use, project=project, span=Span(start, ended_in.start if ended_in is not None else end))


def _states(states: Sequence[NodeState], times: Times) -> Iterator[NodeState]:
    """Yield the states of a node; of those in a gap only the last is heard of."""
    for state, later in zip(states, [*states[1:], None], strict=True):
        gap = gap_at(state.start, times)
        if gap is None:
            yield state
        elif later is None or gap_at(later.start, times) != gap:
            yield state._replace(start=gap.start)


def _project(project: int, heard: int, times: Times) -> int:
    return project + PROJECTS if project in MOVED_PROJECTS and heard >= times.moved else project
