"""Checks of etcd's size and quota. Pure."""

from collections.abc import Iterator, Mapping

from allocations.cluster.preflight.findings import ok, problem, unreadable
from allocations.cluster.preflight.types import ClusterFacts, Finding, ReadError, Requirements, Status
from allocations.domain.etcd_usage import DISARM, FREE, LARGEST, SUGGESTED_MAX, Level, Store, amount


def etcd_size(facts: ClusterFacts, requirements: Requirements) -> Iterator[Finding]:
    """Check how much of its quota etcd's database uses."""
    name = "etcd"
    if isinstance(facts.store_bytes, ReadError):
        yield unreadable(name, facts.store_bytes)
        return
    store = Store(requirements.etcd_quota_bytes, facts.store_bytes)
    if store.size_bytes is None:
        fix = "watch etcd's own etcd_mvcc_db_total_size_in_bytes against its quota; the portal cannot"
        yield Finding(name, Status.ADVICE, "the API server does not tell its size", fix)
        return
    statuses = {Level.NORMAL: Status.OK, Level.HIGH: Status.ADVICE}
    status = statuses.get(store.level, Status.PROBLEM)
    fix = f"{DISARM if store.level is Level.FULL else FREE}. {_largest(facts.stored_kib)}"
    yield Finding(name, status, store.summary, "" if status is Status.OK else fix)


def _largest(stored_kib: Mapping[str, int]) -> str:
    """Return a sentence that names the projects whose objects may use the most space."""
    most = sorted(stored_kib.items(), key=lambda item: (-item[1], item[0]))[:3]
    named = ", ".join(f"{namespace} (at most {kib // 1024} MiB)" for namespace, kib in most if kib)
    return f"Most objects: {named}" if named else LARGEST


def etcd_quota(facts: ClusterFacts, requirements: Requirements) -> Iterator[Finding]:
    """Check that the configured quota of etcd has room for at least one project.

    Only settings are compared, since the API server does not publish etcd's quota.
    """
    name = "etcd's quota"
    quota, project = requirements.etcd_quota_bytes, requirements.project_store_mib * 1024**2
    projects = quota // max(1, project)
    found = f"ETCD_QUOTA_BYTES is {amount(quota)}: {projects} projects at their bound of {amount(project)} fill it"
    if projects < 1:
        fix = (
            "lower PROJECT_STORE_MIB, or raise etcd's --quota-backend-bytes and ETCD_QUOTA_BYTES: one project fills it"
        )
        yield problem(name, found, fix)
    elif quota > SUGGESTED_MAX:
        fix = "etcd suggests 8 GiB at most; give events an etcd of their own (--etcd-servers-overrides) instead"
        yield Finding(name, Status.ADVICE, found, fix)
    else:
        yield ok(name, found)
