from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("allocations", "0009_cluster")]

    operations = [
        migrations.RenameField("Allocation", "asks_owner", "needs_attention"),
        migrations.RenameField("Allocation", "steer", "device_affinity"),
        migrations.AlterField(
            "Allocation",
            "device_affinity",
            models.JSONField(
                blank=True,
                default=dict,
                help_text="GPUs that its claims request (UUIDs by slice), or that the scheduler chooses",
            ),
        ),
    ]
