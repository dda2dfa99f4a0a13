"""The settings as a production process reads them: from its environment only."""

import os
import subprocess
import sys

PRODUCTION = {
    "SECRET_KEY": "a-long-key-of-many-different-letters-0123456789-for-this-test",
    "GPU_PORTAL_LOCAL": "0",
    "ALLOWED_HOSTS": "gpu.example.org",
}


def manage(*arguments, **environment):
    command = [sys.executable, "manage.py", *arguments]
    # The browser tests set this one for their own process; no deployment has it.
    inherited = {name: value for name, value in os.environ.items() if name != "DJANGO_ALLOW_ASYNC_UNSAFE"}
    return subprocess.run(command, env=inherited | environment, capture_output=True, text=True)


def test_production_passes_djangos_deployment_checks():
    run = manage("check", "--deploy", "--fail-level", "WARNING", **PRODUCTION)
    assert run.returncode == 0, run.stderr


def test_without_a_secret_key_nothing_starts():
    run = manage("check", SECRET_KEY="", GPU_PORTAL_LOCAL="0")
    assert run.returncode != 0
    assert "SECRET_KEY is not set" in run.stderr


def test_an_installation_has_no_simulated_history():
    run = manage("simulate_history", "--days=1d", **PRODUCTION)
    assert "Unknown command: 'simulate_history'" in run.stderr
