"""Kueue's reasons as sentences, each with a hint. Pure.

Conditions are those of a Workload (facts of ``cluster.kinds``): {type: {status, reason, message, at}}. Kueue writes
detailed pending reasons with the gate UnadmittedWorkloadsObservability; a suffix (``DueTo…``) names a reason's cause.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

Conditions = Mapping[str, Mapping[str, str]]


class Cause(NamedTuple):
    """What is the matter, and what to do; ``hint`` is empty if nothing has to be done."""

    sentence: str
    hint: str = ""


OPERATOR = "Tell an operator; nothing that the team does helps."
QUEUED = {
    "submitted": Cause("Handed to the queue of its team."),
    "PendingEvaluation": Cause("Kueue has not looked at it yet."),
    "WaitingForPreemptedWorkloads": Cause(
        "Kueue takes quota back for it from others; it is admitted when they have left."
    ),
    "WaitingForPodsReady": Cause("Kueue waits until the pods of what it admitted before are ready."),
    "AdmissionGated": Cause(
        "Its own annotation kueue.x-k8s.io/admission-gated-by holds it back.",
        "Take the annotation off when it may run.",
    ),
    "WaitingForQuota": Cause(
        "The team's quota of it is in use; it is admitted when enough of it is given back.",
        "Give back what the team no longer needs, or ask for fewer or for another slice.",
    ),
    "ExceedsMaxQuota": Cause(
        "It asks for more than the team's quota, even when nothing else is held.",
        "Ask for fewer, or have a lead ask an operator for a higher limit.",
    ),
    "NoMatchingFlavor": Cause(
        "The team's queue has no quota of this kind of slice.",
        "Ask for a slice that the team has a limit of, or have a lead ask an operator for one.",
    ),
    "TopologyPlacementFailed": Cause(
        "No group of nodes has room for all of it together.", "Ask for fewer at once, or wait until others give back."
    ),
    "Suspended": Cause("The team's queue is stopped, or lacks a flavor; an operator has to look at it.", OPERATOR),
    "Misconfigured": Cause(
        "The project's queue is not there; it is being made again.", "Wait a minute; if it stays so, tell an operator."
    ),
    "Deactivated": Cause(
        "Its lease was deactivated in Kueue; an operator has to look at it.",
        "Submit it again; if that does not help, tell an operator.",
    ),
    "allocation_limit": Cause(
        "Its project, or its member, has as many live allocations as may be; it is queued when one of them ends.",
        "Release an allocation of the project that is no longer needed.",
    ),
    "no_fitting_device": Cause(
        "No device fitted, or no node had CPU, memory or a pod slot left; it queues again after a pause.",
        "Ask for another slice, or spread it over nodes. If its message names CPU, memory or pods, tell an operator.",
    ),
    "start_refused": Cause(
        "The cluster refused what would hold it; it queues again after a pause.",
        "Ask for what its message allows, or show the message to an operator.",
    ),
    "more_than_counted": Cause(
        "It was given more than its lease counts, so that was given back; it queues again after a pause.",
        "The fleet has grown since: release it and ask again.",
    ),
}
ADMITTED = {
    "admitted": Cause(
        "Admitted by Kueue; its pods are being started.",
        "If they do not start, look at the events of its pods: a node may lack room for CPU or memory.",
    ),
    "running": Cause("Its pods run on GPUs."),
}
EVICTED = {
    "Preempted": Cause(
        "Kueue takes its quota back for another.",
        "It queues again by itself; ask within the team's own quota to keep it.",
    ),
    "PodsReadyTimeout": Cause(
        "Its pods were not ready in time, so Kueue takes its quota back.",
        "Look at the events of its pods: image, volumes, CPU and memory.",
    ),
    "ClusterQueueStopped": Cause("The team's queue was stopped and emptied.", OPERATOR),
    "LocalQueueStopped": Cause("The project's queue was stopped and emptied.", OPERATOR),
    "NodeFailures": Cause("A node that it ran on failed.", "It queues again by itself."),
    "AdmissionCheck": Cause("A check of the platform took its admission back.", OPERATOR),
    "Deactivated": Cause("It was deactivated in Kueue.", "Submit it again; if that does not help, tell an operator."),
}
FINISHED = {
    "Succeeded": Cause("It has finished."),
    "Failed": Cause("Its Job failed.", "Look at the logs of its pods, and submit it again."),
    "OutOfSync": Cause("Its Job was changed after it was admitted.", "Submit it again."),
    "OwnerNotFound": Cause("Its Job was deleted."),
}
CAUSES = {
    "RequeuingLimitExceeded": "It was taken back too often.",
    "MaximumExecutionTimeExceeded": "It ran for as long as it may.",
}
PREEMPTED_FOR = (
    ("reclamation within the cohort while borrowing", "another team of the department, while both borrowed"),
    ("reclamation within the cohort", "the team of the department that had lent it"),
    ("Fair Sharing within the cohort", "a fair share of what the department lends"),
    ("prioritization in the ClusterQueue", "a higher priority in the team"),
)
_CAUSE = re.compile(r"(?P<base>\w+?)DueTo(?P<cause>\w+)")


class Reason(NamedTuple):
    """``reason`` for machines; ``message`` one or two sentences; ``hint`` what to do."""

    reason: str
    message: str
    hint: str = ""


def explain(conditions: Conditions, *, reserved: bool, inactive: str = "") -> Reason:
    """Why a workload stands where it does. ``reserved``: it has quota; ``inactive``: what stops its queue.

    Finished comes first: Kueue leaves QuotaReserved and Admitted as they were. Evicted counts only while quota is
    reserved: it stays on a workload that queues again.
    """
    finished, evicted = conditions.get("Finished", {}), conditions.get("Evicted", {})
    waiting = conditions.get("QuotaReserved", {})
    if finished.get("status") == "True":
        words = FINISHED.get(finished["reason"], Cause("It has ended."))
        said = "" if finished["reason"] == "Succeeded" else finished["message"]
        return Reason(finished["reason"], _and_kueue(words.sentence, said), words.hint)
    if reserved and evicted.get("status") == "True":
        base = _split(evicted["reason"])[0]
        hint = EVICTED[base].hint if base in EVICTED else OPERATOR
        return Reason(f"evicted_{base.lower()}", evicted_words(evicted["reason"], evicted["message"]), hint)
    if reserved:
        return Reason("admitted", *ADMITTED["admitted"])
    if is_deactivated(conditions, reserved=reserved):
        words = EVICTED["Deactivated"]
        cause = _split(evicted.get("reason", ""))[1]
        return Reason("Deactivated", " ".join(part for part in (words.sentence, cause) if part), words.hint)
    return queued(waiting.get("reason", ""), waiting.get("message", ""), inactive=inactive)


def is_deactivated(conditions: Conditions, *, reserved: bool) -> bool:
    """Whether Kueue has taken it out of all queues: it waits for nothing more."""
    return not reserved and _split(conditions.get("QuotaReserved", {}).get("reason", ""))[0] == "Deactivated"


def queued(reason: str, detail: str = "", *, inactive: str = "") -> Reason:
    """Why what has no quota waits. ``detail``: Kueue's own words, which often only say that a like one failed."""
    base, cause = _split(reason or "submitted")
    words = QUEUED.get(base, Cause(""))
    if base == "Suspended" and inactive:
        detail = inactive
    # What was preempted keeps Kueue's words of that, which name the other team's queue, until it is looked at again.
    is_told = base == "PendingEvaluation" or detail.startswith(("Bypassed", "Preempted to accommodate"))
    said = "" if is_told else detail
    sentence = " ".join(part for part in (words.sentence, cause) if part)
    return Reason(base, _and_kueue(sentence, said) or QUEUED["submitted"].sentence, words.hint)


def evicted_words(reason: str, message: str) -> str:
    """Why quota is taken back. What Kueue says of a preemption names the other team's queue, so it is not passed on."""
    base, cause = _split(reason)
    if base == "Preempted":
        whom = next((who for said, who in PREEMPTED_FOR if said in message), "another")
        return f"Kueue takes its quota back for {whom}."
    words = EVICTED.get(base)
    return " ".join(part for part in (words.sentence, cause) if part) if words else message


def _split(reason: str) -> tuple[str, str]:
    """(reason without its cause, the cause in words)."""
    found = _CAUSE.fullmatch(reason)
    return (found["base"], CAUSES.get(found["cause"], "")) if found else (reason, "")


def _and_kueue(sentence: str, said: str) -> str:
    if not said or not sentence:
        return sentence or said
    return f"{sentence} Kueue: {said}"
