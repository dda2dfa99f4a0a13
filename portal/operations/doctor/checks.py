"""Checks of the running portal, in the order in which an operator fixes problems. Pure."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from allocations.cluster.preflight.findings import ok, ok_or_problem, problem
from allocations.cluster.preflight.types import Finding, Status
from allocations.domain.etcd_usage import DISARM, FREE, LARGEST, Level
from portal.operations.doctor.facts import DatabaseFacts, Facts

SKEW_S = 2.0
CONNECTIONS_SHARE = 0.8
PROOF_AGE_S = 3 * 3600
SEAL_PERIODS = 5
SHOWN = 3
"""Of failing targets and of what is stuck so many are named."""
START = {
    "worker": "start `celery -A portal worker` and `celery -A portal beat`, which sends what its heartbeat follows",
    "watcher": "start `python manage.py watch`; it lists the cluster again",
}
Check = Callable[[Facts, DatabaseFacts], Iterator[Finding]]


def advice(check: str, found: str, fix: str) -> Finding:
    """Return a finding that does not stop the portal."""
    return Finding(check, Status.ADVICE, found, fix)


def ok_or_advice(check: str, is_ok: bool, found: str, fix: str) -> Finding:
    return ok(check, found) if is_ok else advice(check, found, fix)


def redis(facts: Facts) -> Iterator[Finding]:
    """Check that Redis answers, and that it evicts nothing."""
    found = facts.redis
    fix = (
        "start Redis, or correct REDIS_URL; until then work is found every SWEEP_S at best, and limits are not counted"
    )
    if found.error:
        yield problem("Redis", f"does not answer: {found.error}", fix)
    elif found.eviction not in ("noeviction", ""):
        fix = "set maxmemory-policy to noeviction: messages and counters that Redis evicts are lost"
        yield advice("Redis", f"works, but evicts keys ({found.eviction})", fix)
    else:
        yield ok("Redis", "works")


def migrations(database: DatabaseFacts) -> Iterator[Finding]:
    """Check that every migration of this release is applied."""
    missing = database.missing_migrations
    found = f"{missing} not applied" if missing else "all applied"
    yield ok_or_problem("Migrations", not missing, found, "as the owner of the tables: `python manage.py migrate`")


def append_only(_: Facts, database: DatabaseFacts) -> Iterator[Finding]:
    """Check that the portal's role may only add to the audit log and the ledger."""
    found = f"may change {_few(database.changeable)}" if database.changeable else "may only add to them"
    fix = "connect as a role that owns nothing, with the rights of `python manage.py grant ROLE`"
    yield ok_or_advice("Append-only tables", not database.changeable, found, fix)


def connections(_: Facts, database: DatabaseFacts) -> Iterator[Finding]:
    """Check that the database has connections left."""
    most = database.max_connections
    fix = "raise max_connections, or run fewer web processes and workers: each thread has a connection"
    is_ok = database.connections < CONNECTIONS_SHARE * most
    yield ok_or_advice("Connections", is_ok, f"{database.connections} of {most} in use", fix)


def processes(facts: Facts, database: DatabaseFacts) -> Iterator[Finding]:
    """Check that worker and watcher have worked lately."""
    for name, at in database.heartbeats.items():
        age_s = None if at is None else (facts.now - at).total_seconds()
        is_ok = age_s is not None and age_s <= facts.thresholds.stale_s
        found = "no heartbeat yet" if age_s is None else f"heartbeat {span(age_s)} ago"
        if name == "worker" and not is_ok and facts.redis.waiting:
            found += f"; {facts.redis.waiting} messages wait"
        yield ok_or_problem(name.capitalize(), is_ok, found, START[name])


def api_servers(_: Facts, database: DatabaseFacts) -> Iterator[Finding]:
    """Check that the API server answers with the portal's credentials."""
    for one in database.clusters:
        fix = "run `python manage.py preflight` with the same KUBECONFIG"
        if one.refused:
            yield problem(_of("API server", one.name, database), one.refused, fix)


def mirrors(facts: Facts, database: DatabaseFacts) -> Iterator[Finding]:
    """Check that the watcher's copy of the cluster is current."""
    for one in database.clusters:
        age = None if one.mirrored_at is None else facts.now - one.mirrored_at
        found = "never read" if age is None else f"in sync {span(age.total_seconds())} ago"
        is_ok = age is not None and age.total_seconds() <= facts.thresholds.mirror_s
        fix = "see the watcher's log; where its heartbeat is current, the API server does not answer its watches"
        name = _of("Cluster cache", one.name, database)
        yield ok(name, "in sync") if is_ok else problem(name, found, fix)


def clocks(_: Facts, database: DatabaseFacts) -> Iterator[Finding]:
    """Check that the clocks of this machine, the database and the API servers agree."""
    skews = [("the database", database.ahead_s)]
    skews += [(f"cluster {one.name}", one.skew_s) for one in database.clusters if one.skew_s is not None]
    wrong = [f"{name} {abs(s):.1f} s {'ahead' if s > 0 else 'behind'}" for name, s in skews if abs(s) > SKEW_S]
    fix = "correct the clocks by NTP: the ledger has times of both"
    yield ok_or_advice("Clocks", not wrong, "; ".join(wrong) or f"agree within {SKEW_S:.0f} s", fix)


def stores(_: Facts, database: DatabaseFacts) -> Iterator[Finding]:
    """Check how much of its quota etcd uses."""
    for one in database.clusters:
        name, level = _of("etcd", one.name, database), one.store.level
        if level in (Level.CRITICAL, Level.FULL):
            yield problem(name, one.store.summary, DISARM if level is Level.FULL else FREE)
        else:
            yield ok_or_advice(name, level is Level.NORMAL, one.store.summary, f"{FREE}; {LARGEST}")


def work_queue(facts: Facts, database: DatabaseFacts) -> Iterator[Finding]:
    """Check that what is due is done in time, and that nothing fails again and again."""
    work = database.work
    lag = f", the longest for {span(work.lag_s)}" if work.due else ""
    fix = "start more workers where their processors are busy; otherwise see the worker's log"
    is_ok = work.lag_s <= facts.thresholds.stale_s
    yield ok_or_problem("Work queue", is_ok, f"{work.due or 'nothing'} due{lag}", fix)
    named = _few([f"{one.target} ({one.attempts} times: {one.error})" for one in work.first_failing], work.failing)
    fix = "each is tried again by itself; search the worker's log for its target"
    found = f"{work.failing}: {named}" if work.failing else "none"
    yield ok_or_advice("Failing targets", not work.failing, found, fix)


def stuck(facts: Facts, database: DatabaseFacts) -> Iterator[Finding]:
    """Check that no allocation or namespace stays in a state that passes by itself."""
    lines = [f"{one.name} is {one.state} for {_age(one.since, facts.now)}" for one in database.stuck]
    lines = [
        f"{line} ({one.message})" if one.message else line for line, one in zip(lines, database.stuck, strict=True)
    ]
    fix = "see its page or `kubectl describe`: a node that does not answer, or a finalizer, keeps what it waits for"
    yield ok_or_advice("Stuck", not lines, _few(lines) or "nothing", fix)


def leases(_: Facts, database: DatabaseFacts) -> Iterator[Finding]:
    """Check that nothing is used beyond a lease, and nothing held without a charge."""
    found = f"{database.over_lease} use more than they were given" if database.over_lease else "none"
    fix = "Admin, Lease excesses says what is used; end what is left: docs/operate/guard-limits.md"
    yield ok_or_problem("Use beyond a lease", not database.over_lease, found, fix)
    uncharged = sum(one.uncharged for one in database.clusters)
    found = f"{uncharged} hold slices that nobody is charged for" if uncharged else "none"
    fix = "start the worker; if it runs and this stays for two minutes, report it to the portal's maintainers"
    yield ok_or_problem("Uncharged use", not uncharged, found, fix)


def ledgers(facts: Facts, database: DatabaseFacts) -> Iterator[Finding]:
    """Check that the ledger adds up, and that it was proved lately."""
    for one in database.clusters:
        if one.proof is None:
            continue
        name, age_s = _of("Ledger", one.name, database), (facts.now - one.proof.until).total_seconds()
        unchecked = f", {_hours(one.proof.missing)} not checked yet" if one.proof.missing else ""
        if one.proof.failed:
            fix = "Costs, Reconciliation names the rows; `python manage.py prove_balance` checks the whole past"
            yield problem(name, f"{_hours(one.proof.failed)} not balanced{unchecked}", fix)
        else:
            late = f", last checked {span(age_s)} ago" if age_s > PROOF_AGE_S else ""
            fix = "see the worker's log for allocations.prove_balance"
            yield ok_or_advice(name, not late, f"balanced{unchecked}{late}", fix)


def audit_log(facts: Facts, database: DatabaseFacts) -> Iterator[Finding]:
    """Check that new entries of the audit log are chained."""
    since = database.unsealed_since
    late = since is not None and (facts.now - since).total_seconds() > SEAL_PERIODS * facts.thresholds.seal_s
    found = f"not chained for {_age(since, facts.now)}" if since and late else "chained"
    yield ok_or_advice("Audit log", not late, found, "start beat and worker; see their logs for core.seal_audit")


CHECKS: tuple[Check, ...] = (
    append_only,
    connections,
    processes,
    api_servers,
    mirrors,
    clocks,
    stores,
    work_queue,
    stuck,
    leases,
    ledgers,
    audit_log,
)


def run_checks(facts: Facts) -> list[Finding]:
    """Return the findings of all checks, in their order; without the database or its tables, of those before them."""
    if isinstance(facts.database, str):
        fix = "start PostgreSQL, or correct DATABASE_URL; nothing works without it"
        return [problem("Database", facts.database, fix), *redis(facts)]
    found = [ok("Database", "works"), *redis(facts), *migrations(facts.database)]
    if facts.database.missing_migrations:
        return found
    return found + [finding for check in CHECKS for finding in check(facts, facts.database)]


def worst(findings: Iterable[Finding]) -> int:
    """Return 0 if all are ok, 1 if there is advice, 2 if there is a problem."""
    rank = (Status.OK, Status.ADVICE, Status.PROBLEM)
    return max((rank.index(finding.status) for finding in findings), default=0)


def span(seconds: float) -> str:
    """Return a length of time in its largest unit: 45 s, 12 min, 5 h, 3 days."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _age(at: datetime, now: datetime) -> str:
    return span((now - at).total_seconds())


def _hours(count: int) -> str:
    return f"{count} hour{'' if count == 1 else 's'}"


def _few(names: Iterable[str], total: int | None = None) -> str:
    known = list(names)
    more = (len(known) if total is None else total) - len(known[:SHOWN])
    return "; ".join([*known[:SHOWN], *([f"{more} more"] if more > 0 else [])])


def _of(check: str, cluster: str, database: DatabaseFacts) -> str:
    return f"{check} of {cluster}" if len(database.clusters) > 1 else check
