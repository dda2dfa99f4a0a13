"""Each alert fires when it should and not before, by promtool."""

import subprocess
from pathlib import Path

import pytest
import yaml

CASES = {
    "GpuPortalAbsent": ({"gpu_portal_other": "0x60"}, "5m", "4m"),
    "GpuPortalProcessSilent": ({'gpu_portal_heartbeat_age_seconds{process="worker"}': "0 61x60"}, "2m", "1m"),
    "GpuPortalMirrorOld": ({'gpu_portal_mirror_age_seconds{cluster="a"}': "0 61x60"}, "3m", "2m"),
    "GpuPortalWorkLate": ({"gpu_portal_due_lag_seconds": "0 61x60"}, "6m", "5m"),
    "GpuPortalWorkFails": ({"gpu_portal_failing_targets": "0 1x60"}, "11m", "10m"),
    "GpuPortalOverLease": ({'gpu_portal_over_lease{holder="job"}': "0 1x60"}, "2m", "1m"),
    "GpuPortalUnbilled": ({'gpu_portal_unbilled{holder="job"}': "0 1x60"}, "3m", "2m"),
    "GpuPortalOverLeaseConfirmed": (
        {'gpu_portal_over_lease_confirmed_total{holder="job"}': "0 0 1x60"}, "2m", "1m"
    ),
    "GpuPortalUnbalanced": ({'gpu_portal_unbalanced_hours{cluster="a"}': "0 1x300"}, "121m", "119m"),
    "GpuPortalBalanceNotProved": (
        {'gpu_portal_balance_proof_age_seconds{cluster="a"}': "10800 10801x60"}, "16m", "15m"
    ),
    "GpuPortalClockSkew": ({'gpu_portal_clock_skew_seconds{cluster="a"}': "0 -3x60"}, "11m", "10m"),
    "GpuPortalClusterStoreHigh": (
        {
            'gpu_portal_cluster_store_bytes{cluster="a"}': "0 61x60",
            'gpu_portal_cluster_store_quota_bytes{cluster="a"}': "100x60",
        },
        "6m",
        "5m",
    ),
    "GpuPortalClusterStoreCritical": (
        {
            'gpu_portal_cluster_store_bytes{cluster="a"}': "0 86x60",
            'gpu_portal_cluster_store_quota_bytes{cluster="a"}': "100x60",
        },
        "2m",
        "1m",
    ),
    "GpuPortalClusterStoreFull": (
        {'gpu_portal_cluster_store_refused_writes{cluster="a"}': "0 1x60"}, "1m", "0m"
    ),
}  # fmt: skip
"""Series, when the alert fires, and when it does not yet."""


def document(rules: Path, alert: str) -> dict[str, object]:
    series, fires, quiet = CASES[alert]
    shown = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) or vector(0)'
    tests = [
        {"expr": shown, "eval_time": at, "exp_samples": [{"labels": "{}", "value": value}]}
        for at, value in ((quiet, 0), (fires, 1))
    ]
    known = [{"series": name, "values": values} for name, values in series.items()]
    group = {"interval": "1m", "input_series": known, "promql_expr_test": tests}
    return {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [group]}


def promtool(programs: Path, *arguments: str) -> str:
    done = subprocess.run([str(programs / "promtool"), *arguments], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_every_alert_has_a_case(rules: Path) -> None:
    groups = yaml.safe_load(rules.read_text())["groups"]
    assert sorted(CASES) == sorted(rule["alert"] for group in groups for rule in group["rules"])


@pytest.mark.parametrize("alert", CASES)
def test_an_alert_fires_when_it_should_and_not_before(alert: str, programs: Path, rules: Path, tmp_path: Path) -> None:
    path = tmp_path / "test.yaml"
    path.write_text(yaml.safe_dump(document(rules, alert)))
    assert promtool(programs, "test", "rules", str(path)) == ""


def test_promtool_finds_nothing_wrong_with_the_rules(programs: Path, rules: Path) -> None:
    assert promtool(programs, "check", "rules", "--lint=all", "--lint-fatal", str(rules)) == ""
