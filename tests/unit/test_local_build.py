"""What the digest of a build covers, and which programs replace compiled ones."""

import shutil
from pathlib import Path

import pytest

from deploy.local import build, toolchain
from deploy.local.errors import LocalError


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the tools' module that a test may edit."""
    copy = tmp_path / "tools"
    shutil.copytree(build.MODULE, copy)
    monkeypatch.setattr(build, "MODULE", copy)
    monkeypatch.setattr(toolchain, "go_env", lambda go, *names: f"{go} {names}")
    return copy


def test_versions_are_those_of_go_mod() -> None:
    pinned = build.versions()
    assert pinned == {
        "go.etcd.io/etcd/server/v3": "v3.6.16",
        "k8s.io/kubernetes": "v1.36.3",
        "sigs.k8s.io/kueue": "v0.19.2",
        "sigs.k8s.io/kwok": "v0.8.0",
    }
    assert {tool.module for tool in build.TOOLS} == set(pinned)


@pytest.mark.parametrize(
    ("chosen", "pinned"), [("1.34", "v1.34.4"), ("1.35", "v1.35.4"), ("1.36", "v1.36.3"), ("1.37", "v1.37.2")]
)
def test_a_variable_chooses_kubernetes_and_nothing_else(
    chosen: str, pinned: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_default = build.versions()
    monkeypatch.setenv("KUBERNETES", chosen)
    assert build.versions() == {**of_default, "k8s.io/kubernetes": pinned}
    assert build.stamps(build.versions())["k8s.io/component-base/version.gitVersion"] == pinned


def test_versions_have_builds_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for version in build.kubernetes_versions():
        monkeypatch.setenv("KUBERNETES", version)
        digests.add(build.digest("/usr/bin/true"))
    assert len(digests) == 4


def test_an_unknown_version_is_refused_with_those_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES", "1.33")
    with pytest.raises(LocalError, match=r"These can: 1\.34, 1\.35, 1\.36, 1\.37\."):
        build.versions()


def test_stamps_carry_the_versions_that_kueue_reads() -> None:
    stamps = build.stamps(build.versions())
    assert stamps["k8s.io/component-base/version.gitVersion"] == "v1.36.3"
    assert stamps["k8s.io/client-go/pkg/version.gitMinor"] == "36"
    assert not stamps["sigs.k8s.io/kueue/pkg/visibility.certDir"].startswith("/")


@pytest.mark.parametrize("name", ["go.mod", "go.sum", "tools.go"])
def test_another_content_is_another_digest(module: Path, name: str) -> None:
    before = build.digest("go")
    with (module / name).open("a") as file:
        file.write("\n// changed\n")
    assert build.digest("go") != before


def test_another_go_is_another_digest(module: Path) -> None:
    assert build.digest("go1") != build.digest("go2")


def test_the_same_content_elsewhere_has_the_same_digest(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = build.digest("go")
    monkeypatch.setattr(build, "MODULE", module.rename(tmp_path / "elsewhere"))
    assert build.digest("go") == before


@pytest.mark.parametrize(
    ("says", "taken"), [("kwok version v0.8.0 go1.26.8", True), ("kwok version v0.7.0 go1.26.8", False)]
)
def test_a_program_on_path_is_taken_when_its_version_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str, taken: bool
) -> None:
    program = tmp_path / "kwok"
    program.write_text(f"#!/bin/sh\necho '{says}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    kwok = next(tool for tool in build.TOOLS if tool.name == "kwok")
    assert build._present(kwok, "v0.8.0") == (program if taken else None)


def test_an_old_go_is_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "go_env", lambda go, *names: "go1.22.10")
    assert toolchain.version("go") == (1, 22)
    assert toolchain.version("go") < toolchain.MINIMUM
