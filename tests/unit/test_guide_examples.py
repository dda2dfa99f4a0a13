"""The table of published examples in docs/reference/examples.md is that of the tests."""

import json

from tests.cluster.published import __main__ as published


def test_the_guide_has_the_examples_that_are_tried() -> None:
    text = published.GUIDE.read_text(encoding="utf-8")
    assert published.written(text) == text, "python -m tests.cluster.published --write"


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
