"""What is read again and again is planned once in a connection."""

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.db.utils import DataError
from django.test.utils import CaptureQueriesContext

from portal.core import clock, heartbeat, prepared_statements
from portal.core.models import Heartbeat
from portal.core.query_templates import QueryTemplate, without_parameters
from portal.core.reading import Columns, read_tables

pytestmark = pytest.mark.django_db(transaction=True)


def beats(name, since):
    return [Columns(Heartbeat.objects.filter(name=name, at__gte=since).exclude(name__contains="100%"), ("name",))]


@pytest.fixture
def read():
    heartbeat.beat("worker")
    template = QueryTemplate(beats, name=str, since=datetime)
    return lambda name="worker": read_tables(*template.of(name=name, since=clock.now() - timedelta(hours=1)))


def prepared() -> dict[str, int]:
    """Return how often each prepared statement of the connection was executed."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, generic_plans + custom_plans FROM pg_prepared_statements")
        return dict(cursor.fetchall())


def test_it_is_prepared_once_and_executed_with_other_values(read):
    connection.close()
    assert (read(), read("watcher"), read()) == ([[["worker"]]], [[]], [[["worker"]]])
    assert list(prepared().values()) == [3]


def test_a_new_connection_prepares_it_again(read):
    read()
    connection.close()
    assert prepared() == {}
    assert read() == [[["worker"]]]
    assert list(prepared().values()) == [1]


def test_it_is_planned_anew_after_a_while(read, monkeypatch):
    connection.close()
    read()
    monkeypatch.setattr(prepared_statements, "PLANNED_FOR_S", -1)
    assert read() == [[["worker"]]]
    assert list(prepared().values()) == [1]


def test_it_outlives_a_transaction_that_was_rolled_back(read):
    with pytest.raises(DataError), connection.cursor() as cursor:
        cursor.execute("BEGIN")
        read()
        cursor.execute("SELECT 1 / 0")
    connection.rollback()
    assert read() == [[["worker"]]]


def test_a_query_is_sent_whole_where_connections_are_shared(read, settings):
    connection.close()
    settings.PREPARED_STATEMENTS = False
    assert read() == [[["worker"]]]
    assert prepared() == {}


def test_a_query_without_parameters_keeps_its_values(read):
    part = without_parameters(Columns(Heartbeat.objects.filter(name__in=["worker", "50%"]), ("name",)))
    with CaptureQueriesContext(connection) as statements:
        assert read_tables(part) == [[["worker"]]]
    assert "EXECUTE" in statements[0]["sql"]
