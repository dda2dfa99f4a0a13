from django.db import migrations, models
from django.db.models import Q
from django.db.models.functions import Now


def free_numbers_of_scheduled(apps, schema_editor):
    """Take the number from what has not started: it gets one when its lease is made."""
    Allocation = apps.get_model("allocations", "Allocation")
    scheduled = Q(phase="scheduled", starts_at__gt=Now(), ended_at=None)
    Allocation.objects.filter(scheduled).update(number=None)


class Migration(migrations.Migration):
    dependencies = [("allocations", "0004_lease_excess")]

    operations = [
        migrations.AlterField(
            model_name="allocation",
            name="number",
            field=models.PositiveSmallIntegerField(
                blank=True,
                default=0,
                help_text="which of the project's live allocations it is: names its hold quota and its pods' class; "
                "empty while it is scheduled",
                null=True,
            ),
        ),
        migrations.RunPython(free_numbers_of_scheduled, migrations.RunPython.noop),
    ]
