"""Rows of several tables in one statement."""

from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter

import pytest
from django.db.models import Q

from allocations.lifecycle import spec_of_row
from allocations.models import Allocation
from portal.core import clock
from portal.core.any_of import AnyOf
from portal.core.models import Heartbeat, WorkItem
from portal.core.query_templates import QueryTemplate
from portal.core.reading import Batch, Columns, Rows, Statement, read_rows, read_tables
from portal.tenants.actors import SYSTEM
from quotas.limits import services
from quotas.limits.models import Limit
from quotas.metering.models import UsageInterval
from tests.support.fleet import allocate, fleet
from tests.support.pages import held
from tests.support.people import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def rows():
    now = clock.now()
    WorkItem.objects.create(target="local/platform", due_at=now, updated_at=now, attempts=2)
    for name in ("worker", "watcher"):
        Heartbeat.objects.create(name=name, at=now)


def test_each_part_has_its_rows_and_columns_in_one_query(rows, django_assert_num_queries):
    items, beats = Columns(WorkItem.objects.all(), ("target", "attempts")), Columns(Heartbeat.objects.all(), ("name",))
    with django_assert_num_queries(1):
        found = read_tables(items, beats)
    assert [(one.target, one.attempts) for one in found[0]] == [("local/platform", 2)]
    assert sorted(one.name for one in found[1]) == ["watcher", "worker"]


def test_columns_of_a_statement_have_names(rows, django_assert_num_queries):
    sql, names = 'SELECT target, attempts AS "end" FROM core_due WHERE attempts = %s', ("target", "end")
    with django_assert_num_queries(1):
        [[found]] = read_tables(Statement(sql, (2,), names))
    with django_assert_num_queries(1):
        [read] = read_rows(sql, [2])
    assert (found.target, found.end) == (read.target, read.end) == ("local/platform", 2)


def test_conditions_and_their_parameters_stay_with_their_part(rows):
    soon = WorkItem.objects.filter(due_at__lt=clock.now() + timedelta(hours=1), target__startswith="100%")
    assert read_tables(Columns(soon, ("target",)), Columns(Heartbeat.objects.filter(name="worker"), ("name",))) == [
        [],
        [("worker",)],
    ]


def test_a_part_that_cannot_have_rows_is_empty(rows):
    none = WorkItem.objects.filter(target__in=[])
    assert read_tables(Columns(none, ("target",)), Columns(Heartbeat.objects.none(), ("name",))) == [[], []]


def fields(row):
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def test_rows_are_read_as_django_reads_them_with_their_relations(team, project, django_assert_num_queries):
    fleet(team)
    made = held(allocate(person(team), project, hours=Decimal("2.500000")))
    Allocation.objects.filter(pk=made.pk).update(held_before=-timedelta(days=3, microseconds=5), purpose='a "quote"')
    expected, interval = spec_of_row.rows().get(), UsageInterval.objects.get()
    with django_assert_num_queries(1):
        [found], [metered] = read_tables(Rows(spec_of_row.rows()), Rows(UsageInterval.objects.all()))
        for path in ("pk", "requested_by", "offering", "offering.flavor", "project", "project.team.department"):
            read, queried = attrgetter(path)(found), attrgetter(path)(expected)
            assert read == queried
            assert path == "pk" or fields(read) == fields(queried)
    assert fields(found) == fields(expected)
    assert str(found.hours) == str(expected.hours)
    assert fields(metered) == fields(interval)


def test_parts_of_a_batch_are_read_in_one_query_and_those_added_later_in_another(rows, django_assert_num_queries):
    batch = Batch()
    items = batch.add(Columns(WorkItem.objects.all(), ("attempts",)))
    beats = batch.add(Rows(Heartbeat.objects.order_by("name")))
    with django_assert_num_queries(1):
        assert ([one.name for one in beats()], items(), items()) == (["watcher", "worker"], [(2,)], [(2,)])
    later = batch.add(Columns(Heartbeat.objects.filter(name="worker"), ("name",)))
    with django_assert_num_queries(1):
        assert (later(), items()) == ([("worker",)], [(2,)])


def test_a_relation_that_a_row_does_not_have_is_none(team):
    fleet(team)
    services.set_limit(SYSTEM, team, None, 1)
    counted = Limit.objects.filter(pool=None).select_related("pool", "offering", "flavor", "project")
    [[found]] = read_tables(Rows(counted))
    assert (found.pool, found.offering, found.flavor, found.project) == (None, None, None, None)


def test_rows_that_cannot_exist_are_none(django_assert_num_queries):
    with django_assert_num_queries(1):
        assert read_tables(Rows(spec_of_row.rows().none()), Rows(UsageInterval.objects.filter(slot="x"))) == [[], []]


def beats_named(name, since):
    kept = Heartbeat.objects.filter(name=name)
    return [Columns(kept, ("name",)), Rows(kept.filter(at__gte=since)), Columns(WorkItem.objects.all(), ("attempts",))]


def test_a_template_reads_other_values_as_a_query_that_is_compiled_for_them(rows):
    built = []

    def parts(name, since):
        built.append(name)
        return beats_named(name, since)

    template = QueryTemplate(parts, name=str, since=datetime)
    now = clock.now()
    for name, since in (("worker", now - timedelta(hours=1)), ("watcher", now + timedelta(hours=1)), ("beat", now)):
        assert read_tables(*template.of(name=name, since=since)) == read_tables(*beats_named(name, since))
    assert read_tables(*template.of(name="worker", since=now))[2] == [(2,)]
    assert len(built) == 1


def test_a_template_refuses_a_parameter_that_it_does_not_use(db):
    template = QueryTemplate(lambda name, other: beats_named(name, clock.now()), name=str, other=str)
    with pytest.raises(ValueError, match="does not use other"):
        template.of(name="worker", other="x")


@pytest.mark.parametrize("values", [{"name": "worker"}, {"name": "worker", "since": None}])
def test_a_template_refuses_a_value_that_is_left_out_or_none(db, values):
    template = QueryTemplate(beats_named, name=str, since=datetime)
    with pytest.raises(ValueError, match="needs a value for since"):
        template.of(**values)


def test_a_template_reads_the_rows_with_any_number_of_values(rows):
    template = QueryTemplate(
        lambda names, targets: [
            Columns(Heartbeat.objects.filter(AnyOf("name", names)).order_by("name"), ("name",)),
            Columns(WorkItem.objects.filter(AnyOf("target", targets), attempts=2), ("target",)),
        ],
        names=list[str],
        targets=list[str],
    )

    def found(names, targets):
        return read_tables(*template.of(names=names, targets=targets))

    assert found(["worker"], []) == [[("worker",)], []]
    assert found(["watcher", "worker", "it's"], ["local/platform"]) == [
        [("watcher",), ("worker",)],
        [("local/platform",)],
    ]
    assert found([], ["", "local/platform"]) == [[], [("local/platform",)]]


def test_any_of_values_is_a_condition_of_a_relation_as_well(team, project):
    fleet(team)
    made = allocate(person(team), project)
    slugs = AnyOf("project__slug", [project.slug, "another"])
    assert Allocation.objects.filter(slugs).get() == made
    assert not Allocation.objects.exclude(slugs).exists()
    assert Allocation.objects.filter(Q(AnyOf("id", [made.pk])) | Q(name="another")).get() == made
