"""The GPUs on which something is stranded, and the change of their layout that would free it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from frontend.presenters.fleet import node_url
from portal.core import money
from quotas.metering.stranding import StrandedGpu

MAX_GPUS = 20
"""So many GPUs of a flavor are named."""
PLACES = 2


@dataclass(frozen=True)
class StrandedLine:
    """A GPU; ``url`` is its place on the page of its node, "" where that has none. ``devices`` are in use on it."""

    name: str
    url: str
    gpus: str
    devices: Sequence[str]
    change: str


def stranded_lines(gpus: Sequence[StrandedGpu], nodes: Collection[tuple[str, str]]) -> tuple[list[StrandedLine], int]:
    """Return the GPUs with most stranded first, at most MAX_GPUS, and how many more there are. ``nodes`` are those that
    have a page, as (cluster, name).
    """
    ordered = sorted(gpus, key=lambda one: -one.gpus)[:MAX_GPUS]
    return [_line(one, nodes) for one in ordered], len(gpus) - len(ordered)


def _line(one: StrandedGpu, nodes: Collection[tuple[str, str]]) -> StrandedLine:
    has_page = (one.cluster, one.node) in nodes
    return StrandedLine(
        name=" / ".join(filter(None, (one.node, one.name))),
        url=f"{node_url(one.cluster, one.node)}#{quote(one.name)}" if has_page else "",
        gpus=money.text(one.gpus, PLACES),
        devices=[device for device in one.devices if device],
        change=_change(one),
    )


def _change(one: StrandedGpu) -> str:
    """Return ``Offer a 1g.10gb, or move what is in use to another GPU.``"""
    if not one.devices:
        return f"Offer a {one.profile}." if one.profile else "Offer a slice of this GPU."
    if one.profile:
        return f"Offer a {one.profile}, or move what is in use to another GPU."
    return "No slice fits beside what is in use. Move that to another GPU."
