from django.db import migrations, models


class Migration(migrations.Migration):
    """Rename the column; its index follows it in PostgreSQL, so only the state has to be told."""

    dependencies = [("metering", "0003_cluster_is_a_row")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveIndex("UsageInterval", "usage_allocation")],
        ),
        migrations.RenameField("UsageInterval", "allocation", "holder_id"),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddIndex("UsageInterval", models.Index(fields=["holder_id"], name="usage_allocation"))
            ],
        ),
    ]
