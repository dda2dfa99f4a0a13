from django.conf import settings
from django.db import migrations

from portal.core import clock


def register_own(apps, schema_editor):
    """Register the cluster of the environment."""
    slug = settings.CLUSTER_NAME
    apps.get_model("clusters", "Cluster").objects.create(slug=slug, name=slug, created_at=clock.now())


class Migration(migrations.Migration):
    dependencies = [("clusters", "0001_initial")]

    operations = [migrations.RunPython(register_own, migrations.RunPython.noop)]
