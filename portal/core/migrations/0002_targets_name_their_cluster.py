from django.conf import settings
from django.db import migrations
from django.db.models import Value
from django.db.models.functions import Concat


def name_the_cluster(apps, schema_editor):
    apps.get_model("core", "Due").objects.update(target=Concat(Value(f"{settings.CLUSTER_NAME}/"), "target"))


class Migration(migrations.Migration):

    dependencies = [("core", "0001_initial")]

    operations = [migrations.RunPython(name_the_cluster, migrations.RunPython.noop)]
