import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q, Value
from django.db.models.functions import Concat

PROTECTED = {"on_delete": django.db.models.deletion.PROTECT, "related_name": "+", "to": "clusters.cluster"}
OBJECT = ("cluster", "kind", "namespace", "name")


def of_cluster(model):
    """What is there is of the one cluster that there was."""
    reference = models.ForeignKey(db_index=False, default=settings.CLUSTER_NAME, **PROTECTED)
    return migrations.AddField(model, "cluster", reference, preserve_default=False)


def with_another_key(name, fields, options, columns):
    """Make the model anew with these fields, and keep its rows."""
    table, former = f"allocations_{name.lower()}", f"allocations_former{name.lower()}"
    copy = f"INSERT INTO {table} (cluster_id, {columns}) SELECT %s, {columns} FROM {former}"  # noqa: S608 (constants)
    return [
        migrations.RenameModel(name, f"Former{name}"),
        migrations.CreateModel(name, fields, options),
        migrations.RunSQL([(copy, [settings.CLUSTER_NAME])], migrations.RunSQL.noop),
        migrations.DeleteModel(f"Former{name}"),
    ]


def by_cluster(*fields):
    return [("cluster", models.OneToOneField(primary_key=True, serialize=False, **PROTECTED)), *fields]


def name_the_cluster(apps, schema_editor):
    rows = apps.get_model("allocations", "AppliedObject").objects
    rows.update(target=Concat(Value(f"{settings.CLUSTER_NAME}/"), "target"))


class Migration(migrations.Migration):

    dependencies = [
        ("allocations", "0008_drop_generation"),
        ("clusters", "0001_initial"),
    ]

    operations = [
        migrations.RemoveConstraint("mirrorobject", "mirror_object_unique"),
        migrations.RemoveIndex("mirrorobject", "mirror_by_allocation"),
        of_cluster("mirrorobject"),
        migrations.AddConstraint("mirrorobject", models.UniqueConstraint(fields=OBJECT, name="mirror_object_unique")),
        migrations.AddIndex(
            "mirrorobject", models.Index(fields=["cluster", "namespace", "allocation"], name="mirror_by_allocation")
        ),
        migrations.RemoveConstraint("appliedobject", "applied_object_unique"),
        of_cluster("appliedobject"),
        migrations.AddConstraint("appliedobject", models.UniqueConstraint(fields=OBJECT, name="applied_object_unique")),
        migrations.AlterField(
            "appliedobject",
            "target",
            models.CharField(help_text="who keeps it, as portal.workqueue.targets has it", max_length=100),
        ),
        migrations.RemoveConstraint("leaseexcess", "lease_excess_once"),
        of_cluster("leaseexcess"),
        migrations.AddConstraint(
            "leaseexcess",
            models.UniqueConstraint(
                condition=Q(over_at__isnull=True),
                fields=("cluster", "holder_kind", "holder", "resource"),
                name="lease_excess_once",
            ),
        ),
        *with_another_key(
            "WatchState",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cluster", models.ForeignKey(db_index=False, **PROTECTED)),
                ("kind", models.CharField(max_length=40)),
                ("resource_version", models.BigIntegerField(default=0)),
                ("synced_at", models.DateTimeField()),
            ],
            {"constraints": [models.UniqueConstraint(fields=("cluster", "kind"), name="watch_state_unique")]},
            "kind, resource_version, synced_at",
        ),
        *with_another_key("WatchEpoch", by_cluster(("number", models.BigIntegerField(default=0))), {}, "number"),
        *with_another_key(
            "ClusterStore",
            by_cluster(("size_bytes", models.BigIntegerField()), ("read_at", models.DateTimeField())),
            {"verbose_name_plural": "cluster stores"},
            "size_bytes, read_at",
        ),
        migrations.RunPython(name_the_cluster, migrations.RunPython.noop),
    ]
