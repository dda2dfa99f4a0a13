"""Two web processes are replaced one after the other under twenty requests a second, and none of these is lost."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
import requests
from pytest_django.plugin import DjangoDbBlocker

from tests.support import upgrade
from tests.support.steady_load import PER_S, steady_load
from tests.support.web_process import web_process

REPLACED = 2


@pytest.fixture
def database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock(), upgrade.upgraded(upgrade.RELEASE):
        yield


def ask(session: requests.Session, address: str) -> requests.Response:
    """Preview a request: a POST, which no proxy repeats."""
    headers = {"Authorization": f"Bearer {upgrade.token()}"}
    body = {"project": "vision-train", "offering": "l40s/whole"}
    return session.post(f"{address}/api/v1/allocations/preview", json=body, headers=headers, timeout=30)


def test_no_request_is_lost_while_each_web_process_is_replaced(database: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAIN_S", "2")
    with ExitStack() as last:
        running: list[tuple[str, ExitStack]] = []

        def start() -> str:
            stack = last.enter_context(ExitStack())
            address = f"http://127.0.0.1:{stack.enter_context(web_process())}"
            running.append((address, stack))
            return address

        with steady_load([start(), start()], ask) as load:
            for _ in range(REPLACED):
                load.addresses.append(start())
                address, stack = running.pop(0)
                stack.close()  # SIGTERM, until it has ended
                load.addresses.remove(address)
        assert load.lost == []
        assert set(load.answers) <= {200, 429}  # of one person, who may only ask so much a minute
        assert load.answers.count(200) > REPLACED * PER_S


def test_a_web_process_that_is_told_to_stop_answers_new_connections_until_it_refuses_them(
    monkeypatch: pytest.MonkeyPatch, django_db_setup: None
) -> None:
    monkeypatch.setenv("DRAIN_S", "2")
    answers: list[str] = []
    with ThreadPoolExecutor(1) as pool, ExitStack() as stack:
        address = f"http://127.0.0.1:{stack.enter_context(web_process())}"
        stopped = pool.submit(stack.close)
        with pytest.raises(requests.ConnectionError, match="Connection refused"):
            while True:
                answers.append(requests.get(f"{address}/livez", timeout=30).headers.get("Connection", ""))
        stopped.result()
    assert answers.count("close") > PER_S
