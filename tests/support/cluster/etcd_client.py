"""A client of a local cluster's etcd, with the API server's certificate."""

import urllib3

from deploy.local.home import Home


def pool(home: Home, timeout_s: float) -> urllib3.PoolManager:
    certs = home.certs
    return urllib3.PoolManager(
        ca_certs=str(certs / "etcd-ca.crt"),
        cert_file=str(certs / "etcd-client.crt"),
        key_file=str(certs / "etcd-client.key"),
        retries=False,
        timeout=timeout_s,
    )
