"""The page of reasons: why something is pending, ended or refused, with what to do about it, from the code."""

from collections.abc import Mapping

from allocations.domain import reasons
from docs.generate.markdown import table
from portal.api.schemas.problem_output import TYPES
from portal.core.errors import type_uri

HEAD = """# Reasons

For everyone who reads `reason` in an answer or on a page: what each means and what to do about it. Written by
`make reference` from the code. A reason of Kueue may have a suffix (`DueTo…`), which the message tells.

"""
CAUSES: tuple[tuple[str, Mapping[str, reasons.Cause]], ...] = (
    ("While it is queued", reasons.QUEUED),
    ("When it has quota", reasons.ADMITTED),
    ("When Kueue takes the quota back", reasons.EVICTED),
    ("When a Job has ended", reasons.FINISHED),
    ("When an allocation has ended", reasons.ENDED),
)


def page() -> str:
    parts = [
        f"## {title}\n\n"
        + table(
            ("reason", "message", "what to do"),
            ((f"`{name}`", cause.sentence, cause.hint) for name, cause in causes.items()),
        )
        for title, causes in CAUSES
    ]
    parts.insert(
        1,
        "A reason of Kueue may have several causes, which its message tells:\n\n"
        + table(
            ("reason", "message has", "message", "what to do"),
            (
                (f"`{name}`", words, cause.sentence, cause.hint)
                for name, causes in reasons.SPECIFIC.items()
                for words, cause in causes
            ),
        ),
    )
    problems = sorted((str(one.reason), int(one.status), one.title) for one in TYPES.values())
    parts.append(
        "## Refused requests\n\nThe `type` of a problem (RFC 9457) is "
        f"`{type_uri('')}` followed by the reason. `detail` says what happened, `hint` what to do.\n\n"
        + table(
            ("reason", "status", "title"), ((f"`{reason}`", str(status), title) for reason, status, title in problems)
        )
    )
    return (HEAD + "".join(parts)).rstrip("\n") + "\n"
