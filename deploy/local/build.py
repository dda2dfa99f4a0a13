"""Builds the seven programs of the control plane once per machine.

The result is stored in `<cache>/bin/<digest>`. The digest covers everything that affects the result, so a second
checkout with the same content reuses it. Steps:
1. compute the digest of module files, tools, stamps, Go version and platform;
2. if the folder is in the cache, return it; else take the lock shared by all checkouts, and check again;
3. copy each program from KUBEBUILDER_ASSETS or PATH if its version matches, else compile it;
4. render Kueue's own manifests from its module, and rename the folder into place.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.local import toolchain
from deploy.local.errors import LocalError

MODULE = Path(__file__).parent / "tools"
KUEUE_MANIFESTS = "kueue.yaml"
NEEDED_BYTES = 6 * 2**30
KUBERNETES, ETCD = "k8s.io/kubernetes", "go.etcd.io/etcd/server/v3"
KUEUE, KWOK = "sigs.k8s.io/kueue", "sigs.k8s.io/kwok"


@dataclass(frozen=True)
class Tool:
    """A program. `asks` prints its version; None for one that is always compiled."""

    name: str
    module: str
    package: str
    version_arguments: tuple[str, ...] | None = ("--version",)


TOOLS = (
    Tool("kubectl", KUBERNETES, f"{KUBERNETES}/cmd/kubectl", ("version", "--client")),
    Tool("etcd", ETCD, ETCD),
    Tool("kube-apiserver", KUBERNETES, f"{KUBERNETES}/cmd/kube-apiserver"),
    Tool("kube-controller-manager", KUBERNETES, f"{KUBERNETES}/cmd/kube-controller-manager"),
    Tool("kube-scheduler", KUBERNETES, f"{KUBERNETES}/cmd/kube-scheduler"),
    # A released Kueue writes certificates into /visibility, which needs root: see stamps().
    Tool("kueue", KUEUE, f"{KUEUE}/cmd/kueue", None),
    Tool("kwok", KWOK, f"{KWOK}/cmd/kwok"),
)


def cache_root() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or toolchain.user_home() / ".cache") / "gpu-portal"


def versions() -> dict[str, str]:
    """Return the versions pinned in go.mod, by module."""
    required = re.findall(r"^\t(\S+) (v\S+)$", (MODULE / "go.mod").read_text(), re.MULTILINE)
    return {module: version for module, version in required if module in (KUBERNETES, ETCD, KUEUE, KWOK)}


def stamps(pinned: dict[str, str]) -> dict[str, str]:
    """Return the values that the linker sets, by Go variable.

    Without Kubernetes' version Kueue refuses the server's version string; with a relative certificate folder Kueue's
    visibility server needs no root.
    """
    kubernetes = pinned[KUBERNETES]
    major, minor, _ = kubernetes.removeprefix("v").split(".")
    values = {
        "sigs.k8s.io/kueue/pkg/version.GitVersion": pinned[KUEUE],
        "sigs.k8s.io/kueue/pkg/visibility.certDir": "visibility-certs",
        "sigs.k8s.io/kwok/pkg/consts.Version": pinned[KWOK],
    }
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        parts = {"gitVersion": kubernetes, "gitMajor": major, "gitMinor": minor}
        values |= {f"{package}.{part}": value for part, value in parts.items()}
    return values


def digest(go: str) -> str:
    """Return 16 hex digits of everything that affects the build."""
    parts = [(MODULE / name).read_text() for name in ("go.mod", "go.sum", "tools.go")]
    parts += [repr(TOOLS), json.dumps(stamps(versions()), sort_keys=True)]
    parts.append(toolchain.go_env(go, "GOVERSION", "GOOS", "GOARCH"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def is_built() -> bool:
    """Return whether the seven programs are in the cache."""
    cache = cache_root()
    go = toolchain.present_go(cache)
    return go is not None and (cache / "bin" / digest(go)).is_dir()


def build(say: Callable[[str], None] = print) -> Path:
    """Return the folder with the seven programs and `kueue.yaml`; build it if it is missing."""
    cache = cache_root()
    go = toolchain.find_go(cache, say)
    target = cache / "bin" / digest(go)
    if target.is_dir():
        return target
    with _locked(cache / "build.lock", say):
        if not target.is_dir():
            _build_into(target, go, say)
    return target


def _build_into(target: Path, go: str, say: Callable[[str], None]) -> None:
    caches = {"Go's build cache": "GOCACHE", "Go's module cache": "GOMODCACHE"}
    folders = {purpose: Path(toolchain.go_env(go, name)) for purpose, name in caches.items()}
    require_disk({**folders, "the programs": target}, NEEDED_BYTES, "Building the control plane")
    target.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        pinned = versions()
        for number, tool in enumerate(TOOLS, start=1):
            label = f"[{number}/{len(TOOLS)}] {tool.name} {pinned[tool.module]}"
            if present := _present(tool, pinned[tool.module]):
                shutil.copy2(present, work / tool.name)
                say(f"{label}: taken from {present}")
            else:
                _compile(tool, go, work, label, began, say)
        (work / KUEUE_MANIFESTS).write_text(_kueue_manifests(go, work / "kubectl"))
        work.chmod(0o755)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(f"control plane built in {time.monotonic() - began:.0f} s: {target}")


def _compile(tool: Tool, go: str, work: Path, label: str, began: float, say: Callable[[str], None]) -> None:
    linker = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in stamps(versions()).items())])
    command = [go, "build", "-trimpath", "-ldflags", linker, "-o", str(work / tool.name), tool.package]
    environment = toolchain.environment() | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    log = work / f"{tool.name}.log"
    with log.open("w") as out, _progress(label, began, say) as tick:
        process = subprocess.Popen(command, cwd=MODULE, env=environment, stdout=out, stderr=out)
        try:
            while process.poll() is None:
                time.sleep(0.5)
                tick()
        finally:
            process.kill()
    if process.returncode != 0:
        tail = "\n".join(log.read_text().splitlines()[-15:])
        raise LocalError(f"{tool.name} could not be built with {go}:\n{tail}")
    log.unlink()


@contextlib.contextmanager
def _progress(label: str, began: float, say: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Report progress: a line that counts seconds on a terminal, elsewhere one line per program."""
    start = time.monotonic()
    live = sys.stdout.isatty()

    def tick() -> None:
        if live:
            words = f"\r{label}: {time.monotonic() - start:4.0f} s, {time.monotonic() - began:4.0f} s in all "
            sys.stdout.write(words)
            sys.stdout.flush()

    if not live:
        say(f"{label}: building")
    yield tick
    if live:
        sys.stdout.write("\r")
    say(f"{label}: {time.monotonic() - start:.0f} s, {time.monotonic() - began:.0f} s in all")


def _present(tool: Tool, version: str) -> Path | None:
    """Return a program of exactly this version from KUBEBUILDER_ASSETS or PATH, or None."""
    if tool.version_arguments is None:
        return None
    path = os.pathsep.join(filter(None, (os.environ.get("KUBEBUILDER_ASSETS"), os.environ.get("PATH"))))
    path_of_program = shutil.which(tool.name, path=path)
    if path_of_program is None:
        return None
    try:
        run = subprocess.run(
            [path_of_program, *tool.version_arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    versions_in_output = re.findall(r"v?(\d+\.\d+\.\d+[^\s\"]*)", run.stdout)
    return Path(path_of_program) if version.removeprefix("v") in versions_in_output else None


def _kueue_manifests(go: str, kubectl: Path) -> str:
    """Return Kueue's `config/default` as one YAML stream, rendered from its module, so that no copy is kept here."""
    list_dir = [go, "list", "-m", "-f", "{{.Dir}}", KUEUE]
    environment = toolchain.environment() | {"GOFLAGS": "-mod=readonly"}
    run = subprocess.run(list_dir, cwd=MODULE, env=environment, capture_output=True, text=True, check=False)
    folder = run.stdout.strip()
    if not folder:  # the binary came from the build cache, and the module was never unpacked
        subprocess.run([go, "mod", "download", KUEUE], cwd=MODULE, env=environment, check=True)
        folder = subprocess.run(
            list_dir, cwd=MODULE, env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()
    command = [str(kubectl), "kustomize", f"{folder}/config/default"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def require_disk(folders: Mapping[str, Path], needed: int, what: str) -> None:
    """Raise LocalError unless each disk has `needed` bytes free; `folders` by what they are for."""
    for purpose, folder in folders.items():
        place = nearest(folder)
        free = shutil.disk_usage(place).free
        if free < needed:
            raise LocalError(
                f"{what} needs about {needed / 2**30:.0f} GiB of free disk; "
                f"{place} ({purpose}) has {free / 2**30:.1f} GiB.\n"
                "Free some, or point XDG_CACHE_HOME, GOCACHE and GOMODCACHE at a larger disk."
            )


def nearest(folder: Path) -> Path:
    """Return the folder, or its nearest parent that is there."""
    return next(place for place in (folder, *folder.parents) if place.exists())


@contextlib.contextmanager
def _locked(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another checkout is building the control plane: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
