"""The steps of the process table. Each sets up one thing and exits; a second run changes nothing.

python -m deploy.local.steps NAME --home FOLDER
"""

import argparse
import json
import sys
import time
from pathlib import Path

import yaml

from deploy.local import kueue, stores, webhook
from deploy.local.build import KUEUE_MANIFESTS, build
from deploy.local.errors import LocalError
from deploy.local.home import REPOSITORY, Home, open_home
from deploy.local.kubectl import apply_folder, apply_objects, kubectl

CLUSTER = REPOSITORY / "deploy" / "cluster"
CLASSES = Path(__file__).parent / "classes"
WAIT_S = 60


def kueue_manifests(home: Home) -> None:
    """Apply Kueue's CRDs, roles, webhooks and configuration; Kueue can start only when its CRDs are served."""
    objects = kueue.manifests((home.binaries / KUEUE_MANIFESTS).read_text(), home)
    folder = kueue.folder(home)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(kueue.configuration(home), sort_keys=False))
    apply_objects(home, objects)
    wait_established(home)


def kueue_certificates(home: Home) -> None:
    """Wait until Kueue has filled the Secret, and write its certificates."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        name = ("secret", kueue.WEBHOOK_CERTIFICATE, f"--namespace={kueue.NAMESPACE}")
        secret = kubectl(home, "get", *name, "--output=json")
        if kueue.copy_certificates(json.loads(secret), home):
            return
        time.sleep(0.3)
    raise LocalError(f"Kueue made no certificates within {WAIT_S} s: see {home.log('kueue')}")


def kueue_visibility(home: Home) -> None:
    """Wait until the API server forwards requests for queue positions to Kueue; it checks every 5 to 30 s."""
    condition = ("--for=condition=Available", f"--timeout={WAIT_S}s")
    kubectl(home, "wait", "apiservice", "v1beta2.visibility.kueue.x-k8s.io", *condition)


def cluster_objects(home: Home) -> None:
    """Apply what an administrator applies for the portal (deploy/cluster, or deploy/cluster/webhook where that is
    needed), and NVIDIA's DeviceClasses.
    """
    if webhook.is_needed():
        rendered = kubectl(home, "kustomize", str(webhook.MANIFESTS))
        authority = (home.certs / "ca.crt").read_bytes()
        apply_objects(home, webhook.manifests(rendered, home.ports["webhook"], authority))
    else:
        apply_folder(home, CLUSTER)
    apply_folder(home, CLASSES)
    wait_established(home)


def wait_established(home: Home) -> None:
    """Wait until every CRD defined so far is served."""
    condition = ("--for=condition=Established", f"--timeout={WAIT_S}s")
    kubectl(home, "wait", "customresourcedefinitions", "--all", *condition)


STEPS = {
    "kueue-manifests": kueue_manifests,
    "kueue-certificates": kueue_certificates,
    "kueue-visibility": kueue_visibility,
    "cluster-objects": cluster_objects,
    "postgres-data": stores.prepare_postgres,
    "postgres-role": stores.prepare_role,
    "redis-configuration": stores.prepare_redis,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.local.steps")
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("--home", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        STEPS[arguments.step](open_home(arguments.home, build()))
    except LocalError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
