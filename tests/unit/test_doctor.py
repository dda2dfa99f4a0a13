"""What the checks of the running portal find, and their fixes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from allocations.cluster.preflight.types import Status
from allocations.domain.etcd_usage import Store
from portal.operations.doctor.checks import run_checks, span, worst
from portal.operations.doctor.facts import (
    ClusterFacts,
    DatabaseFacts,
    Facts,
    FailingTarget,
    Proof,
    RedisFacts,
    Stuck,
    Work,
)

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
PROOF = Proof(until=NOW - HOUR)
CLUSTER = ClusterFacts("a", mirrored_at=NOW, store=Store(1000, 100), skew_s=0.1, proof=PROOF)
DATABASE = DatabaseFacts(heartbeats={"worker": NOW, "watcher": NOW}, clusters=[CLUSTER])
GOOD = Facts(NOW, DATABASE, RedisFacts())


def database(**changes):
    return replace(GOOD, database=replace(DATABASE, **changes))


def cluster(**changes):
    return database(clusters=[replace(CLUSTER, **changes)])


def test_of_a_healthy_portal_every_check_is_ok():
    assert {one.status for one in run_checks(GOOD)} == {Status.OK}
    assert worst(run_checks(GOOD)) == 0


@pytest.mark.parametrize(
    ("facts", "check", "status", "found"),
    [
        (replace(GOOD, database="connection refused"), "Database", "problem", "connection refused"),
        (replace(GOOD, redis=RedisFacts("timed out")), "Redis", "problem", "does not answer: timed out"),
        (
            replace(GOOD, redis=RedisFacts(eviction="allkeys-lru")),
            "Redis",
            "advice",
            "works, but evicts keys (allkeys-lru)",
        ),
        (database(missing_migrations=2), "Migrations", "problem", "2 not applied"),
        (database(changeable=["core_auditentry"]), "Append-only tables", "advice", "may change core_auditentry"),
        (database(connections=80), "Connections", "advice", "80 of 100 in use"),
        (database(heartbeats={"worker": None, "watcher": NOW}), "Worker", "problem", "no heartbeat yet"),
        (database(heartbeats={"worker": NOW, "watcher": NOW - HOUR}), "Watcher", "problem", "heartbeat 60 min ago"),
        (cluster(refused="403: leases"), "API server", "problem", "403: leases"),
        (cluster(mirrored_at=None), "Cluster cache", "problem", "never read"),
        (cluster(mirrored_at=NOW - timedelta(seconds=45)), "Cluster cache", "problem", "in sync 45 s ago"),
        (cluster(skew_s=-3.0), "Clocks", "advice", "cluster a 3.0 s behind"),
        (database(ahead_s=5.0), "Clocks", "advice", "the database 5.0 s ahead"),
        (cluster(store=Store(1000, 700)), "etcd", "advice", "0 MiB of 0 MiB (70%)"),
        (cluster(store=Store(1000, 700, refused_writes=1)), "etcd", "problem", "full"),
        (database(work=Work(3, 90)), "Work queue", "problem", "3 due, the longest for 90 s"),
        (database(over_lease=1), "Use beyond a lease", "problem", "1 use more than they were given"),
        (cluster(uncharged=2), "Uncharged use", "problem", "2 hold slices that nobody is charged for"),
        (cluster(proof=replace(PROOF, failed=1, missing=2)), "Ledger", "problem", "1 hour not balanced, 2 hours not"),
        (cluster(proof=replace(PROOF, until=NOW - 5 * HOUR)), "Ledger", "advice", "balanced, last checked 5 h ago"),
        (database(unsealed_since=NOW - HOUR), "Audit log", "advice", "not chained for 60 min"),
    ],
)
def test_what_is_wrong_is_found_with_a_fix(facts, check, status, found):
    wrong = [one for one in run_checks(facts) if one.status is not Status.OK]
    assert [(one.check, one.status) for one in wrong] == [(check, status)]
    assert wrong[0].found.startswith(found)
    assert wrong[0].fix
    assert worst(wrong) == {"advice": 1, "problem": 2}[status]


def test_a_silent_worker_with_messages_waiting_is_told_from_a_silent_beat():
    silent = replace(database(heartbeats={"worker": None}), redis=RedisFacts(waiting=4))
    [worker] = [one for one in run_checks(silent) if one.check == "Worker"]
    assert worker.found == "no heartbeat yet; 4 messages wait"


def test_failing_targets_are_named_and_the_others_counted():
    failing = [FailingTarget(f"a/project:p{n}", 9 - n, "refused") for n in range(3)]
    findings = run_checks(database(work=Work(failing=5, first_failing=failing)))
    [found] = [one for one in findings if one.check == "Failing targets"]
    assert found.found.startswith("5: a/project:p0 (9 times: refused); ")
    assert found.found.endswith("; 2 more")


def test_what_is_stuck_says_in_which_state_for_how_long_and_why():
    stuck = [Stuck("vision-train/train", "starting", NOW - HOUR, "no device fitted")]
    [found] = [one for one in run_checks(database(stuck=stuck)) if one.check == "Stuck"]
    assert found.found == "vision-train/train is starting for 60 min (no device fitted)"


def test_of_two_clusters_each_check_says_of_which():
    checks = {one.check for one in run_checks(database(clusters=[CLUSTER, replace(CLUSTER, name="b")]))}
    assert {"etcd of a", "etcd of b", "Ledger of a", "Ledger of b"} <= checks


@pytest.mark.parametrize(
    ("seconds", "words"), [(45, "45 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172800, "2 days")]
)
def test_lengths_have_their_largest_unit(seconds, words):
    assert span(seconds) == words
