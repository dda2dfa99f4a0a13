"""Numbers of objects × their sizes, and the bound that they stay below."""

from functools import partial
from pathlib import Path

import pytest

from portal.core.errors import Invalid
from portal.tenants import object_limits as limits
from portal.tenants.object_limits import CONFIG_KIB, OBJECT_KINDS

DEFAULTS: tuple[dict[str, int], int] = ({}, CONFIG_KIB)
merge = partial(limits.merge, is_adopted=False)
check_bound = partial(limits.check_bound, is_adopted=False)


def refusal(call, *args):
    with pytest.raises(Invalid) as found:
        call(*args)
    return found.value.errors


def test_the_defaults_take_less_than_the_bound_of_a_project():
    assert limits.stored_mib(*DEFAULTS, is_adopted=False) == 275
    assert limits.stored_mib(*DEFAULTS, is_adopted=True) == 276


def test_only_what_differs_from_the_defaults_is_kept():
    assert merge({"jobs": 100}, {"configmaps": 500, "secrets": 200}) == {"jobs": 100, "configmaps": 500}
    assert merge({"jobs": 100}, {"jobs": None}) == {}


def test_the_quota_has_every_kind_by_its_key():
    assert limits.quota({"jobs": 7}, is_adopted=True) == {
        "count/pods": "2000",
        "count/jobs.batch": "7",
        "count/cronjobs.batch": "20",
        "count/deployments.apps": "100",
        "count/replicasets.apps": "400",
        "count/statefulsets.apps": "50",
        "count/controllerrevisions.apps": "200",
        "services": "100",
        "count/endpointslices.discovery.k8s.io": "400",
        "persistentvolumeclaims": "50",
        "configmaps": "200",
        "secrets": "200",
        "count/resourceclaims.resource.k8s.io": "2000",
    }


@pytest.mark.parametrize(
    ("changed", "is_adopted", "number"),
    [({}, False, 0), ({}, True, 20), ({"cronjobs": 3}, False, 3), ({"cronjobs": 3}, True, 3)],
)
def test_cron_jobs_are_for_adopted_namespaces_or_an_operators_word(changed, is_adopted, number):
    assert limits.quota(changed, is_adopted=is_adopted)["count/cronjobs.batch"] == str(number)
    assert limits.numbers(changed, is_adopted=is_adopted)["cronjobs"] == number


@pytest.mark.parametrize("is_adopted", [False, True])
@pytest.mark.parametrize("number", [0, 1, 20])
def test_the_number_of_cron_jobs_that_is_set_is_what_the_quota_has(number, is_adopted):
    merged = limits.merge({"cronjobs": 3}, {"cronjobs": number}, is_adopted=is_adopted)
    assert limits.quota(merged, is_adopted=is_adopted)["count/cronjobs.batch"] == str(number)
    assert limits.is_default("cronjobs", number, is_adopted=is_adopted) == (merged == {})


def test_an_unknown_kind_is_told_the_known_ones():
    (words,) = refusal(merge, {}, {"ingresses": 5})["object_limits.ingresses"]
    assert words == f"There is no such kind. Kinds are: {', '.join(OBJECT_KINDS)}."


@pytest.mark.parametrize(("kind", "number"), [("secrets", -1), ("secrets", 5001), ("pods", 499), ("resourceclaims", 0)])
def test_a_number_out_of_its_range_is_told_the_range(kind, number):
    (words,) = refusal(merge, {}, {kind: number})[f"object_limits.{kind}"]
    known = OBJECT_KINDS[kind]
    assert words.startswith(f"Give {known.minimum} to {known.maximum}, or null for the default of {known.default}.")


@pytest.mark.parametrize("kib", [0, -1, 1025])
def test_a_size_that_the_api_server_would_not_take_is_refused(kib):
    assert refusal(limits.check_config_size, kib) == {
        "config_size_kib": ["Give 1 to 1024, in KiB. The default is 128."]
    }


def test_what_comes_above_the_bound_is_told_what_fits():
    after = ({"configmaps": 2000}, CONFIG_KIB)
    (words,) = refusal(check_bound, DEFAULTS, after, 320, "object_limits")["object_limits"]
    assert words == (
        "The project could then store 500 MiB in etcd, and 320 MiB is the most (PROJECT_STORE_MIB). "
        "What fits: at most 560 configmaps. Or lower the numbers of other kinds."
    )
    check_bound(DEFAULTS, ({"configmaps": 560}, CONFIG_KIB), 320, "object_limits")
    assert refusal(check_bound, DEFAULTS, ({"configmaps": 561}, CONFIG_KIB), 320, "object_limits")


def test_a_size_that_comes_above_the_bound_is_told_what_fits():
    (words,) = refusal(check_bound, DEFAULTS, ({}, 1024), 320, "config_size_kib")["config_size_kib"]
    assert "at most a config_size_kib of 243." in words
    check_bound(DEFAULTS, ({}, 243), 320, "config_size_kib")
    assert refusal(check_bound, DEFAULTS, ({}, 244), 320, "config_size_kib")


def test_a_project_above_a_lowered_bound_comes_down_in_steps():
    before = ({"configmaps": 748}, CONFIG_KIB)
    check_bound(before, ({"configmaps": 600}, CONFIG_KIB), 200, "object_limits")
    check_bound(before, before, 200, "object_limits")
    assert refusal(check_bound, before, ({"configmaps": 749}, CONFIG_KIB), 200, "object_limits")


def test_what_is_used_is_counted_by_the_quotas_keys():
    used = {"count/pods": 10, "count/jobs.batch": 1, "secrets": 2, "services.nodeports": 9}
    assert limits.used_kib(used, config_kib=64) == 10 * 64 + 64 + 2 * 64


def test_the_guides_table_has_the_defaults():
    guide = (Path(__file__).parents[2] / "docs" / "reference" / "guards.md").read_text(encoding="utf-8")
    for name, kind in OBJECT_KINDS.items():
        together = f"{kind.default * kind.size_kib / 1024:.1f} MiB"
        assert f"| {kind.title} | `{name}` | {kind.default} | {kind.size_kib} KiB | {together} |" in guide
    assert f"**{limits.stored_mib(*DEFAULTS, is_adopted=True)} MiB**" in guide
