from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("metering", "0010_rollups"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="usageinterval",
            index=models.Index(fields=["cluster", "start"], name="usage_cluster_start"),
        ),
        migrations.AddIndex(
            model_name="capacityinterval",
            index=models.Index(fields=["cluster", "start"], name="capacity_cluster_start"),
        ),
    ]
