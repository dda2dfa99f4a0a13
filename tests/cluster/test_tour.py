"""`make demo ONCE=1` without its start: the scripted tour on the running portal."""

import subprocess
import sys

import pytest

from deploy.local.home import REPOSITORY
from deploy.local.runner import Local

pytestmark = pytest.mark.cluster


def test_the_tour_holds_what_it_says(local: Local) -> None:
    command = [sys.executable, "-m", "deploy.local.tour", f"--home={local.root}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, cwd=REPOSITORY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The tour is complete" in done.stdout


def test_without_a_demo_it_says_how_to_start_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    command = [sys.executable, "-m", "deploy.local.tour", f"--home={tmp_path_factory.mktemp('empty')}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180, cwd=REPOSITORY)
    assert done.returncode == 1
    assert "make up" in done.stderr
