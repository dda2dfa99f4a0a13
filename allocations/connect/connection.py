"""Builds the data to connect to an allocation: label, example pod, shell commands, and a kubeconfig.

The kubeconfig has a token of the person, valid for an hour at most; each call creates one, and none is stored.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from allocations.cluster import credentials, names
from allocations.cluster.client import connect as cluster_client
from allocations.connect import example_jobs, person_access, sample_pod
from allocations.domain.phases import Phase
from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from allocations.requests.audit import record_action
from portal.core.errors import Refused
from portal.tenants import access
from portal.tenants.models import User
from portal.yaml_text import to_yaml

JOB_HEAD = (
    "# The label gives the Job's pod its slices; do not add a queue label. Replace image and command with your own.\n"
)
PYTORCH_HEAD = (
    f"{JOB_HEAD}# To train on all devices: command: [torchrun, --standalone, --nproc-per-node=gpu, train.py]\n"
)
DEPLOYMENT_HEAD = (
    "# The label gives the pod its slices. Recreate ends the old pod before a new one starts, which needs its slices.\n"
    "# Replace image and command with your own.\n"
)
LISTED = {
    "pod": "pod {}",
    "job": "pods -l batch.kubernetes.io/job-name={}",
    "deployment": "pods -l app={}",
}
"""What kubectl shows the pods of an example by, by its kind."""
FILE = "gpu-portal.kubeconfig"
USABLE = (Phase.ACTIVE, Phase.LEAVING)


@dataclass(frozen=True)
class Label:
    key: str
    value: str


@dataclass(frozen=True)
class Connection:
    """The data to connect to an allocation. ``kubeconfig`` and those in YAML are files."""

    label: Label
    pod_yaml: str
    job_yaml: str
    pytorch_yaml: str
    deployment_yaml: str
    kubectl: Annotated[str, "Shell lines."]
    kubeconfig: str
    expires_at: datetime


def connect(user: User, row: Allocation, *, until: datetime | None = None) -> Connection:
    """Return what ``user`` needs to run pods on the slices of ``row``, with a new token; ``until`` is as for
    ``person_access.create_token``.

    Raises Forbidden (role below member, or not a member of the team); Refused ``wrong_phase`` unless the slices are
    held; Busy while the person's service account is being created; ClusterUnavailable, ClusterRefused.
    """
    access.require(user, "allocation.connect", row.project.team)
    if row.phase not in USABLE:
        raise Refused(
            "wrong_phase",
            f"{row.name} is {row.phase}; it can be used once it is active.",
            "Ask for a new one." if row.phase in (Phase.RELEASING, Phase.ENDED) else "Wait until its phase is active.",
        )
    token = person_access.create_token(user, row.project.cluster_id, until)
    record_action(user.username, "connect", row, after={"kubeconfig_expires_at": token.expires_at})
    return Connection(
        label=Label(names.ALLOCATION, row.name),
        pod_yaml=pod_yaml(row),
        job_yaml=job_yaml(row),
        pytorch_yaml=pytorch_yaml(row),
        deployment_yaml=deployment_yaml(row),
        kubectl=kubectl(row),
        kubeconfig=credentials.kubeconfig(
            cluster_client(row.project.cluster_id),
            row.project.cluster.server,
            user.username,
            row.project.namespace,
            {"token": token.token},
        ),
        expires_at=token.expires_at,
    )


def pod_yaml(row: Allocation) -> str:
    """Return the example pod as YAML, with comments; needs the relations of ``spec_of_row.rows()``."""
    pod = sample_pod.build(spec_of_row.resolved_spec(row))
    head = "# The label gives the pod its slices. Replace image and command with your own.\n"
    if names.POD_SLICES in pod["metadata"].get("annotations", {}):
        head += f"# The annotation says which slice, of 0 to {row.count - 1}, since they may be on several nodes.\n"
    return head + to_yaml(pod)


def job_yaml(row: Allocation) -> str:
    """Return an example Job as YAML, with comments; needs the relations of ``spec_of_row.rows()``."""
    return f"{JOB_HEAD}{to_yaml(example_jobs.job(spec_of_row.resolved_spec(row)))}"


def pytorch_yaml(row: Allocation) -> str:
    """Return an example Job that runs PyTorch as YAML, with comments; needs the relations of ``spec_of_row.rows()``."""
    return f"{PYTORCH_HEAD}{to_yaml(example_jobs.pytorch(spec_of_row.resolved_spec(row)))}"


def deployment_yaml(row: Allocation) -> str:
    """Return an example Deployment as YAML, with comments; needs the relations of ``spec_of_row.rows()``."""
    return f"{DEPLOYMENT_HEAD}{to_yaml(example_jobs.deployment(spec_of_row.resolved_spec(row)))}"


def label_line(row: Allocation) -> str:
    """Return the label that gives a pod its slices, as a line of YAML."""
    return to_yaml({names.ALLOCATION: row.name}).strip()


def kubectl(row: Allocation) -> str:
    """Return the shell commands that create the example pod, use it and delete it."""
    return commands("pod", names.example(row.name), "pod.yaml")


def commands(kind: str, name: str, file: str) -> str:
    """Return the shell commands that create an example from its file, use it and delete it; ``kind`` is one of
    LISTED.
    """
    return "\n".join(
        [
            f"# The kubeconfig saved as {FILE} (mode 0600), the {kind} as {file}:",
            f"export KUBECONFIG=$PWD/{FILE}",
            f"kubectl get gpuprojects {names.GUARD}",
            "# Do not write a claim or a claim template: the label gives the pod its devices.",
            *use_commands(kind, name, file),
        ]
    )


def use_commands(kind: str, name: str, file: str) -> list[str]:
    """Return the kubectl commands that create an example, show, use and delete it."""
    return [
        f"kubectl apply -f {file}",
        f"kubectl get {LISTED[kind].format(name)} -o wide",
        f"kubectl logs -f {kind}/{name}",
        f"kubectl exec -it {kind}/{name} -- sh",
        f"kubectl port-forward {kind}/{name} 8080  # if it listens on this port",
        f"kubectl delete {kind} {name}",
    ]
