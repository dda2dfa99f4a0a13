from collections import Counter

from django.db import migrations, models
from django.db.models import Q


def number_the_live(apps, schema_editor):
    """Give each live allocation of a project a number of its own; what has ended needs none."""
    Allocation = apps.get_model("allocations", "Allocation")
    used = Counter()
    for row in Allocation.objects.filter(ended_at=None).order_by("project_id", "created_at", "id").only("project_id"):
        Allocation.objects.filter(pk=row.pk).update(number=used[row.project_id])
        used[row.project_id] += 1


class Migration(migrations.Migration):
    dependencies = [("allocations", "0002_phase_until")]

    operations = [
        migrations.AddField(
            model_name="allocation",
            name="number",
            field=models.PositiveSmallIntegerField(
                default=0,
                help_text="which of the project's live allocations it is: names its hold quota and its pods' class",
            ),
        ),
        migrations.RunPython(number_the_live, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="allocation",
            constraint=models.UniqueConstraint(
                fields=["project", "number"],
                condition=Q(ended_at__isnull=True),
                name="allocation_number_unique_live",
            ),
        ),
    ]
