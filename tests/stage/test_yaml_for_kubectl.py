"""kubectl reads the portal's YAML as it was meant. It needs no API server for that."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deploy.local import build
from portal.yaml_text import to_yaml
from tests.support import sizes
from tests.support.odd_strings import FAILED, ODD_STRINGS


@pytest.fixture(scope="module")
def kubectl() -> Path:
    return build.build() / "kubectl"


@settings(max_examples=sizes.size(20, 1000))
@example(texts=list(FAILED))
@given(texts=st.lists(ODD_STRINGS, min_size=1, max_size=100))
def test_kubectl_reads_names_labels_and_keys_as_they_were_written(kubectl, texts):
    objects = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": text, "labels": {text: text}},
            "data": {"text": text},
        }
        for text in texts
    ]
    command = [kubectl, "annotate", "--local", "--filename=-", "--output=json", "read=yes"]
    written = "---\n".join(map(to_yaml, objects)).encode()
    done = subprocess.run(command, input=written, capture_output=True)
    assert done.returncode == 0, done.stderr
    read = documents(done.stdout.decode())
    for one in read:
        del one["metadata"]["annotations"]
    assert read == objects


def documents(text: str) -> list[dict[str, Any]]:
    """Return the JSON documents that follow one another."""
    found, at = [], 0
    while at < len(text.rstrip()):
        one, at = json.JSONDecoder().raw_decode(text, at)
        found.append(one)
        at += 1  # the line break
    return found
