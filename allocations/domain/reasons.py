"""Translates Kueue's reasons into sentences with hints. Pure.

Conditions are a Workload's, as ``cluster.projectors`` returns them: {type: {status, reason, message, at}}. Kueue writes
detailed pending reasons with the gate UnadmittedWorkloadsObservability; a suffix (``DueTo…``) names the cause.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from allocations.domain.observed_facts import Conditions


class Cause(NamedTuple):
    """A sentence that says what happened, and a hint what to do; "" if nothing has to be done."""

    sentence: str
    hint: str = ""


OPERATOR = "Tell an operator; the team cannot solve this itself."
QUEUED = {
    "submitted": Cause("Submitted to the team queue."),
    "PendingEvaluation": Cause("Kueue has not evaluated it yet."),
    "Bypassed": Cause(
        "Kueue skips it, because it could not admit another one like it a moment ago. What keeps that one waiting"
        " keeps this one too. If that one can never start, neither can this.",
        "Look in the team's queue for the one with the same GPUs, pods and priority that has another reason than this:"
        " it says whether it can ever start. Delete what cannot.",
    ),
    "WaitingForPreemptedWorkloads": Cause(
        "Kueue reclaims quota for it from other workloads. It is admitted when they have ended."
    ),
    "WaitingForPodsReady": Cause("Kueue waits until the pods of what it admitted before are ready."),
    "AdmissionGated": Cause(
        "Its annotation kueue.x-k8s.io/admission-gated-by holds it back.",
        "Remove the annotation when it may run.",
    ),
    "WaitingForQuota": Cause(
        "The team has used its quota. It starts when enough of the quota is free.",
        "Release what the team no longer needs, or request fewer slices or another kind.",
    ),
    "ExceedsMaxQuota": Cause(
        "It requests more than the team's quota, even when nothing else is held.",
        "Request fewer, or have a lead ask an operator for a higher limit.",
    ),
    "NoMatchingFlavor": Cause(
        "The team has no quota of its kind of slice, or its node selector, affinity or tolerations allow none of the"
        " kinds that the team has quota for.",
        "Ask for a slice that the team has quota for, and correct what names its nodes. Only if another kind is meant,"
        " have a lead ask an operator for quota.",
    ),
    "TopologyPlacementFailed": Cause(
        "No group of nodes has room for all of it together.",
        "Ask for fewer at once, or wait until others release theirs.",
    ),
    "Suspended": Cause("The team's queue is stopped, or lacks a flavor; an operator has to look at it.", OPERATOR),
    "Misconfigured": Cause(
        "The project's queue is missing; it is being created again.",
        "Wait a minute; if the message stays, tell an operator.",
    ),
    "OnHold": Cause("Kueue holds it back until an operator lets it go.", OPERATOR),
    "Deactivated": Cause(
        "Its lease was deactivated in Kueue; an operator has to look at it.",
        "Submit it again; if that does not help, tell an operator.",
    ),
    "allocation_limit": Cause(
        "Its project or its member has reached the limit of live allocations; it is queued when one of them ends.",
        "Release an allocation of the project that is no longer needed.",
    ),
    "no_fitting_device": Cause(
        "No device fitted, or no node had CPU, memory or a pod slot left; it queues again after a pause.",
        "Ask for another slice, or spread it over nodes. If its message names CPU, memory or pods, tell an operator.",
    ),
    "start_refused": Cause(
        "The cluster refused what would hold it; it queues again after a pause.",
        "Change the request as the message says, or show the message to an operator.",
    ),
    "more_than_counted": Cause(
        "It was allocated more than its lease counts, so its devices were released; it queues again after a pause.",
        "The fleet has got larger devices since the request: release it and ask again.",
    ),
}
SPECIFIC: Mapping[str, tuple[tuple[str, Cause], ...]] = {
    "NoMatchingFlavor": (
        (
            "unavailable in ClusterQueue",
            Cause(
                "The team's queue has no quota of this kind of slice.",
                "Ask for a slice that the team has quota for, or have a lead ask an operator for quota.",
            ),
        ),
        (
            "doesn't match node affinity",
            Cause(
                "Its node selector or node affinity allows no kind of GPU that the team has quota for.",
                "Name a kind that the team has quota for and submit it again. A lead asks an operator for quota only if"
                " another kind is meant.",
            ),
        ),
        ("untolerated taint", Cause("Its pods do not tolerate the taint of the GPU nodes.", OPERATOR)),
        (
            "opology",
            Cause(
                "It asks for a topology that the GPU nodes do not have.",
                "Submit it again without its annotations kueue.x-k8s.io/podset-…-topology.",
            ),
        ),
    ),
    "Misconfigured": (
        (
            "resources validation failed",
            Cause("Its pods request more than their limits.", "Correct requests and limits and submit it again."),
        ),
        (
            "LimitRange",
            Cause(
                "Its pods do not meet a LimitRange of its namespace.",
                "Correct requests and limits as the message says and submit it again.",
            ),
        ),
        (
            "DRA",
            Cause(
                "Its pods name resource claims, and a queued Job asks for GPUs by resource.",
                "Hold slices in the portal, and label the pod template with the allocation.",
            ),
        ),
        ("ClusterQueue selector", Cause("The team's queue does not serve its namespace.", OPERATOR)),
    ),
}
"""Reasons that Kueue gives for several causes: what its message contains, and the cause. Else it is that of QUEUED."""
ADMITTED = {
    "unschedulable": Cause(
        "Admitted by Kueue and charged for what it reserves, but no node takes its pods.",
        "Change what keeps its pods from the nodes and submit it again, or delete it. Nodes that are full get free when"
        " other pods end.",
    ),
    "pods_refused": Cause(
        "Admitted by Kueue, but its pods are refused.",
        "Correct its pod template and submit it again; delete this one, which is charged for what it reserves.",
    ),
    "admitted": Cause(
        "Admitted by Kueue; its pods are being started.",
        "If they do not start, look at the events of its pods: a node may lack room for CPU or memory.",
    ),
    "running": Cause("Its pods run on GPUs."),
}
EVICTED = {
    "Preempted": Cause(
        "Kueue reclaims its quota for another workload.",
        "It queues again by itself; ask within the team's own quota to keep it.",
    ),
    "PodsReadyTimeout": Cause(
        "Its pods were not ready in time, so Kueue reclaims its quota.",
        "Look at the events of its pods: image, volumes, CPU and memory.",
    ),
    "ClusterQueueStopped": Cause("The team's queue was stopped and emptied.", OPERATOR),
    "LocalQueueStopped": Cause("The project's queue was stopped and emptied.", OPERATOR),
    "NodeFailures": Cause("A node that it ran on failed.", "It queues again by itself."),
    "AdmissionCheck": Cause("An admission check of the platform withdrew its admission.", OPERATOR),
    "Deactivated": Cause("It was deactivated in Kueue.", "Submit it again; if that does not help, tell an operator."),
}
FINISHED = {
    "Succeeded": Cause("It has finished."),
    "Failed": Cause("Its Job failed.", "Look at the logs of its pods, and submit it again."),
    "OutOfSync": Cause("Its Job was changed after it was admitted.", "Submit it again."),
    "OwnerNotFound": Cause("Its Job was deleted."),
}
ENDED = {
    "ends_at": Cause("Its time is over."),
    "gave_up_waiting": Cause(
        "It had no GPUs by {at:%Y-%m-%d %H:%M} UTC, the end of its waiting time.",
        "Ask again to wait longer, or ask for what fits now.",
    ),
}
SUFFIXES = {
    "RequeuingLimitExceeded": "It was evicted too often.",
    "MaximumExecutionTimeExceeded": "It reached its maximum running time.",
}
PREEMPTED_FOR = (
    ("reclamation within the cohort while borrowing", "another team of the department, while both borrowed"),
    ("reclamation within the cohort", "the team of the department that had lent it"),
    ("Fair Sharing within the cohort", "a fair share of what the department lends"),
    ("prioritization in the ClusterQueue", "a higher priority in the team"),
)
IN_UNITS = ("WaitingForQuota", "ExceedsMaxQuota")
"""Reasons whose message from Kueue counts in units of its quotas, of which a GPU can have seven or eight."""
GENERIC = ("Pending", "Inadmissible")
"""What Kueue writes for every cause without its gate UnadmittedWorkloadsObservability; its message tells which."""
BY_MESSAGE = (
    ("insufficient unused quota", "WaitingForQuota"),
    ("maximum capacity", "ExceedsMaxQuota"),
    ("untolerated taint", "NoMatchingFlavor"),
    ("doesn't match node affinity", "NoMatchingFlavor"),
    ("unavailable in ClusterQueue", "NoMatchingFlavor"),
    ("topology", "TopologyPlacementFailed"),
    ("is inactive", "Suspended"),
    ("is stopped", "Suspended"),
    ("doesn't exist", "Misconfigured"),
)
_NEEDED = re.compile(r"insufficient unused quota for (?P<resource>\S+) in flavor \S+, (?P<amount>\d+) more needed")
_SUFFIX = re.compile(r"(?P<base>\w+?)DueTo(?P<suffix>\w+)")


class Reason(NamedTuple):
    """A machine reason, a message of one or two sentences, and a hint what to do."""

    reason: str
    message: str
    hint: str = ""


def explain(conditions: Conditions, *, reserved: bool, inactive: str = "") -> Reason:
    """Return why a workload is pending, admitted, evicted or finished.

    ``reserved``: whether quota is reserved for it. ``inactive``: why its queue admits nothing.

    Finished is tested first, since Kueue leaves QuotaReserved and Admitted on finished workloads. Evicted counts only
    while quota is reserved, since it remains on a workload that is queued again.
    """
    finished, evicted = conditions.get("Finished", {}), conditions.get("Evicted", {})
    pending = conditions.get("QuotaReserved", {})
    if finished.get("status") == "True":
        cause = FINISHED.get(finished["reason"], Cause("It has ended."))
        detail = "" if finished["reason"] == "Succeeded" else finished["message"]
        return Reason(finished["reason"], _with_detail(cause.sentence, detail), cause.hint)
    if reserved and evicted.get("status") == "True":
        base = _split(evicted["reason"])[0]
        hint = EVICTED[base].hint if base in EVICTED else OPERATOR
        return Reason(f"evicted_{base.lower()}", eviction_message(evicted["reason"], evicted["message"]), hint)
    if reserved:
        return Reason("admitted", *ADMITTED["admitted"])
    if is_deactivated(conditions, reserved=reserved):
        cause = EVICTED["Deactivated"]
        suffix = _split(evicted.get("reason", ""))[1]
        return Reason("Deactivated", _joined(cause.sentence, suffix), cause.hint)
    message = pending.get("message", "")
    return queued(pending.get("reason", ""), message, inactive=inactive, missing=_missing_of_job(message))


def kueue_message(conditions: Conditions) -> str:
    """Return Kueue's own message about a pending workload that waits for quota; "" if it has none that says more, or
    one that names another team's queue.
    """
    pending = conditions.get("QuotaReserved", {})
    message = pending.get("message", "")
    is_shown = pending.get("status") != "True" and _split(pending.get("reason", ""))[0] in IN_UNITS
    return message if is_shown and not message.startswith(("Bypassed", "Preempted to accommodate")) else ""


def missing_slices(message: str, per_slice: Mapping[str, int]) -> int:
    """Return how many slices' worth of quota is missing by Kueue's message, rounded up; 0 if it does not say.

    ``per_slice`` are the units of each resource that a slice takes.
    """
    needed = [(match["resource"], int(match["amount"])) for match in _NEEDED.finditer(message)]
    return max((-(-amount // per_slice[name]) for name, amount in needed if per_slice.get(name)), default=0)


def _missing_of_job(message: str) -> str:
    """Return what a Job waits for, such as ``1 more GPU``; "" if Kueue names no resource of NVIDIA, or several."""
    found = {match["resource"]: int(match["amount"]) for match in _NEEDED.finditer(message)}
    if len(found) != 1:
        return ""
    [(resource, amount)] = found.items()
    domain, _, name = resource.partition("/")
    noun = {"gpu": "GPU", "gpu.shared": "shared slice"}.get(name, f"{name} slice")
    return more(amount, noun) if domain == "nvidia.com" else ""


def more(count: int, noun: str) -> str:
    """Return ``1 more GPU`` or ``2 more GPUs``; "" for none."""
    return f"{count} more {noun}{'' if count == 1 else 's'}" if count else ""


def is_deactivated(conditions: Conditions, *, reserved: bool) -> bool:
    """Return whether Kueue has deactivated the workload, so that it is no longer queued."""
    return not reserved and _split(conditions.get("QuotaReserved", {}).get("reason", ""))[0] == "Deactivated"


def queued(reason: str, detail: str = "", *, inactive: str = "", missing: str = "") -> Reason:
    """Return why a workload without quota is pending. ``detail`` is Kueue's message, which is not always useful;
    ``missing`` is what must be free for it, such as ``1 more GPU``.
    """
    base, suffix = _split(reason or "submitted")
    if base in GENERIC:
        base = next((detailed for words, detailed in BY_MESSAGE if words in detail), base)
    if base == "PendingEvaluation" and detail.startswith("Bypassed"):
        base = "Bypassed"
    cause = next((one for words, one in SPECIFIC.get(base, ()) if words in detail), QUEUED.get(base, Cause("")))
    if base == "Suspended" and inactive:
        detail = inactive
    # A preempted workload keeps Kueue's message, which names the other team's queue, until Kueue evaluates it again.
    if base == "PendingEvaluation" or base in IN_UNITS or detail.startswith(("Bypassed", "Preempted to accommodate")):
        detail = ""
    sentence = cause.sentence
    if base == "WaitingForQuota" and missing:
        verb = "is" if missing.startswith("1 ") else "are"
        sentence = f"The team has used its quota. It starts when {missing} {verb} free."
    sentence = _joined(sentence, suffix)
    return Reason(base, _with_detail(sentence, detail) or QUEUED["submitted"].sentence, cause.hint)


def unschedulable(message: str) -> Reason:
    """Return why an admitted workload does not start, given the scheduler's message about one of its pods."""
    cause = ADMITTED["unschedulable"]
    return Reason("unschedulable", f"{cause.sentence} Scheduler: {message}", cause.hint)


def eviction_message(reason: str, message: str) -> str:
    """Return why a workload is evicted.

    Kueue's message about a preemption is not passed on, since it names another team's queue.
    """
    base, suffix = _split(reason)
    if base == "Preempted":
        preemptor = next((preemptor for cause, preemptor in PREEMPTED_FOR if cause in message), "another workload")
        return f"Kueue reclaims its quota for {preemptor}."
    return _joined(EVICTED[base].sentence, suffix) if base in EVICTED else message


def _split(reason: str) -> tuple[str, str]:
    """Return the reason without its suffix, and the sentence for the suffix."""
    match = _SUFFIX.fullmatch(reason)
    return (match["base"], SUFFIXES.get(match["suffix"], "")) if match else (reason, "")


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _with_detail(sentence: str, detail: str) -> str:
    if not detail or not sentence:
        return sentence or detail
    return f"{sentence} Kueue: {detail}"
