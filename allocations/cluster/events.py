"""What stands in the way of a Job's pods, in the words of whoever refused them (events, on demand).

The Job controller writes an event FailedCreate for each pod that the API server refuses: by a guard, a quota
or Pod Security.
"""

import re

from allocations.cluster.client import Client

PATIENCE_S = (0.5, 1.5)
GUARD = re.compile(
    r"ValidatingAdmissionPolicy '(?P<guard>[\w.-]+)' with binding '[\w.-]+' denied request: (?P<words>.*)", re.S
)


def refusals(client: Client, namespace: str, job: str) -> list[str]:
    """Why pods of the Job with this uid were refused, each sentence once, newest last.

    Raises ClusterUnavailable, soon, and ClusterRefused.
    """
    query = {"fieldSelector": f"involvedObject.uid={job},reason=FailedCreate", "limit": 50}
    items = client.json("GET", f"/api/v1/namespaces/{namespace}/events", query=query, timeout=PATIENCE_S).get("items")
    told = sorted(items or [], key=lambda item: int(item["metadata"]["resourceVersion"]))
    return list(dict.fromkeys(sentence(item.get("message", "")) for item in told))


def sentence(message: str) -> str:
    """A guard's own sentence out of the API server's words around it; other messages as they are."""
    found = GUARD.search(message)
    return f"{found['words'].strip()} (guard {found['guard']})" if found else message
