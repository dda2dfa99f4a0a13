import base64
import os
from pathlib import Path

import pytest
import yaml

from allocations.cluster.access import TokenFile, from_kubeconfig

CA = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"


def kubeconfig(folder: Path, user: dict[str, object], **cluster: object) -> Path:
    content = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


def test_takes_server_ca_and_token(tmp_path: Path) -> None:
    data = {"certificate-authority-data": base64.b64encode(CA.encode()).decode()}
    access = from_kubeconfig(kubeconfig(tmp_path, {"token": "secret"}, **data))
    assert (access.server, access.ca, access.token()) == ("https://127.0.0.1:6443", CA, "secret")


def test_reads_a_token_file_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    token = TokenFile(file)
    assert token() == "first"
    file.write_text("second\n")
    os.utime(file, (1, 1))
    assert token() == "second"


@pytest.mark.parametrize(
    ("user", "cluster", "named"),
    [
        ({"exec": {"command": "touch", "args": ["planted"]}}, {}, "remove exec"),
        ({"token": "t", "auth-provider": {"name": "x"}}, {}, "remove auth-provider"),
        ({"token": "t"}, {"insecure-skip-tls-verify": True}, "remove insecure-skip-tls-verify"),
        ({"token": "t"}, {"proxy-url": "http://127.0.0.1"}, "remove proxy-url"),
        ({"client-certificate-data": "x", "client-key-data": "y"}, {}, "remove client-certificate-data"),
        ({}, {}, "it has no token"),
    ],
)
def test_refuses_a_kubeconfig_that_asks_for_more(
    user: dict[str, object], cluster: dict[str, object], named: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=named):
        from_kubeconfig(kubeconfig(tmp_path, user, **cluster))
    assert not (tmp_path / "planted").exists()
