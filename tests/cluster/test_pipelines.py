"""The files of docs/how-to/pipelines.md, run as a pipeline runs them: whatever happens, the GPU is released."""

import signal
from datetime import timedelta
from pathlib import Path

import pytest

from allocations.domain.phases import Outcome, Phase
from deploy.local.runner import Local
from portal.tenants import services as tenants
from portal.tenants.actors import SYSTEM
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import wait_for
from tests.support.cluster.api_client import ApiClient
from tests.support.cluster.pods import running_pod
from tests.support.pipelines import SCRIPTS, Pipeline, finished, runner_environment

pytestmark = pytest.mark.cluster


@pytest.fixture(params=SCRIPTS)
def pipeline(request: pytest.FixtureRequest, local: Local, member: User, project: Project, tmp_path: Path) -> Pipeline:
    _, secret = tenants.issue_token(SYSTEM, member, "ci", ["read", "request"], timedelta(hours=1))
    url = local.env()["PORTAL_URL"]
    return Pipeline(request.param, tmp_path, runner_environment(tmp_path, url, secret, project.slug, local.binaries))


def was_held_and_released(pipeline: Pipeline) -> None:
    [row] = pipeline.rows
    wait_for(row, Phase.ENDED)
    assert row.outcome == Outcome.RELEASED


def test_a_run_gets_a_gpu_for_its_pod_and_releases_it_and_a_repeat_requests_nothing_new(pipeline: Pipeline) -> None:
    code, said = finished(pipeline.start(run_for="1s"))
    assert code == 0, said
    assert f"The pod {pipeline.name} is Succeeded." in said
    was_held_and_released(pipeline)
    code, said = finished(pipeline.start(run_for="1s"))
    assert code != 0, said
    assert len(pipeline.rows) == 1


def test_a_run_whose_pod_fails_fails_and_releases(pipeline: Pipeline) -> None:
    code, said = finished(pipeline.start(run_for="1s", exit_code="3"))
    assert code == 1, said
    assert "is Failed" in said
    was_held_and_released(pipeline)


def test_a_run_whose_pod_hangs_ends_in_time_and_releases(pipeline: Pipeline) -> None:
    code, said = finished(pipeline.start(RUN_TIMEOUT_S="1"))
    assert code != 0, said
    assert "after 1 s" in said
    was_held_and_released(pipeline)


def test_a_run_that_is_cancelled_releases(pipeline: Pipeline, project: Project, admin: ApiClient) -> None:
    process = pipeline.start()
    running_pod(admin, project.namespace, pipeline.name, within_s=120)
    process.send_signal(signal.SIGTERM)
    found, said = finished(process)
    assert found == 143, said
    was_held_and_released(pipeline)
