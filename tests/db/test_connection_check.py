"""The check of a database connection before a request."""

import psycopg
import pytest
from django.db import connection

from tests.support.cluster.waiting import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_open_connection_is_usable_without_a_statement(monkeypatch):
    connection.ensure_connection()
    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", None)
        assert connection.is_usable()


def test_a_connection_that_postgresql_ended_is_not():
    connection.ensure_connection()
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
    eventually(lambda: not connection.is_usable())
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
