"""What OpenCost's clients send means what it means there, or is refused with a sentence."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.http import QueryDict

from portal.core.errors import Invalid
from quotas.costs import cost_parameters, opencost_parameters
from quotas.costs.filters import conjuncts
from quotas.costs.opencost_parameters import REFUSED, TAKEN

NOW = datetime(2026, 11, 19, 15, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("accumulateBy=week", "accumulate=week"),
        ("accumulate=false&accumulateBy=all", "accumulate=all"),
        ("step=1d", "accumulate=day"),
        ("step=1h&accumulate=false", "accumulate=hour"),
        ("step=24h&accumulate=true", "accumulate=all"),
        ("step=window", "accumulate=all"),
        ("costMetric=monthly", "cost=monthly"),
        ("includeIdle=true", "idle=separate"),
        ("includeIdle=False&idleByNode=false", "idle=hide"),
        ("shareIdle=true", "idle=share"),
        ("includeIdle=true&shareIdle=1&idleByNode=true", "idle=share&idle_by=node"),
        ("resolution=1m", ""),
        ("filterNamespaces=team-a", 'filter=namespace:"team-a"'),
        ("filterNamespaces=a,b*&filterNodes=n", 'filter=node:"n"%2B(namespace:"a"|namespace<~:"b")'),
        ('filter=team:"vision"&filterClusters=one', 'filter=team:"vision"%2Bcluster:"one"'),
        ("filterLabels=app:train,stage:pro*", 'filter=label[app]:"train"|label[stage]<~:"pro"'),
        ("includeAggregatedMetadata=false&includeProportionalAssetResourceCosts=false&sharelb=false", ""),
    ],
)
def test_what_maps_asks_what_the_portals_own_words_ask(theirs, ours):
    asked = opencost_parameters.read(QueryDict(theirs), NOW)
    own = cost_parameters.read(QueryDict(ours), NOW)
    assert conjuncts(asked.where) == conjuncts(own.where)
    assert replace(asked, where=own.where) == own


@pytest.mark.parametrize(
    ("theirs", "field", "why"),
    [
        ("accumulateBy=quarter", "accumulateBy", "Use one of true, false, all"),
        ("step=3h", "step", "For weeks and months use accumulateBy"),
        ("includeIdle=maybe", "includeIdle", "Use true or false"),
        ("includeIdle=true&idle=hide", "idle", "not both"),
        ("idleByNode=true", "idleByNode", "It goes with shareIdle=true"),
        ("includeIdle=true&idleByNode=true", "idleByNode", "aggregate=node"),
        ("costMetric=monthly&cost=daily", "costMetric", "not both"),
        ("filterLabels=app", "filterLabels", "<key>:<value>"),
        ("filterNamespaces=" + ",".join("a" * 101), "filterNamespaces", "at most 100"),
        (f"filterNodes={','.join('a' * 60)}&filterLabels={','.join(['a:b'] * 60)}", "filterLabels", "together"),
        ("filterPods=a", "filterPods", "The ledger knows no pods"),
        ("shareNamespaces=kube-system", "shareNamespaces", "fixed costs"),
        ("includeAggregatedMetadata=true", "includeAggregatedMetadata", "no such parts"),
        ("offset=25", "offset", "window=7d offset 1d"),
    ],
)
def test_what_does_not_map_is_refused_with_what_to_use(theirs, field, why):
    with pytest.raises(Invalid) as caught:
        opencost_parameters.read(QueryDict(theirs), NOW)
    assert why in caught.value.errors[field][0]


def test_nothing_is_both_taken_and_refused():
    assert not set(TAKEN) & set(REFUSED)
