"""Ports of a home: kept from start to start, chosen again only if in use."""

import json
import socket
from pathlib import Path

import pytest
from pytest_socket import enable_socket

from deploy.local.errors import LocalError
from deploy.local.home import PORT_RANGE, PORTS, choose_ports, claims, is_free, open_home


@pytest.fixture(autouse=True)
def sockets() -> None:
    """Allow sockets: choosing a port binds one, on 127.0.0.1 only."""
    enable_socket()


def test_every_name_gets_a_port_of_its_own_below_the_ephemeral_range() -> None:
    ports = choose_ports({}, is_free)
    assert list(ports) == list(PORTS)
    assert len(set(ports.values())) == len(PORTS)
    assert all(port in PORT_RANGE for name, port in ports.items() if name != "web")


def test_free_ports_are_kept() -> None:
    ports = choose_ports({}, is_free)
    assert choose_ports(ports, is_free) == ports


def test_a_taken_port_is_chosen_again_and_the_others_stay() -> None:
    ports = choose_ports({}, is_free)
    with socket.socket() as other:
        other.bind(("127.0.0.1", ports["etcd"]))
        other.listen()
        again = choose_ports(ports, is_free)
    assert again["etcd"] != ports["etcd"]
    assert {**again, "etcd": 0} == {**ports, "etcd": 0}


def test_two_homes_that_start_together_claim_different_ports(tmp_path: Path) -> None:
    with claims(tmp_path) as one, claims(tmp_path) as other:
        first = choose_ports({}, one)
        assert not set(first.values()) & set(choose_ports(first, other).values())
    with claims(tmp_path) as later:
        assert choose_ports(first, later) == first


def test_no_free_port_is_said(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"no free port for etcd on 127\.0\.0\.1"):
        choose_ports({}, lambda port: False)


def test_a_home_remembers_its_ports(tmp_path: Path) -> None:
    home = open_home(tmp_path, tmp_path / "bin")
    assert json.loads((tmp_path / "ports.json").read_text()) == home.ports
    assert open_home(tmp_path, tmp_path / "bin") == home


def test_secrets_are_made_once_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    home = open_home(tmp_path, tmp_path / "bin")
    assert home.secret("redis") == home.secret("redis")
    assert (tmp_path / "redis.secret").stat().st_mode & 0o777 == 0o600
