"""The input of the admission rules: a request with the limits that apply. Pure."""

from dataclasses import dataclass

PRIORITIES = {"batch": 50, "normal": 100, "critical": 1000}
LIVE_PER_PROJECT = 250
"""The guard's data takes 256 allocations (CRD GpuProject, maxProperties)."""


@dataclass(frozen=True)
class Counted:
    """A limit that the portal counts itself, in slices of what is asked; ``holder`` is whose it is."""

    dimension: str
    holder: str
    limit: int
    used: int


@dataclass(frozen=True)
class AllocationLimit:
    """How many allocations ``holder`` (project, or member: one person in the project) may have that are live, or that
    are scheduled and wait for their start."""

    holder: str
    is_scheduled: bool
    limit: int
    used: int

    @property
    def is_full(self) -> bool:
        return self.used >= self.limit


@dataclass(frozen=True)
class AdmissionInput:
    """A request with everything that decides it. Slice counts are integers of the offering; times are aware UTC.

    ``quota`` is the most that Kueue could give the team if nobody held anything, ``used`` the part of it in use,
    ``own`` the team's nominal quota with what it may borrow (None: unlimited), all in slices of this offering;
    ``counted`` are limits that the portal counts. ``allocation_limits`` bound the number of allocations; ``spread``
    lets slices by DRA be on several nodes. ``max_colocated`` is the most that its constraints let one request have on
    an idle fleet, and ``free_colocated`` the most of it now: None without named devices. ``one_at_a_time``: the device
    plugin refuses a container that requests more than one of the ``replicas`` of a card.
    """

    offering: str
    pool: str
    kind: str
    path: str
    count: int
    total: int
    free: int
    per_node: int
    quota: int
    used: int
    team: str
    priority: str = "normal"
    hidden: bool = False
    allocation_limits: tuple[AllocationLimit, ...] = ()
    spread: bool = False
    constraints: tuple[str, ...] = ()
    max_colocated: int | None = None
    free_colocated: int | None = None
    one_at_a_time: bool = False
    replicas: int = 1
    sharing: str = ""
    own: int | None = None
    department: str = ""
    counted: tuple[Counted, ...] = ()
