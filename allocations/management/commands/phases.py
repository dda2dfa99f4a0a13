from django.core.management.base import BaseCommand

from allocations.domain import phases

PAGE = """# Phases of an allocation

Written by `python manage.py phases > docs/reference/phases.md` from the list that decides them
(`allocations/domain/phases.py`).
The first line that is true gives the phase. An allocation is charged from the moment its GPUs are held until the portal
sees them released, so in `releasing` too, and at no other time.

{table}

When ended, the outcome is `cancelled` (never held) or `released` (held) when a person ended it, `expired` when its time
was over (reason `ends_at`) or it was not held by `give_up_at` (reason `gave_up_waiting`), `evicted` when Kueue evicted
it and it was not to queue again, `failed` when its namespace is gone.
"""


class Command(BaseCommand):
    help = "Print the guide's page on phases."

    def handle(self, *args: object, **options: object) -> None:
        self.stdout.write(PAGE.format(table=phases.table()), ending="")
