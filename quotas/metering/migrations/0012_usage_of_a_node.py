from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("metering", "0011_ledger_starts"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="usageinterval",
            index=models.Index(
                condition=models.Q(("node", ""), _negated=True), fields=["node", "end"], name="usage_node_end"
            ),
        ),
    ]
