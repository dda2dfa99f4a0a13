"""The image: packages of the versions that are tested, all that the server needs, and a clean Dockerfile."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def pins(file: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / file).read_text(encoding="utf-8")))


def canonical(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=~; ]", requirement)[0]).lower()


@pytest.mark.parametrize("extra", ["server", "build"])
def test_the_image_has_the_versions_that_are_tested(extra: str) -> None:
    tested, locked = pins("requirements.lock"), pins(f"deploy/requirements-{extra}.lock")
    assert {name: version for name, version in locked.items() if tested.get(name) != version} == {}


@pytest.mark.parametrize("extra", ["server", "build"])
def test_a_lock_has_every_dependency(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {canonical(one) for one in (*project["dependencies"], *project["optional-dependencies"][extra])}
    assert named - pins(f"deploy/requirements-{extra}.lock").keys() == set(), "uv pip compile, as its first line says"


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    command = [Path(sys.executable).parent / "hadolint", ROOT / "deploy" / "Dockerfile"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")
