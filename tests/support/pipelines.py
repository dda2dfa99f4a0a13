"""The files of docs/how-to/pipelines.md as a runner starts them."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import yaml

from allocations.models import Allocation
from deploy.local.home import REPOSITORY

FILES = REPOSITORY / "docs" / "how-to" / "pipelines"
SCRIPTS = ("run.sh", "task.py")


@dataclass
class Pipeline:
    """One run of a script. ``environment`` is the runner's, ``folder`` is its own."""

    script: str
    folder: Path
    environment: Mapping[str, str]
    run: str = field(default_factory=lambda: uuid4().hex[:8])

    @property
    def name(self) -> str:
        """The name of its allocation and of its pod."""
        return f"{'ci' if self.script == 'run.sh' else 'task'}-{self.run}-1"

    @property
    def rows(self) -> list[Allocation]:
        return list(Allocation.objects.filter(name=self.name))

    def start(self, run_for: str = "", exit_code: str = "", **settings: str) -> subprocess.Popen[str]:
        """Start it; its pod runs so long on a simulated node, for ever if not said, and exits so."""
        pod = yaml.safe_load((FILES / "pod.yaml").read_text(encoding="utf-8"))
        simulated = {"gpu-portal.io/run-for": run_for, "gpu-portal.io/exit-code": exit_code}
        pod["metadata"]["annotations"] = {key: value for key, value in simulated.items() if value}
        file = self.folder / "pod.yaml"
        file.write_text(yaml.safe_dump(pod), encoding="utf-8")
        script = str(FILES / self.script)
        words = [script, str(file)] if self.script == "run.sh" else [sys.executable, script, str(file), f"{self.run}-1"]
        return subprocess.Popen(
            # A shell's background jobs ignore SIGINT, and so would what they start.
            ["env", "--default-signal=INT", *words],
            env={**self.environment, "GITHUB_RUN_ID": self.run, "GITHUB_RUN_ATTEMPT": "1", **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def runner_environment(folder: Path, url: str, token: str, project: str, *paths: Path) -> dict[str, str]:
    """Return what a runner has: the command gpu-portal, the portal's address, a token and a project."""
    program = folder / "gpu-portal"
    program.write_text(f"#!{sys.executable}\nfrom portal.cli.main import cli\ncli()\n", encoding="utf-8")
    program.chmod(0o700)
    return {
        "HOME": str(folder),
        "PATH": ":".join(map(str, (folder, *paths, os.environ["PATH"]))),
        "PYTHONPATH": f"{REPOSITORY}:{os.environ.get('PYTHONPATH', '')}",
        "GPU_PORTAL_URL": url,
        "GPU_PORTAL_TOKEN": token,
        "GPU_PORTAL_PROJECT": project,
        "OFFERING": "l40s/whole",
    }


def finished(process: subprocess.Popen[str], within_s: float = 180) -> tuple[int, str]:
    """Return its exit code and all it said. It is ended if it takes longer."""
    with process:
        try:
            out, err = process.communicate(timeout=within_s)
        finally:
            process.kill()
    return process.returncode, out + err
