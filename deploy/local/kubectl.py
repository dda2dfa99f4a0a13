"""Runs kubectl against this home, as the local administrator."""

import json
import subprocess
from pathlib import Path
from typing import Any

from deploy.local.errors import LocalError
from deploy.local.home import Home

FIELD_MANAGER = "gpu-portal-local"


def kubectl(home: Home, *arguments: str, stdin: str | None = None) -> str:
    """Return the standard output of `kubectl ARGUMENTS`; raise LocalError with its error output."""
    command = [
        str(home.binaries / "kubectl"),
        f"--kubeconfig={home.kubeconfig}",
        f"--cache-dir={home.root / 'kubectl-cache'}",
        *arguments,
    ]
    run = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise LocalError(f"kubectl {' '.join(arguments)} failed:\n{run.stderr.strip()[-3000:]}")
    return run.stdout


def apply(home: Home, *source: str, stdin: str | None = None) -> None:
    """Apply manifests server-side, without deleting: a policy deleted and created again could lose its parameters."""
    options = ("--server-side", "--force-conflicts", f"--field-manager={FIELD_MANAGER}")
    kubectl(home, "apply", *options, *source, stdin=stdin)


def apply_folder(home: Home, folder: Path) -> None:
    """Apply a folder: its kustomization if it has one, else every manifest in it."""
    if (folder / "kustomization.yaml").exists():
        apply(home, f"--kustomize={folder}")
    elif any(folder.glob("*.yaml")):
        apply(home, f"--filename={folder}")


def apply_objects(home: Home, objects: list[dict[str, Any]]) -> None:
    # One List: kubectl reads only the first of several JSON documents.
    apply(home, "--filename=-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
