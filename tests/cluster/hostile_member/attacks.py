"""The kinds of attack, one entry each. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from tests.cluster.hostile_member import cluster_attacks as cluster
from tests.cluster.hostile_member import portal_attacks as portal
from tests.cluster.hostile_member.calls import AttackContext, Call


@dataclass(frozen=True)
class Attack:
    """``least``: the minimum number of calls a minute that counts as an attack. ``threads``: concurrent ones."""

    name: str
    calls: Callable[[Random, AttackContext], Iterator[Call]]
    min_per_minute: int = 20
    threads: int = 1

    @property
    def does(self) -> str:
        """Return the sentence that describes it."""
        return str(self.calls.__doc__)


ATTACKS = (
    Attack("CPU and memory", cluster.cpu_and_memory),
    Attack("many pods", cluster.many_pods),
    Attack("many replicas", cluster.many_replicas),
    Attack("objects too large", cluster.too_large_objects, threads=2),
    Attack("full objects", cluster.full_objects, threads=2),
    Attack("revisions", cluster.revisions),
    Attack("finalizers", cluster.finalizers),
    Attack("force deletion", cluster.force_deletion),
    Attack("services", cluster.services),
    Attack("token Secrets", cluster.token_secrets),
    Attack("later tolerations", cluster.added_tolerations),
    Attack("odd Jobs", cluster.odd_jobs),
    Attack("lists", cluster.lists),
    Attack("watches", cluster.watches),
    Attack("wrong passwords", portal.wrong_passwords, threads=2),
    Attack("wrong tokens", portal.wrong_tokens),
    Attack("scheduled requests", portal.scheduled_requests),
    Attack("requests and releases", portal.requests_and_releases),
    Attack("previews", portal.previews),
    Attack("reads", portal.reads),
    Attack("invalid bodies", portal.invalid_bodies),
    Attack("look-ups", portal.lookups),
    Attack("pages", portal.pages),
)


def chosen(names: str) -> tuple[Attack, ...]:
    """Return the named attacks, separated by commas; all for an empty text. Raises ValueError for an unknown name."""
    chosen_names = [name.strip() for name in names.split(",") if name.strip()]
    attacks_by_name = {attack.name: attack for attack in ATTACKS}
    if unknown := sorted(set(chosen_names) - set(attacks_by_name)):
        raise ValueError(f"no attack is called {', '.join(unknown)}; there are {', '.join(attacks_by_name)}")
    return tuple(attacks_by_name[name] for name in chosen_names) or ATTACKS


def calls_of_thread(attack: Attack, seed: int, thread: int, context: AttackContext) -> Iterator[Call]:
    """Return the calls of one thread of an attack: the same for the same seed."""
    return attack.calls(Random(f"{seed}/{attack.name}/{thread}"), context)
