"""The way of a platform team with the chart, from an empty namespace to an empty one, each step timed."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import requests
import yaml

from deploy.delivery import programs
from deploy.delivery.load import PER_S, Load
from deploy.delivery.node import ANNOTATION, NAMESPACE, Node
from deploy.local.errors import LocalError
from deploy.local.home import REPOSITORY
from deploy.local.kubectl import kubectl
from deploy.local.runner import Local
from deploy.local.tour.rest import Portal

HELM_TIMEOUT = "--timeout=10m"
GONE_S = 120
OPERATOR = "first-operator"
MEMBER = "vision-member"
POLICIES = "validatingadmissionpolicies,mutatingadmissionpolicies"
LABELLED = "crd,clusterroles,clusterrolebindings,priorityclasses"


class Journey:
    """The steps that a platform team takes, each timed."""

    def __init__(self, local: Local, node: Node, chart: Path, folder: Path) -> None:
        self.local, self.node, self.chart, self.folder = local, node, chart, folder
        self.home = local.home
        self.binary = programs.folder() / "helm"
        self.values = folder / "values.yaml"

    def play(self) -> list[tuple[str, str]]:
        """Return each step and what came of it."""
        results = []
        for step in (
            self.prepare,
            self.install,
            self.preflight,
            self.sign_in,
            self.tour,
            self.upgrade,
            self.uninstall,
            self.reinstall,
        ):
            began = time.monotonic()
            say(f"\n== {step.__name__}")
            found = step()
            say(found)
            results.append((step.__name__, f"{found} ({since(began)})"))
        return results

    def prepare(self) -> str:
        """Create namespace, Secrets and values."""
        kubectl(self.home, "create", "namespace", NAMESPACE)
        kubectl(self.home, "label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
        secrets = {
            "gpu-portal-owner": {"DATABASE_OWNER_URL": self.home.owner_url()},
            "gpu-portal": {
                **{"DATABASE_URL": self.home.database_url(), "REDIS_URL": self.home.redis_url()},
                **{"SECRET_KEY": self.home.secret("django"), "METRICS_TOKEN": self.home.secret("metrics")},
            },
        }
        for name, data in secrets.items():
            literals = [f"--from-literal={key}={value}" for key, value in data.items()]
            kubectl(self.home, "--namespace", NAMESPACE, "create", "secret", "generic", name, *literals)
        self._write_values(1)
        return "namespace with Pod Security restricted, two Secrets, values"

    def install(self) -> str:
        """Install the chart."""
        self._helm("install", "gpu-portal", str(self.chart), f"--values={self.values}", "--wait", HELM_TIMEOUT)
        self._wait_ready()
        pods = sorted(pod.component for pod in self.node.pods.values() if pod.is_ready)
        return f"helm install returned with {len(pods)} pods ready: {', '.join(pods)}"

    def preflight(self) -> str:
        """Run the chart's test."""
        self._helm("test", "gpu-portal", HELM_TIMEOUT)
        return "helm test: preflight exits 0 with the token of the chart's service account"

    def sign_in(self) -> str:
        """Create the first operator within a pod of web, and sign in; enter the people and quotas of the demo."""
        password = self.home.secret("operator")
        env = {"DJANGO_SUPERUSER_PASSWORD": password, "DJANGO_SUPERUSER_EMAIL": "operator@example.com"}
        command = ["python", "manage.py", "createsuperuser", "--no-input", f"--username={OPERATOR}"]
        container = self.node.running("web").container
        assert container is not None
        container.execute(*command, env=env)
        session = requests.Session()
        form = session.get(f"{self.node.url}/login", timeout=30)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
        fields = {"username": OPERATOR, "password": password, "csrfmiddlewaretoken": token[1] if token else ""}
        page_ = session.post(form.url, fields, headers={"Referer": form.url}, timeout=30)
        if page_.status_code != 200 or OPERATOR not in page_.text:
            raise LocalError(f"the operator could not sign in: {page_.status_code} {page_.url}")
        for seed in (("seed", f"--home={self.home.root}"), ("seed_quotas",)):
            self._manage(*seed)
        return "an operator, created in a pod of web, signed in on the page"

    def tour(self) -> str:
        """Run the scripted tour through the Service."""
        command = [sys.executable, "-m", "deploy.local.tour", f"--home={self.home.root}", f"--url={self.node.url}"]
        if subprocess.run(command, cwd=REPOSITORY, check=False).returncode:
            raise LocalError("the tour failed")
        return "the tour passed through the Service"

    def upgrade(self) -> str:
        """Upgrade with every pod replaced, while requests come."""
        self._write_values(2)
        before = set(self.node.pods)
        load = Load(self.node.url, self._token())
        load.start()
        self._helm("upgrade", "gpu-portal", str(self.chart), f"--values={self.values}", "--wait", HELM_TIMEOUT)
        self._wait_ready()
        load.finish()
        left = [pod.name for pod in self.node.pods.values() if pod.name in before and pod.is_ready]
        if load.failures or left:
            raise LocalError(
                f"upgrade: {len(load.failures)} of {load.count} requests failed: {load.failures[:5]}; left {left}"
            )
        return f"all pods replaced, {load.count} requests at {PER_S} a second, none failed"

    def uninstall(self) -> str:
        """Be refused while a GPU is held, release it, uninstall, and compare what is left with the docs."""
        portal = self.portal()
        row = portal.post(
            "allocations", project="vision-train", offering="l40s/whole", count=1, hours=1, purpose="delivery"
        )
        portal.wait(row["id"], "active")
        try:
            self._helm("uninstall", "gpu-portal", "--timeout=3m")
        except LocalError:
            say("refused while a GPU is held")
        else:
            raise LocalError("helm uninstall went on while a GPU was held")
        portal.post(f"allocations/{row['id']}/release")
        portal.wait(row["id"], "ended")
        self._helm("uninstall", "gpu-portal", "--wait", HELM_TIMEOUT)
        return f"refused while a GPU is held; afterwards left: {self._left()}"

    def reinstall(self) -> str:
        """Install again: what was left is taken over, and the ledger goes on."""
        self.install()
        (row, *_) = self.portal().get("allocations", limit="1")["results"]
        self._helm("uninstall", "gpu-portal", "--wait", HELM_TIMEOUT)
        return f"took over what was left; {row['name']} is still in the list as {row['phase']}; uninstalled again"

    def portal(self) -> Portal:
        """Return a client as a member of the demo."""
        return Portal(self.node.url, self._token())

    def _token(self) -> str:
        demo = json.loads((self.home.root / "demo.json").read_text(encoding="utf-8"))
        token: str = demo["tokens"][MEMBER]
        return token

    def _left(self) -> str:
        """Return what is left of the chart in the cluster; raise LocalError if it is not what the docs say."""
        kinds = "deployments,services,serviceaccounts,networkpolicies,poddisruptionbudgets,pods"
        deadline = time.monotonic() + GONE_S
        # The pod of `helm test` goes with its Job.
        but = ("serviceaccount/default", "pod/gpu-portal-preflight")
        while left := [name for name in self._names(kinds, "--namespace", NAMESPACE) if not name.startswith(but)]:
            if time.monotonic() > deadline:
                raise LocalError(f"left in namespace {NAMESPACE}: {left}")
            time.sleep(1)
        policies = [name for name in self._names(POLICIES) if "/gpu-portal-" in name]
        others = [
            name.partition("/")[2] for name in self._names(LABELLED, "--selector=app.kubernetes.io/part-of=gpu-portal")
        ]
        if "gpu-portal:portal" in others or "gpuprojects.gpu-portal.io" not in others or not policies:
            raise LocalError(f"left in the cluster: {others}, {policies}")
        return f"{len(policies)} policies, {', '.join(sorted(others))}"

    def _names(self, kinds: str, *options: str) -> list[str]:
        return kubectl(self.home, "get", kinds, *options, "--output=name").split()

    def _write_values(self, revision: int) -> None:
        values = {
            "url": self.node.url,
            "clusterName": "local",
            "trustedProxies": 0,
            "settings": {"HTTPS": "false", "ETCD_QUOTA_BYTES": self.home.env()["ETCD_QUOTA_BYTES"]},
            "pods": {"annotations": {ANNOTATION: "delivery", "example.com/revision": str(revision)}},
            "monitoring": {"metrics": True},
        }
        self.values.write_text(yaml.safe_dump(values))

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + 300
        while True:
            answer = requests.get(f"{self.node.url}/readyz", timeout=30)
            if answer.json()["status"] == "ready":
                return
            if time.monotonic() > deadline:
                raise LocalError(f"/readyz: {answer.text}")
            time.sleep(1)

    def _manage(self, *arguments: str) -> None:
        """Run a command of the demo from the checkout: its people and prices are not in the image."""
        env = {**os.environ, **self.local.env(), "PORTAL_URL": self.node.url}
        subprocess.run([sys.executable, "-m", "manage", *arguments], cwd=REPOSITORY, env=env, check=True)

    def _helm(self, *arguments: str) -> None:
        options = [f"--kubeconfig={self.home.kubeconfig}", f"--namespace={NAMESPACE}"]
        env = {
            **os.environ,
            **{f"HELM_{name}_HOME": str(self.folder / name.lower()) for name in ("CACHE", "CONFIG", "DATA")},
        }
        run = subprocess.run([self.binary, *arguments, *options], env=env, capture_output=True, text=True, check=False)
        if run.returncode:
            raise LocalError(f"helm {arguments[0]}:\n{run.stdout[-3000:]}{run.stderr[-3000:]}")


def say(words: str) -> None:
    print(words, flush=True)


def since(began: float) -> str:
    seconds = int(time.monotonic() - began)
    return f"{seconds // 60} min {seconds % 60} s"
