import pytest

from portal.http.client_address import client_address, network

PEER = "10.0.0.1"


@pytest.mark.parametrize(
    ("forwarded_for", "trusted_proxies", "address"),
    [
        ("", 0, PEER),
        ("203.0.113.9", 0, PEER),
        ("", 1, PEER),
        ("192.0.2.7", 1, "192.0.2.7"),
        ("203.0.113.9, 192.0.2.7", 1, "192.0.2.7"),
        ("203.0.113.9, 192.0.2.7, 10.0.0.2", 2, "192.0.2.7"),
        ("192.0.2.7", 2, PEER),
        ("203.0.113.9, nonsense", 1, PEER),
        ("203.0.113.9,", 1, PEER),
        ("192.0.2.7:55123", 1, "192.0.2.7"),
        ("[2001:db8::7]:55123", 1, "2001:db8::7"),
        ("2001:db8::7", 1, "2001:db8::7"),
        ("[2001:db8::7", 1, PEER),
    ],
)
def test_only_as_many_entries_are_believed_as_there_are_trusted_proxies(forwarded_for, trusted_proxies, address):
    assert client_address(PEER, forwarded_for, trusted_proxies) == address


@pytest.mark.parametrize(
    ("address", "counted_as"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2::7", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_an_ipv6_client_is_counted_by_its_64(address, counted_as):
    assert network(address) == counted_as
