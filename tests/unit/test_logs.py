import logging

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils.log import log_response


@pytest.mark.parametrize(("status", "level"), [(503, "WARNING"), (500, "ERROR")])
def test_of_all_that_fails_only_a_busy_portal_is_a_warning(
    status: int, level: str, rf: RequestFactory, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "django.request"):
        log_response("%s", "/login", response=HttpResponse(status=status), request=rf.get("/login"))
    assert [record.levelname for record in caplog.records] == [level]
