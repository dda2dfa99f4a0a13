"""The client's address, from the connection or from trusted proxies, and the network by which clients are counted."""

from ipaddress import IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

IPV6_PREFIX = 64  # one host is usually given a whole /64, and may use any address in it


def client_address(remote: str, forwarded_for: str, trusted_proxies: int) -> str:
    """Return the address that the outermost of `trusted_proxies` saw.

    Each proxy appends the address it saw to X-Forwarded-For, so that is the n-th entry from the right; anyone can send
    what stands before it. The connection's own address `remote` where no proxy is trusted, where the header has fewer
    entries than there are proxies, or where the entry is no address.
    """
    entries = forwarded_for.split(",")
    if not 0 < trusted_proxies <= len(entries):
        return remote
    return _parsed(entries[-trusted_proxies].strip()) or remote


def network(address: str) -> str:
    """Return the network of `address`: an IPv6 /64, or the IPv4 address itself. What is no address stays as it is."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    return str(parsed.ipv4_mapped or IPv6Network((int(parsed), IPV6_PREFIX), strict=False))


def _parsed(entry: str) -> str:
    """Return the address in an entry of X-Forwarded-For, which some proxies write with a port; empty if there is
    none.
    """
    return _address(entry) or _address(_host(entry))


def _host(entry: str) -> str:
    try:
        return urlsplit(f"//{entry}").hostname or ""
    except ValueError:
        return ""


def _address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError:
        return ""
