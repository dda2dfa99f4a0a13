"""Attacks on the portal with a tenant's token on the real API server, and permitted actions.

Each row of attacks/attacks.yaml names the file below deploy/cluster that must refuse it, and a part of the message. A
policy that is missing, or whose message no longer says what to do, fails its row.
"""

import json
import secrets
import shlex
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from deploy.local.control_plane import serves
from deploy.local.runner import Local
from tests.cluster.refused_manifests.rows import pods, rows
from tests.support.cluster.api_client import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Answer
from tests.support.cluster.manifests import Entry, build, fill, table
from tests.support.cluster.stage import Person, Stage, staged
from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}
GUARDS = Path(__file__).parents[2] / "deploy" / "cluster"
ATTACKS = [row for row in table("attacks") if serves(row.get("since", "1.34"))]
WARNINGS = table("warnings")
RAW = {"create": "POST", "replace": "PUT", "get": "GET", "delete": "DELETE"}


@pytest.fixture(scope="module")
def stage(local: Local, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(local.home, tmp_path_factory.mktemp("people")) as stage_:
        yield stage_


@pytest.mark.parametrize("row", ATTACKS, ids=[row["attack"] for row in ATTACKS])
def test_refuses_when(row: Entry, stage: Stage) -> None:
    row = fill(row, stage.names)
    person = stage.person(row.get("as", "tenant"), row.get("where", "ns"))
    message = commanded(row, person) if "kubectl" in row else created(row, person)
    assert row["message"] in message
    assert refuser(row["guard"]) in message


def commanded(row: Entry, person: Person) -> str:
    """Do what the row's command does; return the message of its refusal in one line. A command that is one request is
    sent as such: to start kubectl takes long.
    """
    match words := shlex.split(row["kubectl"]):
        case [verb, "--raw", path, *_]:
            answer = person.api.call(RAW[verb], path, row.get("stdin"))
        case ["patch", kind, name, "--type=merge", "-p", patch]:
            answer = patched(person, kind, name, patch, MERGE_PATCH)
        case ["patch", kind, name, "--type=json", "-p", patch]:
            answer = patched(person, kind, name, patch, JSON_PATCH)
        case ["patch", kind, name, "-p", patch]:
            answer = patched(person, kind, name, patch, STRATEGIC_PATCH)
        case _:
            done = person.run(*words, stdin=json.dumps(row["stdin"]) if "stdin" in row else None)
            assert done.returncode != 0, f"it worked: {done.stdout}"
            return " ".join(done.stderr.split())
    assert answer.status >= 400, f"it worked: {answer.body}"
    return " ".join(answer.message.split())


def patched(person: Person, kind: str, name: str, patch: str, content_type: str) -> Answer:
    path = person.api.kind(kind).path(person.namespace, name)
    return person.api.call("PATCH", path, json.loads(patch), content_type=content_type)


def created(row: Entry, person: Person) -> str:
    """Create the row's object once a dry run of it is refused; return the message of the refusal in one line."""
    manifest = build(row, f"attack-{secrets.token_hex(3)}")
    eventually(lambda: person.create(manifest, dry_run=True).status >= 400)
    answer = person.create(manifest)
    assert answer.status >= 400, f"it worked: {answer.body}"
    return " ".join(answer.message.split())


def refuser(guard: str) -> str:
    """Return how the API server names a file's policy; others (Pod Security, a quota) are recognized by their
    message.
    """
    if guard.startswith("policies/"):
        return f"ValidatingAdmissionPolicy 'gpu-portal-{Path(guard).stem}'"
    return "is forbidden: " if guard.startswith("roles/") else ""


@pytest.mark.parametrize("row", WARNINGS, ids=[row["warned"] for row in WARNINGS])
def test_warns_when(row: Entry, stage: Stage) -> None:
    row = fill(row, stage.names)
    person = stage.person(row.get("as", "tenant"), "ns")
    answer = person.create(build(row, f"w-{secrets.token_hex(3)}"), dry_run=True)
    assert answer.granted
    assert row["message"] in " ".join(answer.warnings.split())


def test_what_says_which_gpus_it_wants_is_not_warned_of(stage: Stage) -> None:
    gpu = {"resources": {which: {"nvidia.com/gpu": "1"} for which in ("requests", "limits")}}
    template = {"spec": {"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L40S"}}, "container": gpu}
    job = {"job": {"labels": {"kueue.x-k8s.io/queue-name": "gpu"}, "template": template}}
    train = {"gpu-portal.io/allocation": "train-1"}
    held = {"workload": "Deployment", "pod": {"labels": train}}
    meant = {"pod": {"labels": train, "annotations": {"gpu-portal.io/containers": "main"}, "second": {}}}
    indexed = {
        "job": {
            "spec": {"completionMode": "Indexed", "completions": 2, "parallelism": 2},
            "template": {"labels": train, "annotations": {"gpu-portal.io/slices": "by-index"}},
        }
    }
    counted = {
        "workload": "StatefulSet",
        "replicas": 2,
        "pod": {"labels": {"gpu-portal.io/allocation": "serve-1"}, "annotations": {"gpu-portal.io/slices": "by-index"}},
    }
    for entry in (job, held, counted, meant, indexed):
        answer = stage.tenant.create(build(entry, "silent"), dry_run=True)
        assert (answer.status, answer.warnings) == (201, "")


def test_each_refusal_leads_to_a_manifest_that_runs(stage: Stage) -> None:
    for row in rows({"runtime": f"nvidia-{stage.names['ns']}"}):
        for step in row.steps:
            answers = [stage.tenant.tried(manifest) for manifest in step.before]
            said = [words for is_refused, words in answers if is_refused != step.warns]
            assert [piece for piece in step.told if not any(piece in words for words in said)] == [], (
                row.title,
                answers,
            )
            assert any(is_refused for is_refused, _ in answers) != step.warns, (row.title, answers)
        for manifest in (*row.mended, *(pod for each in row.mended for pod in pods(each))):
            answer = stage.tenant.create(manifest, dry_run=True)
            assert (answer.status, answer.message, answer.warnings) == (201, "", ""), row.title


def test_what_is_written_is_kept_as_it_is_but_for_what_the_guide_says(stage: Stage) -> None:
    """Whatever else a guard does not want it refuses: what is overwritten runs otherwise than its author believes."""
    changed = set()
    for entry in table("honest"):
        written = build(entry, entry["name"])
        stored = stage.tenant.get(written["kind"], entry["name"])
        changed |= {f"{written['kind']}{path}" for path in unlike(written, stored)}
    assert changed == {"Job.spec.podReplacementPolicy", "Pod.spec.terminationGracePeriodSeconds"}


def unlike(written: Any, stored: Any, path: str = "") -> Iterator[str]:
    """Yield the paths at which something else is stored than was written; more may be stored."""
    if isinstance(written, dict):
        for key, value in written.items():
            yield from unlike(value, stored.get(key) if isinstance(stored, dict) else None, f"{path}.{key}")
    elif isinstance(written, list):
        for value, other in zip_longest(written, (stored or [])[: len(written)]):
            yield from unlike(value, other, path)
    elif str(written) != str(stored):
        yield path


def test_every_guard_that_refuses_is_attacked() -> None:
    attacked = {row["guard"] for row in table("attacks")}
    guards = {
        str(path.relative_to(GUARDS))
        for path in (GUARDS / "policies").glob("*.yaml")
        if "kind: ValidatingAdmissionPolicy\n" in path.read_text() and "[Deny]" in path.read_text()
    }
    assert guards <= attacked


def test_every_guard_is_in_the_guide() -> None:
    guide = (GUARDS.parents[1] / "docs" / "evidence" / "guards.md").read_text()
    missing = [path.name for path in (GUARDS / "policies").glob("*.yaml") if f"`{path.name}`" not in guide]
    assert missing == ["kustomization.yaml"]


def test_every_guard_is_applied_by_the_kustomization() -> None:
    listed = (GUARDS / "policies" / "kustomization.yaml").read_text()
    missing = [p.name for p in (GUARDS / "policies").glob("*.yaml") if p.name not in listed]
    assert missing == ["kustomization.yaml"]


def test_the_policies_type_check(stage: Stage) -> None:
    policies = stage.admin.api.objects("validatingadmissionpolicies")
    portal_policies = [policy for policy in policies if policy["metadata"]["name"].startswith("gpu-portal-")]
    warnings = {
        policy["metadata"]["name"]: policy.get("status", {}).get("typeChecking", {}).get("expressionWarnings")
        for policy in portal_policies
    }
    assert portal_policies
    assert not {name: message for name, message in warnings.items() if message}


def running(stage: Stage, name: str) -> dict[str, Any]:
    """Return the pod once it runs."""

    def pod_if_running() -> dict[str, Any]:
        pod = stage.tenant.get("pod", name)
        return pod if pod["status"].get("phase") == "Running" else {}

    return eventually(pod_if_running)


def test_a_plain_pod_is_left_as_it_is(stage: Stage) -> None:
    spec = stage.tenant.get("pod", "plain")["spec"]
    assert "resourceClaims" not in spec
    assert "nodeSelector" not in spec
    assert "priorityClassName" not in spec
    assert {t["key"] for t in spec["tolerations"]} == {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
    assert set(spec["containers"][0]["resources"]) == {"requests"}


def test_a_labelled_pod_runs_beside_the_holder_on_its_claim(stage: Stage) -> None:
    spec = running(stage, "on-train")["spec"]
    assert spec["resourceClaims"] == [{"name": "gpu-portal", "resourceClaimName": "train-1"}]
    assert spec["containers"][0]["resources"]["claims"] == [{"name": "gpu-portal"}]
    assert spec["priorityClassName"] == f"gpu-portal-hold-{stage.names['ns']}"
    assert spec["nodeName"] == running(stage, "train-1-holder")["spec"]["nodeName"]


def test_annotations_give_each_container_its_slice(stage: Stage) -> None:
    spec = running(stage, "one-slice-each")["spec"]
    assert spec["resourceClaims"] == [{"name": "gpu-portal", "resourceClaimName": "train-1"}]
    claims = [container["resources"]["claims"] for container in spec["containers"]]
    assert claims == [[{"name": "gpu-portal", "request": f"slice-{n}"}] for n in (1, 0)]
    assert not any("env" in container for container in spec["containers"])


def test_annotations_give_containers_the_same_slice(stage: Stage) -> None:
    claims = [container["resources"]["claims"] for container in running(stage, "same-slice")["spec"]["containers"]]
    assert claims == [[{"name": "gpu-portal", "request": "slice-1"}]] * 2


def test_a_pod_may_say_itself_how_it_uses_its_claim(stage: Stage) -> None:
    spec = running(stage, "own-words")["spec"]
    assert spec["resourceClaims"] == [{"name": "cards", "resourceClaimName": "train-1"}]
    assert spec["containers"][0]["resources"]["claims"] == [{"name": "cards", "request": "slice-0"}]


def test_a_pod_gets_the_claim_of_the_slice_that_it_names(stage: Stage) -> None:
    spec = running(stage, "on-wide")["spec"]
    assert spec["resourceClaims"] == [{"name": "gpu-portal", "resourceClaimName": "wide-1.1"}]
    assert spec["containers"][0]["resources"]["claims"] == [{"name": "gpu-portal", "request": "slice-1"}]
    assert spec["nodeName"] == running(stage, "wide-1.1-holder")["spec"]["nodeName"]
    assert spec["affinity"] == stage.tenant.get("pod", "own-words-on-wide")["spec"]["affinity"]


def test_numbered_pods_get_the_slice_of_their_number(stage: Stage) -> None:
    eventually(lambda: len(stage.tenant.items("pods", "job-name=ranks")) == 2)
    pods = stage.tenant.items("pods", "job-name=ranks")
    by_index = {p["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]: p for p in pods}
    for index, pod in by_index.items():
        assert pod["spec"]["resourceClaims"][0]["resourceClaimName"] == f"wide-1.{index}"
    ring = eventually(lambda: stage.tenant.get("pod", "ring-0"), AssertionError, within_s=60)
    assert ring["spec"]["resourceClaims"][0]["resourceClaimName"] == "wide-1.0"


def test_numbered_pods_get_one_request_each_of_a_claim_that_they_share(stage: Stage) -> None:
    eventually(lambda: len(stage.tenant.items("pods", "job-name=by-index-ranks")) == 2)
    index = "batch.kubernetes.io/job-completion-index"
    given = {
        pod["metadata"]["annotations"][index]: pod["spec"]["containers"][0]["resources"]["claims"]
        for pod in stage.tenant.items("pods", "job-name=by-index-ranks")
    }
    assert given == {n: [{"name": "gpu-portal", "request": f"slice-{n}"}] for n in ("0", "1")}
    first = eventually(lambda: stage.tenant.get("pod", "by-index-0"), AssertionError, within_s=60)
    assert first["spec"]["containers"][0]["resources"]["claims"] == [{"name": "gpu-portal", "request": "slice-0"}]


def test_a_numbered_pod_gets_one_of_a_count(stage: Stage) -> None:
    pod = eventually(lambda: stage.tenant.get("pod", "counted-0"), AssertionError, within_s=60)
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == "1"


def test_a_labelled_pod_gets_the_count_the_place_and_the_class(stage: Stage) -> None:
    spec = running(stage, "on-serve")["spec"]
    resources = spec["containers"][0]["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == "2"
    assert spec["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-L40S"}
    assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in spec["tolerations"]
    assert (spec["priorityClassName"], spec["priority"]) == (f"gpu-portal-hold-{stage.names['ns']}", 0)


def test_a_count_can_be_narrowed_and_what_the_pod_had_stays(stage: Stage) -> None:
    spec = running(stage, "on-spare")["spec"]
    first, second = (container["resources"]["limits"] for container in spec["containers"])
    assert "nvidia.com/gpu" not in first
    assert second["nvidia.com/gpu"] == "1"
    assert [container.get("env") for container in spec["containers"]] == [[VOID], None]
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux", "nvidia.com/gpu.product": "NVIDIA-L40S"}
    assert {"example.com/gpu-pool", "nvidia.com/gpu"} <= {t["key"] for t in spec["tolerations"]}


def test_a_pod_gets_one_time_slice_unless_it_asks_for_more(stage: Stage) -> None:
    spec = running(stage, "on-shares")["spec"]
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu.shared"] == "1"


@pytest.mark.parametrize("selector", ["app=web", "app=db", "job-name=on-train-job"])
def test_pods_of_a_labelled_template_get_the_claim(selector: str, stage: Stage) -> None:
    (pod,) = eventually(lambda: stage.tenant.items("pods", selector))
    assert pod["spec"]["resourceClaims"] == [{"name": "gpu-portal", "resourceClaimName": "train-1"}]
    running(stage, pod["metadata"]["name"])


@pytest.mark.parametrize(
    ("patch", "guard"),
    [
        ({"container": {"resources": {"limits": {"nvidia.com/gpu": "1"}}}}, "policies/pod-gpus.yaml"),
        ({"labels": {"gpu-portal.io/managed": "true"}}, "policies/kept-objects.yaml"),
        ({"labels": {"gpu-portal.io/allocation": "wide-1"}}, "policies/allocation-pods.yaml"),
    ],
    ids=["with GPUs and no allocation", "with the portal's label", "with no slice named, where slices are spread"],
)
def test_a_deployment_cannot_make_pods(patch: Entry, guard: str, stage: Stage) -> None:
    name = Path(guard).stem
    manifest = build({"workload": "Deployment", "pod": patch}, name)
    stage.tenant.created(manifest)

    def refusal_message() -> str:
        conditions = stage.tenant.get("deployment", name).get("status", {}).get("conditions", [])
        return " ".join(c["message"] for c in conditions)

    eventually(lambda: refuser(guard) in refusal_message())


def test_a_queued_job_runs_on_gpus_once_kueue_admits_it(stage: Stage) -> None:
    (pod,) = eventually(lambda: stage.tenant.items("pods", "job-name=running"))
    running(stage, pod["metadata"]["name"])
    assert stage.tenant.get("job", "waiting")["spec"]["suspend"] is True


@pytest.mark.parametrize("which", ["hasty", "${running_pod}"], ids=["with slices", "of a queued Job"])
def test_a_pod_on_gpus_has_at_least_a_second_to_end(which: str, stage: Stage) -> None:
    pod = stage.tenant.get("pod", fill(which, stage.names))
    assert pod["spec"]["terminationGracePeriodSeconds"] == 1


def test_a_kubelet_says_that_a_pod_on_gpus_has_ended(stage: Stage) -> None:
    kubelet = ("--as", f"system:node:{running(stage, 'on-train')['spec']['nodeName']}", "--as-group", "system:nodes")
    stage.admin.do("delete", "pod", "on-train", "--force", "--grace-period=0", "--dry-run=server", *kubelet)


def test_a_queued_job_may_say_how_long_it_runs_at_most(stage: Stage) -> None:
    uid = stage.tenant.get("job", "bounded")["metadata"]["uid"]
    [workload] = eventually(lambda: stage.tenant.items("workloads.kueue.x-k8s.io", f"kueue.x-k8s.io/job-uid={uid}"))
    assert workload["spec"]["maximumExecutionTimeSeconds"] == 3600


def test_a_queued_job_makes_a_pod_anew_only_when_the_one_before_has_ended(stage: Stage) -> None:
    stage.tenant.do("annotate", "job", "running", "example.com/changed=yes")
    for name in ("running", "disrupted"):
        assert stage.tenant.get("job", name)["spec"]["podReplacementPolicy"] == "Failed"


def test_a_container_without_gpus_beside_one_with_them_sees_none(stage: Stage) -> None:
    (pod,) = stage.tenant.items("pods", "job-name=running")
    assert [container.get("env") for container in pod["spec"]["containers"]] == [None, [VOID]]


@pytest.mark.parametrize("what", ["deployment/web", "statefulset/db"])
def test_what_makes_pods_keeps_two_revisions(what: str, stage: Stage) -> None:
    assert stage.tenant.get(*what.split("/"))["spec"]["revisionHistoryLimit"] == 2


def test_an_object_that_was_too_large_before_may_get_smaller(stage: Stage) -> None:
    stage.admin.do(
        "create", "configmap", "large", f"--from-literal=a={'x' * 70_000}", f"--from-literal=b={'x' * 70_000}"
    )
    more = stage.tenant.run("patch", "configmap", "large", "--type=merge", "-p", '{"data": {"c": "more"}}')
    assert refuser("policies/all-objects.yaml") in more.stderr
    stage.tenant.do("patch", "configmap", "large", "--type=merge", "-p", '{"data": {"b": "less"}}')


def test_a_project_has_the_types_of_services_that_an_operator_allows(stage: Stage) -> None:
    node_port = ("create", "service", "nodeport", "open", "--tcp=80", "--dry-run=server")
    allow = ("label", "namespace", stage.names["ns"], "--overwrite")
    stage.portal.do(*allow, "gpu-portal.io/exposure=node-port")
    try:
        eventually(lambda: stage.tenant.run(*node_port).returncode == 0)
    finally:
        stage.portal.do(*allow, "gpu-portal.io/exposure=cluster")
    eventually(lambda: refuser("policies/services.yaml") in stage.tenant.run(*node_port).stderr)


def test_operators_make_claims_and_cron_jobs(stage: Stage) -> None:
    refused = [row["send"] for row in ATTACKS if row["guard"] == "policies/refused-kinds.yaml" and "send" in row]
    assert {manifest["kind"] for manifest in refused} == {"CronJob", "ResourceClaim", "ResourceClaimTemplate"}
    for manifest in refused:
        answer = stage.admin.create(manifest, dry_run=True)
        assert answer.status == 201, answer.message


def test_operators_may_repair_what_the_portal_keeps(stage: Stage) -> None:
    stage.admin.do("label", "service", "workspace", "gpu-portal.io/team=other", "--overwrite")


def test_the_portal_puts_back_the_label_that_an_operator_took_off_its_namespace(stage: Stage) -> None:
    open_namespace = stage.names["neighbours"]
    stage.admin.do("label", "namespace", open_namespace, "gpu-portal.io/managed-")
    stage.portal.do("label", "namespace", open_namespace, "gpu-portal.io/managed=true", "--field-manager=gpu-portal")


def test_people_see_what_the_project_holds(stage: Stage) -> None:
    assert "train-1 2 x gpu.nvidia.com" in stage.tenant.do("get", "gpuprojects")
