from django.core.management.base import BaseCommand

from allocations.domain import phases

PAGE = """# Phases

For everyone who reads `phase` on a page or in an answer: what it means, and when an allocation is charged.
Written by `make reference` from the list that decides the phase (`allocations/domain/phases.py`).

The first line that is true gives the phase. An allocation is charged from the moment its GPUs are held until the portal
sees them released, so in `releasing` too, and at no other time.

{table}

An allocation that has ended has an outcome:

| outcome | when |
|---|---|
| `cancelled` | a person ended it before it was held |
| `released` | a person ended it while it was held |
| `expired` | its time was over (reason `ends_at`), or it was not held by `give_up_at` (reason `gave_up_waiting`) |
| `evicted` | Kueue evicted it, and it was not to queue again |
| `failed` | its namespace is gone |
"""


def page() -> str:
    """Return the page of the docs on phases."""
    return PAGE.format(table=phases.table())


class Command(BaseCommand):
    help = "Print the page of the docs on phases."

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write(page(), ending="")
