"""The running portal, its rules as a file for Prometheus, and a Prometheus that scrapes it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from deploy.local.runner import Local
from tests.monitoring import MONITORING, Query
from tests.monitoring.build import build
from tests.services import free_port
from tests.support.cluster.fixtures import live_database, local  # noqa: F401 (fixtures)
from tests.support.cluster.waiting import eventually


@pytest.fixture(scope="session")
def programs() -> Path:
    return build()


@pytest.fixture(scope="session")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the rules as a file that Prometheus reads without its operator."""
    path = tmp_path_factory.mktemp("rules") / "rules.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load((MONITORING / "rules.yaml").read_text(encoding="utf-8"))["spec"]))
    return path


@pytest.fixture(scope="session")
def prometheus(programs: Path, rules: Path, local: Local) -> Iterator[str]:
    """Return the address of a Prometheus with the rules, once it has scraped the portal."""
    folder, address = rules.parent, f"127.0.0.1:{free_port()}"
    job = {
        "job_name": "gpu-portal",
        "static_configs": [{"targets": [local.home.url.removeprefix("http://")]}],
        "authorization": {"type": "Bearer", "credentials": local.home.secret("metrics")},
    }
    settings = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "scrape_configs": [job]}
    (folder / "prometheus.yaml").write_text(yaml.safe_dump({**settings, "rule_files": [str(rules)]}))
    command = [
        str(programs / "prometheus"),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: _query(address, 'up{job="gpu-portal"} == 1'), requests.RequestException, AssertionError)
            yield address
        finally:
            process.terminate()


@pytest.fixture
def query(prometheus: str) -> Query:
    return lambda expression: _query(prometheus, expression)


def _query(address: str, expression: str) -> list[dict[str, Any]]:
    answer = requests.get(f"http://{address}/api/v1/query", {"query": expression}, timeout=10).json()
    assert answer["status"] == "success", f"{expression}: {answer.get('error')}"
    found: list[dict[str, Any]] = answer["data"]["result"]
    return found
