"""Builds the findings of preflight checks, and names the fixes that several checks share. Pure."""

from collections.abc import Iterable

from allocations.cluster.preflight.types import Finding, ReadError, Status

APPLY = "kubectl apply --server-side -k deploy/cluster"
USE_PORTAL_TOKEN = "use the token of service account gpu-portal/portal"  # noqa: S105 (an instruction, no secret)


def ok(check: str, found: str) -> Finding:
    """Return a finding without a problem."""
    return Finding(check, Status.OK, found)


def problem(check: str, found: str, fix: str) -> Finding:
    """Return a finding that prevents the portal from working, with its fix."""
    return Finding(check, Status.PROBLEM, found, fix)


def ok_or_problem(check: str, is_ok: bool, found: str, fix: str) -> Finding:
    """Return a finding that is a problem unless ``is_ok``; ``fix`` is only used for a problem."""
    return ok(check, found) if is_ok else problem(check, found, fix)


def unreadable(check: str, error: ReadError) -> Finding:
    """Return a problem: the portal may not read what the check needs."""
    return problem(check, f"not read: {error}", f"{APPLY}, and {USE_PORTAL_TOKEN}")


def table(findings: Iterable[Finding]) -> str:
    """Return a line for each finding; below one that is not ok, its fix."""
    rows = list(findings)
    width = max(len(finding.check) for finding in rows)
    lines = []
    for finding in rows:
        lines.append(f"{finding.status:<8} {finding.check:<{width}}  {finding.found}")
        if finding.fix:
            lines.append(f"{'':<8} {'':<{width}}  → {finding.fix}")
    return "\n".join(lines)
