import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("clusters", "0001_initial"),
        ("metering", "0002_unused"),
    ]

    operations = [
        migrations.AlterField(
            "usageinterval",
            "cluster",
            models.ForeignKey(
                db_column="cluster",
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="clusters.cluster",
            ),
        ),
    ]
