import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("catalog", "0006_memory_part"),
    ]

    operations = [
        migrations.CreateModel(
            name="FlavorVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("since", models.DateTimeField()),
                ("document", models.JSONField()),
                (
                    "flavor",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="versions",
                        to="catalog.flavor",
                    ),
                ),
            ],
            options={
                "ordering": ("flavor__name", "-since"),
                "indexes": [models.Index(fields=["flavor", "-since"], name="flavor_version_newest")],
            },
        ),
    ]
