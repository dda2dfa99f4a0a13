"""Tokens for people's accounts without a cluster that issues them; tests/cluster has those that one does."""

from datetime import timedelta

import pytest

from allocations.cluster import credentials
from allocations.cluster.access import Access
from allocations.cluster.client import Client
from allocations.cluster.credentials import PersonToken
from allocations.connect import person_access
from portal.core import clock
from tests.support.clusters import LOCAL

SERVER = "https://192.0.2.1:6443"


def give_tokens(monkeypatch: pytest.MonkeyPatch, *, life: timedelta = timedelta(minutes=50)) -> list[PersonToken]:
    """Let every account get the tokens t1, t2, …, which live as long as asked, but no longer than ``life``; return
    those that were given, which grow.
    """
    given: list[PersonToken] = []

    def mint(client: Client, username: str, ttl_s: int) -> PersonToken:
        given.append(PersonToken(f"t{len(given) + 1}", clock.now() + min(life, timedelta(seconds=ttl_s))))
        return given[-1]

    monkeypatch.setattr(person_access, "cluster_client", lambda cluster: Client(LOCAL, Access(SERVER, "", lambda: "")))
    monkeypatch.setattr(credentials, "mint", mint)
    return given
