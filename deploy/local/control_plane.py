"""Command lines of the control plane's programs: the flags, and why they differ from the defaults."""

import os
from dataclasses import dataclass
from pathlib import Path

from deploy.local import kueue
from deploy.local.build import kubernetes_version
from deploy.local.home import ETCD_QUOTA_BYTES, Home
from deploy.local.kubeconfigs import component_kubeconfig

STAGES = Path(__file__).parent / "stages"
AUDIT_POLICY = Path(__file__).parent / "audit-policy.yaml"
# The scheduler's default of 50 requests a second would dominate every burst. The controller manager keeps its 20 a
# second for each controller: with more, scaling a Deployment up and down would saturate the API server.
BURST = ("--kube-api-qps=1000", "--kube-api-burst=2000")
# For two processors, of which flow control gives tenants a part; the defaults, 400 and 200, are for large servers.
MAX_REQUESTS_IN_FLIGHT = ("--max-requests-inflight=40", "--max-mutating-requests-inflight=20")


@dataclass(frozen=True)
class Differences:
    """What the programs are told beside their defaults on one version of Kubernetes: feature gates of all, those of the
    API server alone, and versions of APIs that are else not served.

    The API server alone knows the scheduler's own gangs, so that the policies have something to refuse: to a scheduler
    that does not, the pods are as any others.
    """

    gates: tuple[str, ...] = ()
    apiserver_gates: tuple[str, ...] = ()
    apis: tuple[str, ...] = ()


DIFFERENCES = {
    "1.34": Differences(),
    "1.35": Differences(apiserver_gates=("GenericWorkload",), apis=("scheduling.k8s.io/v1alpha1",)),
    "1.36": Differences(
        gates=("DRADeviceTaintRules",),
        apiserver_gates=("GenericWorkload", "DRAWorkloadResourceClaims"),
        apis=("resource.k8s.io/v1beta2", "scheduling.k8s.io/v1alpha2"),
    ),
    "1.37": Differences(
        apiserver_gates=("GenericWorkload", "DRAWorkloadResourceClaims", "WorkloadWithJob"),
        apis=("scheduling.k8s.io/v1beta1",),
    ),
}


def serves(version: str) -> bool:
    """Return whether the chosen version of Kubernetes is this one or later."""
    known = list(DIFFERENCES)
    return known.index(kubernetes_version()) >= known.index(version)


def gangs() -> str:
    """Return the group and version of the scheduler's own gangs; "" if none is served."""
    return next((api for api in DIFFERENCES[kubernetes_version()].apis if api.startswith("scheduling.k8s.io/")), "")


def device_taint_rules() -> str:
    """Return the group and version of DeviceTaintRule."""
    return "resource.k8s.io/v1" if serves("1.37") else "resource.k8s.io/v1beta2"


def etcd(home: Home, quota_bytes: int = ETCD_QUOTA_BYTES) -> tuple[str, ...]:
    client, peer = (f"https://127.0.0.1:{home.ports[port]}" for port in ("etcd", "etcd-peer"))
    pair = (home.certs / "etcd.crt", home.certs / "etcd.key", home.certs / "etcd-ca.crt")
    return (
        _binary(home, "etcd"),
        "--name=local",
        f"--data-dir={home.root / 'etcd' / 'data'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=local={peer}",
        f"--cert-file={pair[0]}", f"--key-file={pair[1]}", f"--trusted-ca-file={pair[2]}",
        f"--peer-cert-file={pair[0]}", f"--peer-key-file={pair[1]}", f"--peer-trusted-ca-file={pair[2]}",
        "--client-cert-auth", "--peer-client-cert-auth",
        f"--quota-backend-bytes={quota_bytes}",
        "--auto-compaction-mode=periodic", "--auto-compaction-retention=15m",
        "--log-level=warn",
    )  # fmt: skip


def apiserver(home: Home) -> tuple[str, ...]:
    certs, differences = home.certs, DIFFERENCES[kubernetes_version()]
    return (
        _binary(home, "kube-apiserver"),
        "--bind-address=127.0.0.1", f"--secure-port={home.ports['apiserver']}",
        f"--etcd-servers=https://127.0.0.1:{home.ports['etcd']}", f"--etcd-cafile={certs / 'etcd-ca.crt'}",
        f"--etcd-certfile={certs / 'etcd-client.crt'}", f"--etcd-keyfile={certs / 'etcd-client.key'}",
        f"--tls-cert-file={certs / 'apiserver.crt'}", f"--tls-private-key-file={certs / 'apiserver.key'}",
        f"--client-ca-file={certs / 'ca.crt'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={certs / 'service-account.pub'}",
        f"--service-account-signing-key-file={certs / 'service-account.key'}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",  # Pod Security refuses a privileged pod, not this server
        *_gates(differences.gates + differences.apiserver_gates),
        *(f"--runtime-config={api}=true" for api in differences.apis),
        *MAX_REQUESTS_IN_FLIGHT,
        *audit(home),
        # Kueue's visibility server is called through the aggregator, as in production.
        f"--requestheader-client-ca-file={certs / 'front-proxy-ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group", "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={certs / 'front-proxy-client.crt'}",
        f"--proxy-client-key-file={certs / 'front-proxy-client.key'}",
        # An endpoint may not be a loopback address, and no pod of this cluster dials it.
        "--endpoint-reconciler-type=none",
    )  # fmt: skip


def audit(home: Home) -> tuple[str, ...]:
    """Return the options that write the portal's requests to `audit.log` of the home, if APISERVER_AUDIT is set."""
    if not os.environ.get("APISERVER_AUDIT"):
        return ()
    return (f"--audit-policy-file={AUDIT_POLICY}", f"--audit-log-path={home.log('audit')}")


def controller_manager(home: Home) -> tuple[str, ...]:
    own = (
        f"--root-ca-file={home.certs / 'ca.crt'}",
        f"--service-account-private-key-file={home.certs / 'service-account.key'}",
        "--use-service-account-credentials",
    )
    return (*_component(home, "kube-controller-manager", "controller-manager"), *own)


def scheduler(home: Home) -> tuple[str, ...]:
    return (*_component(home, "kube-scheduler", "scheduler"), *BURST)


def _component(home: Home, program: str, identity: str) -> tuple[str, ...]:
    kubeconfig = component_kubeconfig(home, identity)
    return (
        _binary(home, program),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={home.ports[identity]}",
        f"--tls-cert-file={home.certs / 'components.crt'}",
        f"--tls-private-key-file={home.certs / 'components.key'}",
        "--leader-elect=false",
        *_gates(DIFFERENCES[kubernetes_version()].gates),
    )


def _gates(on: tuple[str, ...]) -> tuple[str, ...]:
    return (f"--feature-gates={','.join(f'{gate}=true' for gate in on)}",) if on else ()


def kueue_manager(home: Home) -> tuple[str, ...]:
    return (
        _binary(home, "kueue"),
        # The visibility server reads this flag only, not KUBECONFIG.
        f"--kubeconfig={component_kubeconfig(home, 'kueue')}",
        f"--config={kueue.folder(home) / 'config.yaml'}",
        "--zap-log-level=2",
    )


def kwok(home: Home) -> tuple[str, ...]:
    stages = (f"--config={path}" for path in sorted(STAGES.glob("*.yaml")))
    return (
        _binary(home, "kwok"),
        f"--kubeconfig={component_kubeconfig(home, 'hardware')}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{home.ports['kwok']}",
        *stages,
    )


def _binary(home: Home, name: str) -> str:
    return str(home.binaries / name)
