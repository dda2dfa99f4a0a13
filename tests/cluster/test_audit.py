"""The audit log of the running portal, whose processes connect as a role that can only add to it and to the ledger."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import requests
from django.db import connection

from deploy.local.home import APPLICATION_ROLE, REPOSITORY
from deploy.local.runner import Local
from portal.audit import grants
from portal.core.models import AuditEntry
from portal.tenants.models import Project, User
from tests.support.cluster.allocations import ended, held
from tests.support.cluster.waiting import eventually
from tests.support.people import client


def test_the_portal_connects_as_a_role_that_cannot_change_the_log_or_the_ledger() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        assert cursor.fetchone() == (APPLICATION_ROLE,)
    assert grants.changes_allowed() == []
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as own:
        for statement in ("DELETE FROM core_auditentry", "DELETE FROM metering_usageinterval"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                own.execute(statement)


def test_what_a_person_did_is_noted_in_order_and_sealed_soon(member: User, project: Project) -> None:
    row = held(member, project, "l40s/whole", name="noted")
    response = client(member).get(f"/api/v1/allocations/{row.pk}/connect")
    assert response.status_code == 200
    ended(member, row)
    entries = list(AuditEntry.objects.filter(target=f"{project.slug}/noted").order_by("pk"))
    assert [entry.action for entry in entries] == ["allocation.request", "allocation.connect", "allocation.release"]
    assert {(entry.actor, entry.team, entry.project) for entry in entries} == {
        ("vision-member", "vision", project.slug)
    }
    assert response.json()["kubeconfig"] not in str([vars(entry) for entry in entries])
    eventually(lambda: AuditEntry.objects.filter(pk=entries[-1].pk).exclude(seal=None).exists(), within_s=180)


def test_the_whole_log_of_the_running_portal_verifies(local: Local, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "manage", "audit", "verify", f"--file={tmp_path / 'none'}"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " entries hold" in done.stdout


def test_who_signs_in_by_the_portals_form_is_noted_with_the_address(local: Local, member: User) -> None:
    session = requests.Session()
    session.get(f"{local.home.url}/login", timeout=30)
    fields = {"username": member.username, "password": "wrong", "csrfmiddlewaretoken": session.cookies["csrftoken"]}
    session.post(f"{local.home.url}/login", fields, timeout=30)
    entry = AuditEntry.objects.filter(action="user.sign_in_refused", target=member.username).latest("pk")
    assert entry.source["address"] == "127.0.0.1"
