import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import portal.tenants.models


class Migration(migrations.Migration):

    dependencies = [
        ("clusters", "0001_initial"),
        ("tenants", "0006_object_limits"),
    ]

    operations = [
        migrations.AddField(
            "project",
            "cluster",
            models.ForeignKey(
                db_index=False,
                default=settings.CLUSTER_NAME,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="projects",
                to="clusters.cluster",
            ),
            preserve_default=False,
        ),
        migrations.AlterField(
            "project",
            "namespace",
            models.CharField(
                max_length=63, validators=[portal.tenants.models.is_slug, portal.tenants.models.is_free_namespace]
            ),
        ),
        migrations.AddConstraint(
            "project",
            models.UniqueConstraint(fields=("cluster", "namespace"), name="project_namespace_unique_in_cluster"),
        ),
    ]
