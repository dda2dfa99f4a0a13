"""Builds Helm, kubeconform and kube-score from their Go modules once per machine, in `<cache>/chart/<digest>`."""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from deploy.local import toolchain
from deploy.local.build import cache_root
from deploy.local.errors import LocalError

MODULE = Path(__file__).parent / "tools"
PROGRAMS = {
    "kubeconform": (MODULE, "github.com/yannh/kubeconform/cmd/kubeconform"),
    "kube-score": (MODULE / "kube-score", "github.com/zegl/kube-score/cmd/kube-score"),
    "helm": (MODULE, "helm.sh/helm/v4/cmd/helm"),
}


def folder() -> Path:
    """Return the folder with the programs of PROGRAMS; build it if it is missing, which takes minutes."""
    go = toolchain.find_go(cache_root(), print)
    pins = [module / name for module, _ in PROGRAMS.values() for name in ("go.mod", "go.sum")]
    parts = [*(path.read_text() for path in pins), toolchain.go_env(go, "GOVERSION", "GOOS", "GOARCH")]
    target = cache_root() / "chart" / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        for name, (module, package) in PROGRAMS.items():
            print(f"{name}: building")
            _go(go, module, "build", "-trimpath", "-ldflags=-s -w", f"-o={work / name}", package)
        if not target.is_dir():  # else another checkout was faster
            work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def module_folder(module: str, version: str) -> Path:
    """Return where Go keeps the files of a module; download it if it is not there."""
    go = toolchain.find_go(cache_root(), print)
    return Path(json.loads(_go(go, cache_root(), "mod", "download", "-json", f"{module}@{version}"))["Dir"])


def _go(go: str, cwd: Path, *arguments: str) -> str:
    environment = toolchain.environment() | {"CGO_ENABLED": "0", "GOFLAGS": os.environ.get("GOFLAGS", "-mod=readonly")}
    run = subprocess.run([go, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        raise LocalError(f"go {arguments[0]} failed in {cwd}:\n{run.stderr[-2000:]}")
    return run.stdout
