"""The hostile member's requests come from the seed; tallies and measures decide when a run fails."""

import json
from itertools import islice
from pathlib import Path
from random import Random

import pytest
import yaml

from deploy.local.home import REPOSITORY
from tests.cluster.hostile_member import attacks, cluster_attacks, etcd, logs, measures, objects, portal_attacks, tally
from tests.cluster.hostile_member.__main__ import Task, read_task
from tests.cluster.hostile_member.attacks import ATTACKS, Attack
from tests.cluster.hostile_member.calls import AttackContext, Call, Credentials
from tests.cluster.hostile_member.sender import MemberAccess
from tests.cluster.hostile_member.tally import Tally

PLACE = AttackContext("ns", "project", "vision", ("own-1", "own-2"), "language", ("lead",), "2026-03-02T12:00:00Z")
ROLE = Path(__file__).parents[2] / "deploy" / "cluster" / "roles" / "tenant.yaml"
READ = Call(Credentials.KUBECONFIG, "GET", "/api/v1/namespaces/ns/pods")
FORBIDDEN = Call(Credentials.KUBECONFIG, "POST", "/api/v1/namespaces/ns/secrets", {}, must_fail=True)
REPEATED = ("x" * 20_000 + '", "securityContext', "readinessGates")
"""Of what a node repeats in a pod's status: its image, and its gates."""
WRONG_PASSWORD = Call(Credentials.NONE, "POST", "/login", b"", must_fail=True)


def drawn(attack: Attack, seed: int, number: int = 200) -> list[Call]:
    return list(islice(attacks.calls_of_thread(attack, seed, 0, PLACE), number))


# What he sends


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_same_seed_sends_the_same_and_another_seed_something_else(attack: Attack) -> None:
    assert drawn(attack, 1) == drawn(attack, 1)
    assert drawn(attack, 1) != drawn(attack, 2)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_whatever_he_sends_is_a_body_or_json_for_one_of_the_two_servers(attack: Attack) -> None:
    for call in drawn(attack, 1):
        assert isinstance(call.body, bytes) or json.dumps(call.body)
        is_for_the_api_server = call.path.startswith(("/api/v1/namespaces/", "/apis/", "/openapi/"))
        if call.path not in cluster_attacks.CLUSTER_LISTS:
            assert is_for_the_api_server == (call.credentials is Credentials.KUBECONFIG), call.path


def test_two_threads_of_one_attack_send_different_requests() -> None:
    first, second = (list(islice(attacks.calls_of_thread(ATTACKS[0], 1, number, PLACE), 20)) for number in (0, 1))
    assert first != second


def test_he_attacks_every_kind_that_the_tenant_role_lets_him_write() -> None:
    """What it may create and not delete a guard refuses, in words."""
    rules = yaml.safe_load(ROLE.read_text(encoding="utf-8"))["rules"]
    writing = [rule for rule in rules if {"create", "delete"} <= {*rule["verbs"]}]
    written = {plural for rule in writing for plural in rule["resources"] if "/" not in plural}
    assert {path.rpartition("/")[2] for path in objects.PATHS.values()} == written
    for attack in (cluster_attacks.full_objects, cluster_attacks.finalizers, cluster_attacks.too_large_objects):
        paths = {call.path.split("/namespaces/ns/")[1].split("/")[0] for call in islice(attack(Random(1), PLACE), 500)}
        assert paths == written


def test_objects_too_large_are_above_the_bound_of_their_kind_and_full_ones_below() -> None:
    limits = {"configmaps": 128 * 1024, "secrets": 128 * 1024}

    def size(call: Call) -> int:
        return len(json.dumps(call.body, ensure_ascii=False).encode())

    too_large = list(islice(cluster_attacks.too_large_objects(Random(1), PLACE), 100))
    repeated = [call for call in too_large if any(mark in json.dumps(call.body) for mark in REPEATED)]
    assert 0 < len(repeated) < 50
    too_large = [call for call in too_large if call not in repeated]
    assert all(size(call) > limits.get(call.path.split("/")[-1], 32 * 1024) for call in too_large)
    full = list(islice(cluster_attacks.full_objects(Random(1), PLACE), 100))
    kinds = [call.path.split("/namespaces/ns/")[1].split("/")[0] for call in full]
    allowed = [limits.get(kind, 32 * 1024) for kind in kinds]
    assert all(0.7 * limit < size(call) < limit for call, limit in zip(full, allowed, strict=True))
    for calls in (too_large, full):
        assert any(objects.FOUR_BYTES in json.dumps(call.body, ensure_ascii=False) for call in calls)


def test_no_service_that_must_be_refused_is_a_plain_one() -> None:
    for call in islice(cluster_attacks.services(Random(1), PLACE), 300):
        assert isinstance(call.body, dict)
        spec = call.body.get("spec", {})
        is_open = spec.get("type") in ("NodePort", "LoadBalancer") or "externalIPs" in spec
        assert call.must_fail == is_open


def test_requests_that_begin_later_begin_tomorrow_and_others_now() -> None:
    for generator, begins in ((portal_attacks.scheduled_requests, True), (portal_attacks.requests_and_releases, False)):
        bodies = [c.body for c in islice(generator(Random(1), PLACE), 50) if c.path == portal_attacks.ALLOCATIONS]
        assert bodies
        assert all(isinstance(body, dict) and ("starts_at" in body) == begins for body in bodies)


def test_attacks_are_chosen_by_name() -> None:
    assert attacks.chosen("") == ATTACKS
    assert [attack.name for attack in attacks.chosen("lists, pages")] == ["lists", "pages"]
    with pytest.raises(ValueError, match="no attack is called lsits"):
        attacks.chosen("lsits")


def test_a_task_is_read_as_it_was_written() -> None:
    task = Task(11, 120.0, "lists", MemberAccess("kind: Config", "http://portal", "gpup_x", "ada", "secret"), PLACE)
    assert read_task(task.text()) == task


def test_the_guide_tells_every_attack() -> None:
    text = (REPOSITORY / "docs/evidence/hostile-member.md").read_text(encoding="utf-8")
    assert [attack.name for attack in ATTACKS if f"| {attack.name} | {attack.does} |" not in text] == []


# What he achieved


def tallied(*answers: tuple[Call, int]) -> Tally:
    found = Tally()
    for call, status in answers:
        found.add(call, status, f"said {status}")
    return found


def findings(found: Tally, least: int = 1) -> list[str]:
    return list(tally.findings([Attack("one", cluster_attacks.lists, least)], {"one": found}, 60))


def test_answers_are_counted_by_what_they_mean() -> None:
    found = tallied(*((READ, status) for status in (200, 201, 403, 404, 429, 503, 500, 0)))
    found.add(WRONG_PASSWORD, 200, "")
    assert (found.attempts, found.accepted, found.refused, found.throttled, found.failed) == (9, 2, 3, 2, 2)


def test_an_attack_that_was_refused_or_let_do_what_it_may_is_no_finding() -> None:
    assert findings(tallied((READ, 200), (FORBIDDEN, 403), (FORBIDDEN, 0), (WRONG_PASSWORD, 200))) == []


def test_too_few_attempts_are_no_attack() -> None:
    [words] = findings(tallied((READ, 200)), least=2)
    assert words == "one: 1 attempts in 60 s are no attack; at least 2 are"


def test_what_must_be_refused_and_is_not_is_told_with_its_request() -> None:
    [words] = findings(tallied((FORBIDDEN, 201)))
    assert words == "one: accepted, and has to be refused: POST /api/v1/namespaces/ns/secrets {} -> 201"


def test_a_wrong_password_that_signs_in_is_told() -> None:
    [words] = findings(tallied((WRONG_PASSWORD, 302)))
    assert "has to be refused" in words


def test_an_attack_that_nobody_answers_is_told() -> None:
    [words] = findings(tallied((READ, 0), (READ, 0), (READ, 200)))
    assert words == "one: most were not answered: said 0"


def test_tallies_of_threads_are_added_and_survive_json() -> None:
    whole = tally.merged([tallied((READ, 200)), tallied((READ, 403), (FORBIDDEN, 201))])
    assert whole.statuses == {200: 1, 403: 1, 201: 1}
    assert tally.read(json.loads(json.dumps(whole.document()))) == whole


# What it did to others

CALM = {"page": [0.1] * 10, measures.LAG: [0.01] * 10}


@pytest.mark.parametrize(
    ("calm", "attacked", "is_found"),
    [
        pytest.param(1.0, 2.2, False, id="twice, and less than the floor more"),
        pytest.param(1.0, 2.3, True, id="more than twice and the floor"),
        pytest.param(0.004, 0.25, False, id="sixty times, within the floor"),
        pytest.param(0.004, 0.26, True, id="a little more than the floor"),
    ],
)
def test_a_median_may_double_and_grow_by_a_quarter_of_a_second(calm: float, attacked: float, is_found: bool) -> None:
    found = [*measures.slower({**CALM, "page": [calm] * 10}, {**CALM, "page": [attacked] * 10})]
    assert bool(found) == is_found


def test_one_late_answer_of_many_changes_no_median() -> None:
    assert [*measures.slower(CALM, {**CALM, "page": [0.1] * 9 + [30.0]})] == []


def test_what_was_measured_too_seldom_is_no_measure() -> None:
    [words] = measures.slower(CALM, {**CALM, "page": [0.1]})
    assert words == "page: measured 10 times without him and 1 with him; 8 are needed"
    [words] = measures.slower(CALM, {measures.LAG: [0.01] * 10})
    assert "10 times without him and 0 with him" in words


def test_the_watcher_may_never_be_five_seconds_behind() -> None:
    [words] = measures.late({**CALM, measures.LAG: [0.01] * 100 + [5.1]})
    assert words == f"{measures.LAG}: 5.1 s at the most, 1 of 101 times above 5 s"


def test_the_table_has_both_medians_and_their_ratio() -> None:
    [_, first, *_] = measures.table({"page": [0.1] * 10}, {"page": [0.15] * 10})
    assert first.split() == ["page", "0.100", "0.100", "0.150", "0.150", "1.50", "1.50-1.50", "10,", "10"]


# What is left

LOG = """\
2026-03-01T12:00:00Z [info     ] request  [portal] status=200
2026-03-01T12:00:01Z [error    ] workqueue.failed  [portal.workqueue.queue] target=project:hostile
Traceback (most recent call last):
ValueError: no
2026-03-01T12:00:02Z [error    ] workqueue.failed  [portal.workqueue.queue] target=project:other
Traceback (most recent call last):
ValueError: no
[2026-03-01 12:00:03 +0000] [7] [CRITICAL] WORKER TIMEOUT (pid:8) hostile
[2026-03-01 12:00:04 +0000] [7] [INFO] Booting worker
"""


def test_errors_of_work_on_what_is_the_attackers_are_explained_and_others_are_not() -> None:
    found = logs.unexplained(LOG, ["hostile"])
    assert [entry.splitlines()[0] for entry in found] == [LOG.splitlines()[4], LOG.splitlines()[7]]
    assert found[0].endswith("ValueError: no")


def test_the_bound_is_that_of_the_guide(tmp_path: Path) -> None:
    guide = tmp_path / "guards.md"
    guide.write_text("| kind | number |\n| **all of a project** | | | **1,158 MiB** |\n", encoding="utf-8")
    assert etcd.bound(guide) == 1158 * etcd.MIB
    assert etcd.bound() > 0


def test_the_size_of_etcd_is_read_from_its_metrics() -> None:
    text = """\
# HELP etcd_mvcc_db_total_size_in_bytes Total size
etcd_mvcc_db_total_size_in_bytes 2.5e+07
etcd_mvcc_db_total_size_in_use_in_bytes 1.2e+07
etcd_server_quota_backend_bytes 2.147483648e+09
"""
    assert etcd.parse(text) == etcd.Size(2.5e7, 1.2e7, 2147483648)
