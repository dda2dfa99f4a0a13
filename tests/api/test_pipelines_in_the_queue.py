"""The files of docs/how-to/pipelines.md while their request waits in the queue: no worker runs here."""

import os
import signal

import pytest

from allocations.models import Allocation
from tests.support.cluster.waiting import eventually
from tests.support.lost_answers import requests_kept_waiting, withholding
from tests.support.pipelines import SCRIPTS, Pipeline, finished, runner_environment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=SCRIPTS)
def pipeline(request, signed_in, project, tmp_path):
    token = os.environ["GPU_PORTAL_TOKEN"]
    return Pipeline(request.param, tmp_path, runner_environment(tmp_path, signed_in, token, project.slug))


@pytest.fixture
def two_at_once(settings):
    """Let a person's second request come to an answer while the first runs, as with a second web process."""
    settings.PERSON_REQUESTS_AT_ONCE = 2


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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_cancelled_before_the_answer_gives_its_place_up(pipeline, signed_in, number, code):
    with withholding(signed_in) as (address, answered):
        process = pipeline.start(GPU_PORTAL_URL=address)
        assert answered.wait(60)
        process.send_signal(number)
        found, said = finished(process)
    assert found == code, said
    assert gave_up(pipeline)


def test_a_run_that_is_cancelled_while_the_portal_works_on_its_request_gives_its_place_up(
    pipeline, signed_in, project, two_at_once
):
    with withholding(signed_in, connections=0) as (address, answered):
        with requests_kept_waiting(project.slug) as is_one_waiting:
            process = pipeline.start(GPU_PORTAL_URL=address)
            eventually(is_one_waiting, within_s=60)
            process.send_signal(signal.SIGTERM)
            assert answered.wait(30)  # to the repeated request: in_progress
        found, said = finished(process)
    assert found == 143, said
    assert gave_up(pipeline)


def test_a_repeat_that_comes_while_the_portal_works_on_the_first_waits_for_it(
    pipeline, signed_in, project, two_at_once
):
    with withholding(signed_in, connections=0) as (address, answered):
        with requests_kept_waiting(project.slug) as is_one_waiting:
            first = pipeline.start(QUEUE_TIMEOUT_S="1")
            eventually(is_one_waiting, within_s=60)
            repeat = pipeline.start(QUEUE_TIMEOUT_S="1", GPU_PORTAL_URL=address)
            assert answered.wait(60)  # in_progress
        endings = [finished(process) for process in (first, repeat)]
    assert "in_progress" not in endings[1][1]
    assert gave_up(pipeline)


@pytest.mark.parametrize("pipeline", ["task.py"], indirect=True)
def test_a_run_none_of_whose_tries_is_answered_gives_its_place_up(pipeline, signed_in):
    with withholding(signed_in) as (address, answered):
        process = pipeline.start(GPU_PORTAL_URL=address, HTTP_TIMEOUT_S="5", HTTP_REPEATS="0")
        assert answered.wait(60)
        code, said = finished(process)
    assert code == 1, said
    assert gave_up(pipeline)


@pytest.mark.parametrize("pipeline", ["run.sh"], indirect=True)
def test_a_script_releases_a_name_that_comes_after_its_first_try(pipeline, project, two_at_once):
    with requests_kept_waiting(project.slug) as is_one_waiting:
        process = pipeline.start()
        eventually(is_one_waiting, within_s=60)
        process.send_signal(signal.SIGINT)
        said = ""
        for line in process.stderr:
            said += line
            if "There is no allocation" in line:
                break
    assert "Interrupted, and not released" in said
    code, rest = finished(process)
    assert code == 130, said + rest
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
