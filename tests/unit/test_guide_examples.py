"""The published examples and the refused manifests in the docs are those of the tests."""

import json

import pytest

from tests.cluster.published import __main__ as published
from tests.cluster.refused_manifests import __main__ as refused


@pytest.mark.parametrize("tried", [published, refused], ids=["published", "refused"])
def test_the_guide_has_the_manifests_that_are_tried(tried) -> None:
    text = tried.GUIDE.read_text(encoding="utf-8")
    assert tried.written(text) == text, f"python -m {tried.__package__} --write"


def test_every_example_either_runs_adapted_or_says_why_not() -> None:
    for row in published.examples():
        assert ("adapted" in row) != ("why_not" in row), row["example"]
        assert ("by" in row) == ("adapted" in row), row["example"]


def test_of_every_object_that_is_sent_the_answer_is_known() -> None:
    for row in published.examples():
        for entry in row["as_is"]:
            assert ("refused" in entry) != ("warned" in entry), row["example"]


def test_examples_with_different_content_send_different_claim_templates() -> None:
    """single-gpu is the one template that NVIDIA's examples share."""
    sent: dict[str, set[str]] = {}
    for row in published.examples():
        for entry in row["as_is"]:
            manifest = entry.get("send", {})
            if manifest.get("kind") == "ResourceClaimTemplate":
                sent.setdefault(json.dumps(manifest["spec"]), set()).add(row["example"])
    shared = [examples for examples in sent.values() if len(examples) > 1]
    assert shared == [{"gpu-test1", "gpu-test2", "gpu-test7", "consumable-shares"}]
