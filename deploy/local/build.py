"""Builds the seven programs of the control plane, and the admission webhook, once per machine.

KUBERNETES in the environment chooses the version of Kubernetes, DEFAULT_VERSION without it. `tools` has the modules:
itself for the default version, Kueue, KWOK and etcd, and `kubernetes-<version>` for each other version.

The result is stored in `<cache>/bin/<digest>`. The digest covers everything that affects the result, so a second
checkout with the same content reuses it. Steps:
1. compute the digest of module files, tools, stamps, Go version and platform;
2. if the folder is in the cache, return it; else take the lock shared by all checkouts, and check again;
3. copy each program from KUBEBUILDER_ASSETS or PATH if its version matches, or from the build of the default version
   if it is the same; else compile it;
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
WEBHOOK_MODULE = Path(__file__).parents[1] / "webhook"
WEBHOOK = "gpu-portal-webhook"
DEFAULT_VERSION = "1.36"
KUEUE_MANIFESTS = "kueue.yaml"
NEEDED_BYTES = 6 * 2**30
KUBERNETES, ETCD = "k8s.io/kubernetes", "go.etcd.io/etcd/server/v3"
KUEUE, KWOK = "sigs.k8s.io/kueue", "sigs.k8s.io/kwok"


Make = Callable[[Path, str, Callable[[str], None]], None]
"""Fills a folder with programs: the folder, the Go to build with, and what to report progress with."""


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


def kubernetes_version() -> str:
    """Return the version that KUBERNETES chooses, such as 1.36; raise LocalError if there is no module for it."""
    chosen = os.environ.get("KUBERNETES") or DEFAULT_VERSION
    if chosen not in (known := kubernetes_versions()):
        raise LocalError(f"KUBERNETES={chosen} cannot be built here. These can: {', '.join(known)}.")
    return chosen


def kubernetes_versions() -> list[str]:
    """Return the versions of Kubernetes that can be built, the oldest first."""
    others = (folder.name.removeprefix("kubernetes-") for folder in MODULE.glob("kubernetes-*"))
    return sorted({*others, DEFAULT_VERSION}, key=lambda version: tuple(map(int, version.split("."))))


def _folder(module: str, version: str) -> Path:
    """Return the folder of the go.mod that pins a module, for a version of Kubernetes."""
    return MODULE / f"kubernetes-{version}" if module == KUBERNETES and version != DEFAULT_VERSION else MODULE


def versions(version: str | None = None) -> dict[str, str]:
    """Return the versions pinned in go.mod, by module; `version` is Kubernetes', by default the chosen one."""
    chosen = version or kubernetes_version()
    return {module: _pinned(_folder(module, chosen) / "go.mod", module) for module in (ETCD, KUBERNETES, KUEUE, KWOK)}


def _pinned(file: Path, module: str) -> str:
    match = re.search(rf"^(?:require |\t){re.escape(module)} (v\S+)$", file.read_text(), re.MULTILINE)
    if match is None:
        raise LocalError(f"{file} requires no version of {module}")
    return match[1]


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


def digest(go: str, version: str | None = None) -> str:
    """Return 16 hex digits of everything that affects the build; `version` as for `versions`."""
    folders = dict.fromkeys([MODULE, _folder(KUBERNETES, version or kubernetes_version())])
    parts = [(folder / name).read_text() for folder in folders for name in ("go.mod", "go.sum", "tools.go")]
    parts += [repr(TOOLS), json.dumps(stamps(versions(version)), sort_keys=True)]
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
    return _built(cache / "bin" / digest(go), _programs, go, say)


def build_webhook(say: Callable[[str], None] = print) -> Path:
    """Return the folder with the admission webhook (deploy/webhook); build it if it is missing."""
    cache = cache_root()
    go = toolchain.find_go(cache, say)
    sources = sorted([*WEBHOOK_MODULE.glob("*.go"), *WEBHOOK_MODULE.glob("go.*")])
    parts = [path.read_text() for path in sources]
    parts.append(toolchain.go_env(go, "GOVERSION", "GOOS", "GOARCH"))
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return _built(cache / "bin" / f"webhook-{key}", _webhook, go, say)


def _built(target: Path, make: Make, go: str, say: Callable[[str], None]) -> Path:
    """Return the folder, filled by `make` if it is missing: by one checkout at a time, and never by half."""
    if target.is_dir():
        return target
    with _locked(cache_root() / "build.lock", say):
        if not target.is_dir():
            _build_into(target, make, go, say)
    return target


def _build_into(target: Path, make: Make, go: str, say: Callable[[str], None]) -> None:
    caches = {"Go's build cache": "GOCACHE", "Go's module cache": "GOMODCACHE"}
    folders = {purpose: Path(toolchain.go_env(go, name)) for purpose, name in caches.items()}
    require_disk({**folders, "the programs": target}, NEEDED_BYTES, "Building the control plane")
    target.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
    try:
        make(work, go, say)
        work.chmod(0o755)
        work.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(f"built in {time.monotonic() - began:.0f} s: {target}")


def _programs(work: Path, go: str, say: Callable[[str], None]) -> None:
    began = time.monotonic()
    version, pinned = kubernetes_version(), versions()
    linker = " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in stamps(pinned).items())])
    for number, tool in enumerate(TOOLS, start=1):
        label = f"[{number}/{len(TOOLS)}] {tool.name} {pinned[tool.module]}"
        if present := _present(tool, pinned[tool.module]) or _of_default_version(tool, version, go):
            shutil.copy2(present, work / tool.name)
            say(f"{label}: taken from {present}")
        else:
            _compile(_folder(tool.module, version), tool.package, work / tool.name, linker, go, label, began, say)
    (work / KUEUE_MANIFESTS).write_text(_kueue_manifests(go, work / "kubectl"))


def _of_default_version(tool: Tool, version: str, go: str) -> Path | None:
    """Return the program from the build of the default version, if that is there and has the same."""
    if version == DEFAULT_VERSION or _folder(tool.module, version) != MODULE:
        return None
    path = cache_root() / "bin" / digest(go, DEFAULT_VERSION) / tool.name
    return path if path.exists() else None


def _webhook(work: Path, go: str, say: Callable[[str], None]) -> None:
    _compile(WEBHOOK_MODULE, ".", work / WEBHOOK, "-s -w", go, WEBHOOK, time.monotonic(), say)


def _compile(
    module: Path, package: str, target: Path, linker: str, go: str, label: str, began: float, say: Callable[[str], None]
) -> None:
    command = [go, "build", "-trimpath", "-ldflags", linker, "-o", str(target), package]
    environment = toolchain.environment() | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    log = target.with_suffix(".log")
    with log.open("w") as out, _progress(label, began, say) as tick:
        process = subprocess.Popen(command, cwd=module, env=environment, stdout=out, stderr=out)
        try:
            while process.poll() is None:
                time.sleep(0.5)
                tick()
        finally:
            process.kill()
    if process.returncode != 0:
        tail = "\n".join(log.read_text().splitlines()[-15:])
        raise LocalError(f"{target.name} could not be built with {go}:\n{tail}")
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
