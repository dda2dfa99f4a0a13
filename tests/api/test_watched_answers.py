"""Every answer of the REST API is compared with the schema: those of clients in the test, and of the live server."""

import urllib.error
import urllib.request

import pytest
from rest_framework.test import APIClient

from tests.support import api_contract


@pytest.fixture
def seen(monkeypatch):
    """Have each answer differ from the schema; yield what the comparison found."""
    monkeypatch.setattr(api_contract, "differences_of", lambda request, response: ["it was compared"])
    yield api_contract.differences
    api_contract.differences.clear()


@pytest.mark.django_db
def test_an_answer_to_a_client_is_compared(seen):
    APIClient().get("/api/v1/me")
    assert seen == ["GET /api/v1/me 401: it was compared"]


@pytest.mark.django_db(transaction=True)
def test_an_answer_of_the_live_server_is_compared(live_server, seen):
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{live_server.url}/api/v1/me")
    assert seen == ["GET /api/v1/me 401: it was compared"]
