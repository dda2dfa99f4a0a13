"""What capacity costs the platform: terms and costs of nodes, what is left of a node, and the variance to the price."""

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from portal.core import clock
from portal.core.errors import Invalid, Refused
from portal.tenants.actors import SYSTEM
from quotas.catalog.models import Flavor, Node
from quotas.costs import capacity_costs, capacity_services, node_intervals, rollups, services
from quotas.costs.capacity_services import CostSubject
from quotas.costs.cost_rows import COLUMNS
from quotas.costs.models import CapacityCostDay, CapacityCostHour, NodeCost, NodeInterval, NodeTerm, Price
from quotas.costs.node_intervals import FoundNode
from quotas.costs.node_split import PRESETS
from quotas.costs.node_terms import Term
from quotas.costs.questions import IdleView
from quotas.costs.rating import Window
from quotas.metering.hours import HOUR
from quotas.metering.models import RolledUpHour
from quotas.metering.rolled_up import Rest
from quotas.metering.units import GPU, FoundUnit, Unit
from tests.support import cost_answers
from tests.support.capacity import GPUS, RESOURCES, SEEN, hold_gpu, record
from tests.support.capacity_bodies import L40S, watch
from tests.support.capacity_bodies import node as node_body
from tests.support.clusters import LOCAL
from tests.support.fleet import fleet
from tests.support.observed import at
from tests.support.quotas import T0, hour, used

pytestmark = pytest.mark.django_db
DAY = Window(hour(0), hour(24))
PER_NODE, PER_GPU = NodeCost.Per.NODE, NodeCost.Per.GPU


@pytest.fixture(autouse=True)
def catalog(db: None) -> None:
    """A fleet whose l40s have a price of 1.10, and h100 one of 3.20."""
    fleet()


def flavor(name: str = "l40s") -> Flavor:
    return Flavor.objects.get(name=name)


def node(name: str = "l40s-0") -> Node:
    return Node.objects.get(name=name)


def set_cost(per_hour: str, per: NodeCost.Per, since: float = 0, split: str = "", **subject: Any) -> NodeCost:
    subject = subject or {"flavor": flavor(), "term": Term.ON_DEMAND}
    with clock.frozen(hour(since)):
        return capacity_services.set_node_cost(SYSTEM, CostSubject(**subject), per_hour, per, split, "EUR", hour(since))


def see(since: float, term: Term | None = None, cpus: int = 64, gib: int = 488, *names: str) -> None:
    found = {name: FoundNode(term, cpus * 1000, gib * 1024) for name in names or ("l40s-0", "l40s-1")}
    node_intervals.record(LOCAL, dict.fromkeys(found, SEEN), found, hour(since))


def columns(now: float, keys: tuple[str, ...] = ("flavor",), window: Window = DAY) -> dict[str, Any]:
    found = cost_answers.costs(window, keys, now=hour(now), idle=IdleView())
    return {row.name: row for row in found.rows}


def test_without_a_stated_cost_a_gpu_costs_its_price():
    record(RESOURCES, 0)
    used(hour(0), hour(2), 3)
    [row] = columns(4).values()
    assert (row.idle_cost, row.price_variance, row.node_rest) == ("28.6000", "0", "0")


def test_cost_less_price_is_variance_with_its_sign():
    record(RESOURCES, 0)
    set_cost("0.80", PER_GPU)
    assert columns(1)["l40s"].price_variance == "-2.4000"
    set_cost("1.35", PER_GPU, 1)
    assert columns(2)["l40s"].price_variance == "-0.4000"


def test_holders_pay_the_price_whatever_their_node_costs():
    record(RESOURCES, 0)
    used(hour(0), hour(1), 2)
    before = columns(1)["l40s"]
    set_cost("9", PER_GPU)
    after = columns(1)["l40s"]
    assert (after.cost, after.total, after.idle_cost) == (before.cost, before.total, before.idle_cost)


def test_a_node_is_split_by_weights_and_what_is_left_is_its_rest():
    """The p3.16xlarge of AWS, twice, with four GPUs each: 10 an hour for 64 vCPU and 488 GiB."""
    record(RESOURCES, 0)
    see(0)
    set_cost("10", PER_NODE, split="aws")
    row = columns(1)["l40s"]
    gpu = Fraction(90, 4 * 9 + 576 * Fraction(1, 10) + Fraction(488, 10))
    assert Decimal(row.node_rest) == round(Decimal(float(20 - 8 * gpu)), 4)
    assert Decimal(row.price_variance) == round(Decimal(float(8 * gpu)), 4) - Decimal("8.8")
    assert sum(Decimal(each) for each in (row.idle_cost, row.price_variance, row.node_rest)) == 20


@pytest.mark.parametrize(
    ("per_hour", "gpus", "cpus", "gib", "split", "of_gpus", "rest"),
    [
        ("10", 8, 64, 488, "aws", "4.0359", "5.9641"),
        ("35", 1, 1, 1, "30:10:30", "15.0000", "20.0000"),
    ],
    ids=["AWS: a GPU of 8 is 0.504", "OpenCost: 35 at 30, 30 and 10 are 15, 15 and 5"],
)
def test_the_worked_examples_of_aws_and_opencost_are_columns_that_add_up_to_the_node(
    per_hour, gpus, cpus, gib, split, of_gpus, rest
):
    record({Unit("h100-0", GPU, f"gpu-{n}"): FoundUnit(1, 1) for n in range(gpus)}, 0)
    see(0, None, cpus, gib, "h100-0")
    set_cost(per_hour, PER_NODE, split=split, flavor=flavor("h100"), term=Term.ON_DEMAND)
    row = columns(1)["h100"]
    assert (f"{Decimal(row.idle_cost) + Decimal(row.price_variance)}", row.node_rest) == (of_gpus, rest)


def test_a_node_whose_cost_all_goes_to_its_gpus_has_no_rest():
    record(RESOURCES, 0)
    see(0)
    set_cost("10", PER_NODE)
    row = columns(1)["l40s"]
    assert (row.price_variance, row.node_rest) == ("11.2000", "0")


def test_the_cost_of_one_node_prevails_over_that_of_its_flavor():
    record(RESOURCES, 0)
    set_cost("1", PER_GPU)
    set_cost("3", PER_GPU, 0.5, node=node())
    assert costs(1)["l40s", "gpu"] == 4 * 1 + 2 * 1 + 2 * 3


def costs(end: float, start: float = 0) -> dict[tuple[str, str], Fraction]:
    """Return what capacity cost by flavor and part, from the ledger, without what is nothing."""
    found: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    piece = Rest(1, LOCAL, hour(start), hour(end))
    for one in capacity_costs.of_fleet([hour(start), hour(end)], hour(end), [piece]):
        found[one.place[2], one.part.value] += one.cost
    return {place: cost for place, cost in found.items() if cost}


def test_the_term_is_the_label_then_the_word_of_an_operator_then_on_demand():
    record(RESOURCES, 0)
    for term, amount in ((Term.ON_DEMAND, "4"), (Term.RESERVED, "2"), (Term.SPOT, "1")):
        set_cost(amount, PER_GPU, flavor=flavor(), term=term)
    assert costs(1)["l40s", "gpu"] == 8 * 4
    with clock.frozen(hour(1)):
        capacity_services.set_node_term(SYSTEM, LOCAL, "l40s-0", Term.RESERVED)
    assert costs(2, 1)["l40s", "gpu"] == 4 * 2 + 4 * 4
    see(2, Term.SPOT, 64, 488, "l40s-0")
    assert costs(3, 2)["l40s", "gpu"] == 4 * 1 + 4 * 4
    see(3, None, 64, 488, "l40s-0")
    assert costs(4, 3)["l40s", "gpu"] == 4 * 2 + 4 * 4


def test_a_term_without_a_cost_costs_the_price():
    record(RESOURCES, 0)
    see(0, Term.SPOT)
    set_cost("4", PER_GPU)
    assert costs(1) == {("l40s", "rate"): Fraction("8.8")}


def test_what_fails_still_costs():
    record(RESOURCES, 0)
    record({unit: FoundUnit(4, 0, "node_not_ready") for unit in RESOURCES}, 0.5)
    set_cost("2", PER_GPU)
    assert columns(1)["l40s"].price_variance == "7.2000"


def test_a_node_that_is_gone_costs_nothing():
    record(RESOURCES, 0)
    see(0)
    set_cost("10", PER_NODE, node=node())
    node_intervals.record(LOCAL, {"l40s-0": SEEN}, {}, hour(1))
    record({unit: FoundUnit(0, 0) for unit in RESOURCES if unit.node == "l40s-0"}, 1)
    capacity = capacity_costs.read(LOCAL, hour(1), hour(2))
    assert [span.node for span in capacity.nodes] == ["l40s-1"]


def test_recording_a_node_once_more_changes_nothing():
    see(0)
    see(1)
    assert NodeInterval.objects.count() == 2
    see(2, Term.SPOT)
    rows = NodeInterval.objects.filter(node="l40s-0").order_by("start")
    assert list(rows.values_list("term", "start", "end")) == [("", hour(0), hour(2)), ("spot", hour(2), None)]


def test_it_is_the_same_when_it_is_rolled_up():
    record({**RESOURCES, **GPUS}, 0)
    see(0.25, Term.SPOT)
    set_cost("10", PER_NODE, 0, "aws", flavor=flavor(), term=Term.SPOT)
    set_cost("2.5", PER_GPU, 3.5, flavor=flavor("h100"), term=Term.ON_DEMAND)
    used(hour(0), hour(30), 3)
    before = [columns(30, keys, Window(hour(0), hour(30))) for keys in (("flavor",), ("cluster",), ("team",))]
    rollups.roll_up(LOCAL, hour(0), hour(29))
    assert CapacityCostDay.objects.exists()
    assert [columns(30, keys, Window(hour(0), hour(30))) for keys in (("flavor",), ("cluster",), ("team",))] == before


def test_it_is_unknown_of_hours_that_were_rolled_up_before_costs_of_nodes():
    record(RESOURCES, 0)
    rollups.roll_up(LOCAL, hour(0), hour(1))
    CapacityCostHour.objects.all().delete()
    row = columns(1)["l40s"]
    assert (row.price_variance, row.node_rest, row.unpriced_idle_gpu_hours) == (None, None, "0")
    rollups.roll_up(LOCAL, hour(0), hour(1))
    assert columns(1)["l40s"].price_variance == "0"


def test_a_cost_marks_the_hours_since_it_begins():
    with clock.frozen(hour(0)):
        record(RESOURCES, 0)
    with clock.frozen(hour(10)):
        capacity_services.set_node_cost(SYSTEM, CostSubject(flavor(), Term.ON_DEMAND), "2", PER_GPU, "", "EUR", hour(2))
    assert rollups.dirty_hours(LOCAL, hour(10)) == [hour(n) for n in range(2, 9)]


def test_a_cost_never_changes_what_was_computed():
    set_cost("2", PER_GPU)
    with clock.frozen(hour(5)):
        for subject in ({"flavor": flavor(), "term": Term.ON_DEMAND}, {"node": node()}):
            with pytest.raises(Invalid, match="from now on"):
                capacity_services.set_node_cost(SYSTEM, CostSubject(**subject), "3", PER_GPU, "", "", hour(4))
        with pytest.raises(Invalid, match="from now on"):
            capacity_services.set_node_term(SYSTEM, LOCAL, "l40s-0", Term.SPOT, hour(4))
    with pytest.raises(Refused, match="another cost"):
        set_cost("3", PER_GPU)
    assert set_cost("2.0", PER_GPU).pk == NodeCost.objects.get().pk


def test_a_second_term_at_one_moment_is_refused():
    with clock.frozen(hour(0)):
        first = capacity_services.set_node_term(SYSTEM, LOCAL, "l40s-0", Term.SPOT)
        assert capacity_services.set_node_term(SYSTEM, LOCAL, "l40s-0", Term.SPOT).pk == first.pk
        with pytest.raises(Refused, match="another term"):
            capacity_services.set_node_term(SYSTEM, LOCAL, "l40s-0", Term.RESERVED)
    assert NodeTerm.objects.count() == 1


def test_a_second_currency_is_refused():
    with pytest.raises(Invalid, match="two currencies"):
        capacity_services.set_node_cost(SYSTEM, CostSubject(node=node()), "1", PER_GPU, "", "USD")
    Price.objects.all().delete()
    set_cost("1", PER_GPU)
    with pytest.raises(Invalid, match="two currencies"):
        services.set_price(SYSTEM, flavor().name, "1", "USD")


@pytest.mark.parametrize("names", [(), ("flavor",), ("term",), ("flavor", "node")])
def test_a_cost_is_of_a_flavor_and_term_or_of_a_node(names):
    with pytest.raises(Invalid):
        CostSubject(
            flavor() if "flavor" in names else None,
            Term.SPOT if "term" in names else None,
            node() if "node" in names else None,
        )


@pytest.mark.parametrize("split", ["", "x", "1:2", "1:2:0", "1:2:-3", "1:2:x"])
def test_splits_that_are_none(split):
    with pytest.raises(Invalid):
        capacity_services.weights(split)


def test_splits_by_name_and_by_numbers():
    assert capacity_services.weights("0.9:0.1:9") == PRESETS["aws"] == capacity_services.weights("aws")


@settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_everything_adds_up_to_what_nodes_cost(seed):
    """At random costs, terms, prices and use: all columns together are what a sum over hours of nodes is."""
    random = Random(seed)
    for model in (NodeCost, NodeTerm, NodeInterval, Price, RolledUpHour):
        model.objects.all()._raw_delete("default")
    record({**RESOURCES, **GPUS}, 0)
    expected = Fraction(0)
    per_node = {}
    for name, gpus in (("l40s-0", 4), ("l40s-1", 4), ("h100-0", 2)):
        see(0, random.choice([None, *Term]), random.randrange(1, 99), random.randrange(1, 999), name)
        per_node[name] = round(Decimal(random.random() * 50), 10)
        split = random.choice(list(PRESETS))
        begins = random.choice([0, 0.5, 1])
        set_cost(str(per_node[name]), PER_NODE, begins, split, node=node(name))
        price = round(Decimal(random.random()), 10)
        if name != "l40s-1":
            with clock.frozen(hour(0)):
                services.set_price(SYSTEM, flavor(name[:4]).name, price, "EUR", hour(0))
            rate = {name[:4]: Fraction(price)}
        expected += Fraction(per_node[name]) * Fraction(2 - begins) + rate[name[:4]] * gpus * Fraction(begins)
    for _ in range(random.randrange(5)):
        start = random.uniform(0, 2)
        used(hour(start), hour(random.uniform(start, 3)), random.randrange(1, 4))
        hold_gpu(f"gpu-0/{random.random()}", start, random.uniform(start, 3), gpu_share=Fraction(1, 9))
    if random.random() < 0.5:
        rollups.roll_up(LOCAL, hour(0), hour(random.choice([1, 2])))
    found = columns(2, (), Window(T0, T0 + 2 * HOUR))["all"]
    names = ["cost", *COLUMNS.values()]
    total = sum(Decimal(getattr(found, name)) for name in names)
    assert abs(total - Decimal(float(expected))) < Decimal("0.001"), (found, float(expected))


def test_half_an_hour_of_a_node_costs_half():
    record(RESOURCES, 0)
    see(0)
    set_cost("10", PER_NODE)
    assert costs(0.5) == {("l40s", "gpu"): Fraction(10)}


def test_the_watcher_records_size_and_term_of_nodes():
    labels = {**L40S, "karpenter.sh/capacity-type": "spot", "example.com/other": "x"}
    body = node_body("l40s-9", 1, labels=labels)
    body["status"]["capacity"] |= {"cpu": "64", "memory": "488Gi"}
    watch(0, body)
    watch(30, {**body, "metadata": {**body["metadata"], "resourceVersion": "2"}})
    body["metadata"]["labels"] = {**L40S, "eks.amazonaws.com/capacityType": "ON_DEMAND"}
    watch(60, {**body, "metadata": {**body["metadata"], "resourceVersion": "3"}})
    watch(90, {**body, "metadata": {**body["metadata"], "resourceVersion": "4"}}, gone=True)
    rows = NodeInterval.objects.order_by("start")
    assert list(rows.values_list("node", "term", "cpu_millicores", "memory_mib", "start", "end")) == [
        ("l40s-9", "spot", 64_000, 488 * 1024, at(0), at(60)),
        ("l40s-9", "on-demand", 64_000, 488 * 1024, at(60), at(90)),
    ]


def test_a_node_may_say_any_size():
    body = node_body("l40s-9", 1)
    body["status"]["capacity"] |= {"cpu": "9E", "memory": "9E"}
    watch(0, body)
    assert NodeInterval.objects.get().memory_mib == NodeInterval.objects.get().cpu_millicores == 2**31 - 1
