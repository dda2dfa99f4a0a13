"""The files of docs/guide/pipelines.md while their request waits in the queue: no worker runs here."""

import os
import signal

import pytest

from allocations.models import Allocation
from tests.support.cluster.waiting import eventually
from tests.support.pipelines import SCRIPTS, Pipeline, finished, runner_environment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=SCRIPTS)
def pipeline(request, signed_in, project, tmp_path):
    token = os.environ["GPU_PORTAL_TOKEN"]
    return Pipeline(request.param, tmp_path, runner_environment(tmp_path, signed_in, token, project.slug))


def gave_up(pipeline):
    return [row.desired for row in pipeline.rows] == [Allocation.Desired.RELEASED]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_cancelled_gives_its_place_up(pipeline, number, code):
    process = pipeline.start()
    eventually(lambda: pipeline.rows, within_s=60)
    process.send_signal(number)
    found, said = finished(process)
    assert found == code, said
    assert gave_up(pipeline)


def test_a_run_that_waits_too_long_gives_its_place_up(pipeline):
    code, said = finished(pipeline.start(QUEUE_TIMEOUT_S="1"))
    assert code != 0, said
    assert gave_up(pipeline)


def test_a_run_that_is_refused_ends_with_the_reason(pipeline):
    code, said = finished(pipeline.start(OFFERING="l40s/none"))
    assert code == 1, said
    assert "l40s/none does not exist" in said
    assert not pipeline.rows
