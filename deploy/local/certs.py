"""Certificates of the local control plane: three authorities and the certificates they sign.

As in kubeadm, etcd and the front proxy have authorities of their own: a certificate for the API server must give access
neither to etcd nor to another user's identity.
"""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey as Key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = datetime.timedelta(days=3650)
SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default.svc", "127.0.0.1", "10.96.0.1")
LOOPBACK = ("localhost", "127.0.0.1")
WEBHOOK_USER = "system:serviceaccount:gpu-portal:webhook"
KUEUE_USER = "system:serviceaccount:kueue-system:kueue-controller-manager"


@dataclass(frozen=True)
class Leaf:
    """A certificate to issue. `names` are DNS names or addresses; with names it is a server certificate too."""

    file: str
    authority: str
    common_name: str
    groups: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


AUTHORITIES = ("ca", "etcd-ca", "front-proxy-ca")
LEAVES = (
    Leaf("apiserver", "ca", "kube-apiserver", names=SERVER_NAMES),
    Leaf("components", "ca", "control-plane", names=LOOPBACK),
    Leaf("etcd", "etcd-ca", "etcd", names=LOOPBACK),
    Leaf("etcd-client", "etcd-ca", "kube-apiserver"),
    Leaf("front-proxy-client", "front-proxy-ca", "front-proxy-client"),
    Leaf("admin", "ca", "local-admin", ("system:masters",)),
    Leaf("controller-manager", "ca", "system:kube-controller-manager"),
    Leaf("scheduler", "ca", "system:kube-scheduler"),
    # The user and groups of Kueue's pod, so that Kueue's own roles define its permissions here.
    Leaf("kueue", "ca", KUEUE_USER, ("system:serviceaccounts", "system:serviceaccounts:kueue-system")),
    # The user and groups of the webhook's pod, and what it serves with.
    Leaf("webhook", "ca", WEBHOOK_USER, ("system:serviceaccounts", "system:serviceaccounts:gpu-portal"), LOOPBACK),
    # The identity of every kubelet and driver of the simulated nodes.
    Leaf("hardware", "ca", "simulated-hardware", ("system:masters",)),
)


def ensure_certificates(folder: Path) -> None:
    """Write `<name>.crt` and `<name>.key` for each authority and leaf, and `service-account.key|.pub`, if they are
    missing.

    The file `complete` is written last: a folder without it, or without a leaf of this release, is written again.
    """
    if (folder / "complete").exists() and all((folder / f"{leaf.file}.crt").exists() for leaf in LEAVES):
        return
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    authorities = {name: _authority(folder, name) for name in AUTHORITIES}
    for leaf in LEAVES:
        _issue(folder, leaf, *authorities[leaf.authority])
    account = ec.generate_private_key(ec.SECP256R1())
    _write_key(folder / "service-account.key", account)
    public = account.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / "service-account.pub").write_bytes(public)
    (folder / "complete").touch()


def _authority(folder: Path, name: str) -> tuple[x509.Name, Key]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"gpu-portal-local-{name}")])
    usage = x509.KeyUsage(True, False, True, False, False, True, True, False, False)
    builder = (
        _builder(subject, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    _write(folder / name, builder.sign(key, hashes.SHA256()), key)
    return subject, key


def _issue(folder: Path, leaf: Leaf, issuer: x509.Name, issuer_key: Key) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in leaf.groups]
    subject = x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, leaf.common_name)])
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if leaf.names else [])]
    builder = (
        _builder(subject, issuer, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if leaf.names:
        names = x509.SubjectAlternativeName([_general(name) for name in leaf.names])
        builder = builder.add_extension(names, critical=False)
    _write(folder / leaf.file, builder.sign(issuer_key, hashes.SHA256()), key)


def _builder(subject: x509.Name, issuer: x509.Name, key: Key) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + VALID)
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(stem: Path, certificate: x509.Certificate, key: Key) -> None:
    stem.with_suffix(".crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_key(stem.with_suffix(".key"), key)


def _write_key(path: Path, key: Key) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
