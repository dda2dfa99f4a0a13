import django.core.validators
from django.conf import settings
from django.db import migrations, models

from portal.core import clock


def register_known(apps, schema_editor):
    """The clusters of the catalogue and of the ledger, and that of the environment."""
    names = dict(apps.get_model("catalog", "Cluster").objects.values_list("slug", "name"))
    charged = apps.get_model("metering", "UsageInterval").objects.order_by().values_list("cluster", flat=True)
    for slug in {settings.CLUSTER_NAME, *names, *charged.distinct()}:
        apps.get_model("clusters", "Cluster").objects.create(
            slug=slug, name=names.get(slug, slug), created_at=clock.now()
        )


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ("catalog", "0004_drop_histories"),
        ("metering", "0002_unused"),
    ]

    operations = [
        migrations.CreateModel(
            name="Cluster",
            fields=[
                (
                    "slug",
                    models.CharField(
                        max_length=50,
                        primary_key=True,
                        serialize=False,
                        validators=[django.core.validators.validate_slug],
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                (
                    "server",
                    models.CharField(
                        blank=True,
                        help_text="API server in people's kubeconfigs; empty: as the portal reaches it",
                        max_length=255,
                    ),
                ),
                ("created_at", models.DateTimeField()),
            ],
            options={"ordering": ("slug",)},
        ),
        migrations.RunPython(register_known, migrations.RunPython.noop),
    ]
