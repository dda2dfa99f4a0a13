"""Reads the parameters of OpenCost's clients that `/costs` has other words for.

They are those of OpenCost's `/allocation` (pkg/costmodel/aggregation.go) and of Kubecost's. Each becomes the portal's
own where both mean the same; what has no meaning here is refused with a sentence, and nothing is ignored that would
change an answer. What differs all the same is in docs/reference/opencost.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.http import QueryDict

from portal.core import labels
from portal.core.errors import Invalid
from quotas.costs import columns, cost_parameters
from quotas.costs.filters import And, Comparison, Filter, Operator, Or
from quotas.costs.questions import Question

TRUE, FALSE = {"true", "t", "1"}, {"false", "f", "0"}
"""What Go's strconv.ParseBool reads, in lower case."""
STEPS = {"1h": "hour", "60m": "hour", "1d": "day", "24h": "day", "window": "all"}
CHOICES = {
    "accumulateBy": list(cost_parameters.STEPS),
    "step": list(STEPS),
    "costMetric": list(cost_parameters.METRICS),
}
"""Parameter → its values, where it has some only."""
FILTERS = {"filterClusters": "cluster", "filterNodes": "node", "filterNamespaces": "namespace"}
"""Parameter → the key that it compares. ``filterLabels`` compares the label that each of its values names."""
MAX_VALUES = 100
"""Of all filter parameters together, as each name is a comparison in SQL."""
TAKEN: Mapping[str, str] = {
    "accumulateBy": "The same as `accumulate`, before which it comes.",
    "step": f"Rows for each step, where `accumulate` does not join them: {', '.join(STEPS)}.",
    "resolution": "Has no effect: amounts are to the second.",
    "costMetric": "The same as `cost`.",
    "includeIdle": "true: idle=separate. false: idle=hide.",
    "shareIdle": "true: idle=share.",
    "idleByNode": "true, with shareIdle=true: idle_by=node.",
    **{name: f"Values of `{key}` with commas; one that ends with * is the beginning." for name, key in FILTERS.items()},
    "filterLabels": "Labels as <key>:<value> with commas.",
}
"""What OpenCost's clients send, and what it is here."""
_SHARED = "Costs that all share are entered as bills and fixed costs: `adjustment` and `shared_cost` of each row."
_PODS = f"The ledger knows no pods. Filter by {', '.join(columns.KEYS)} or label[<key>]."
_NO_PARTS = "Rows have no such parts."
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(
        ("shareNamespaces", "shareLabels", "shareCost", "shareSplit", "shareTenancyCosts", "sharelb"), _SHARED
    ),
    **dict.fromkeys(
        (
            *("filterControllers", "filterControllerKinds", "filterPods", "filterContainers", "filterServices"),
            *("filterAnnotations", "filterDepartments", "filterTeams", "filterProducts", "filterOwners"),
        ),
        _PODS,
    ),
    **dict.fromkeys(("includeAggregatedMetadata", "includeProportionalAssetResourceCosts"), _NO_PARTS),
    "offset": "Follow `next` of the answer. A window that ends earlier is window=7d offset 1d.",
    "reconcile": "What is charged never changes.",
}
"""What OpenCost's clients send and nothing here answers, and what to use instead; false asks for nothing."""


def read(parameters: QueryDict, now: datetime) -> Question:
    """Return the question that the parameters ask, OpenCost's among them; raise Invalid for what cannot be read."""
    for name, sentence in REFUSED.items():
        if name in parameters and parameters.get(name, "").lower() not in {"", *FALSE}:
            raise Invalid({name: [sentence]})
    names = {name: _names(parameters, name) for name in (*FILTERS, "filterLabels")}
    if sum(map(len, names.values())) > MAX_VALUES:
        words = f"Give at most {MAX_VALUES} names in all of {', '.join(names)} together."
        raise Invalid({name: [words] for name, found in names.items() if found})
    own = parameters.copy()
    for name, value in (*_steps(parameters), *_idle(parameters), *_metric(parameters)):
        own[name] = value
    question = cost_parameters.read(own, now)
    parts = [_filter(name, found) for name, found in names.items() if found]
    return replace(question, where=And((question.where, *parts))) if parts else question


def _steps(parameters: QueryDict) -> list[tuple[str, str]]:
    by, step, accumulate = (parameters.get(name, "") for name in ("accumulateBy", "step", "accumulate"))
    if by:
        _check("accumulateBy", by)
        return [("accumulate", by)]
    if not step:
        return []
    _check("step", step, " For weeks and months use accumulateBy.")
    return [("accumulate", STEPS[step])] if accumulate in ("", "false") else []


def _idle(parameters: QueryDict) -> list[tuple[str, str]]:
    includes, shares, by_node = (_bool(parameters, name) for name in ("includeIdle", "shareIdle", "idleByNode"))
    if by_node and not shares:
        raise Invalid({"idleByNode": ["It goes with shareIdle=true. Idle cost of each node: aggregate=node."]})
    if includes is None and shares is None:
        return []
    if "idle" in parameters:
        raise Invalid({"idle": ["Give it, or includeIdle and shareIdle, not both."]})
    if shares:
        return [("idle", "share"), *([("idle_by", "node")] if by_node else [])]
    return [("idle", "separate" if includes else "hide")]


def _metric(parameters: QueryDict) -> list[tuple[str, str]]:
    metric = parameters.get("costMetric", "")
    if not metric:
        return []
    _check("costMetric", metric)
    if parameters.get("cost", metric) != metric:
        raise Invalid({"costMetric": ["Give it or cost, not both."]})
    return [("cost", metric)]


def _names(parameters: QueryDict, name: str) -> list[str]:
    return [stripped for value in cost_parameters.values(parameters, name) if (stripped := value.strip())]


def _filter(name: str, values: Sequence[str]) -> Filter:
    """Return what keeps rows with any of the parameter's values."""
    parts = [_comparison(FILTERS[name], value) if name in FILTERS else _label(name, value) for value in values]
    return Or(tuple(parts)) if len(parts) > 1 else parts[0]


def _comparison(key: str, value: str) -> Comparison:
    if value.endswith("*"):
        return Comparison(key, Operator.STARTS_WITH, (value.removesuffix("*"),))
    return Comparison(key, Operator.EQUALS, (value,))


def _label(name: str, text: str) -> Comparison:
    key, colon, value = text.partition(":")
    if not colon or not labels.is_key(key):
        raise Invalid({name: ["Write labels as <key>:<value>, several with commas."]})
    return _comparison(columns.label_key(key), value)


def _bool(parameters: QueryDict, name: str) -> bool | None:
    value = parameters.get(name, "").lower()
    if value and value not in TRUE | FALSE:
        raise Invalid({name: ["Use true or false."]})
    return value in TRUE if value else None


def _check(name: str, value: str, more: str = "") -> None:
    if value not in CHOICES[name]:
        raise Invalid({name: [f"Use one of {', '.join(CHOICES[name])}.{more}"]})
