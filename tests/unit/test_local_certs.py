"""Certificates of the local control plane."""

from pathlib import Path

import pytest
from cryptography.x509 import DNSName, load_pem_x509_certificate
from cryptography.x509.verification import PolicyBuilder, Store

from deploy.local import certs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("local") / "certs"
    certs.ensure_certificates(made)
    return made


@pytest.mark.parametrize("leaf", [leaf for leaf in certs.LEAVES if leaf.names], ids=lambda leaf: leaf.file)
def test_those_of_servers_are_accepted_by_strict_clients(folder: Path, leaf: certs.Leaf) -> None:
    """As Python 3.13 is by default, which wants key identifiers (RFC 5280 §4.2.1)."""
    authority, found = (
        load_pem_x509_certificate((folder / f"{n}.crt").read_bytes()) for n in (leaf.authority, leaf.file)
    )
    PolicyBuilder().store(Store([authority])).build_server_verifier(DNSName("localhost")).verify(found, [])
