"""kubectl with a kubeconfig: a tenant's, as REST returned it, or the local administrator's, for the checks."""

import json
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.local.errors import LocalError

WAIT_S = 60.0
LOOK_EVERY_S = 0.3


@dataclass(frozen=True)
class Kubectl:
    binary: Path
    kubeconfig: Path
    cache: Path

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """Return standard output; raise LocalError with the error output."""
        done = self._call(arguments, stdin)
        if done.returncode != 0:
            raise LocalError(f"kubectl {' '.join(arguments)} failed:\n{done.stderr.strip()}")
        return done.stdout

    def refused(self, *arguments: str, stdin: str) -> str:
        """Return the message with which the API server refuses a command that it must refuse."""
        done = self._call(arguments, stdin)
        if done.returncode == 0:
            raise LocalError(f"kubectl {' '.join(arguments)} should be refused, and was not")
        return re.sub(r"\s+", " ", done.stderr.partition("denied request:")[2] or done.stderr).strip()

    def get(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.run("get", *arguments, "--output=json"))
        return found

    def wait_running(self, pod: str) -> dict[str, Any]:
        deadline = time.monotonic() + WAIT_S
        while True:
            found = self.get("pod", pod)
            phase = found["status"].get("phase")
            if phase == "Running":
                return found
            if time.monotonic() > deadline:
                raise LocalError(f"pod {pod} is {phase} after {WAIT_S:.0f} s: {found['status'].get('conditions')}")
            time.sleep(LOOK_EVERY_S)

    def _call(self, arguments: tuple[str, ...], stdin: str | None) -> subprocess.CompletedProcess[str]:
        command = [str(self.binary), f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
