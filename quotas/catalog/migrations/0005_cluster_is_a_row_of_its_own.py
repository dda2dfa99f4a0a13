import django.db.models.deletion
from django.db import migrations, models

# Foreign keys are checked at the end of a transaction, and a table with checks to come cannot be altered.
BY_SLUG = """
    UPDATE {table} SET cluster_id = (SELECT slug FROM catalog_cluster WHERE id = former_id);
    SET CONSTRAINTS ALL IMMEDIATE;
    SET CONSTRAINTS ALL DEFERRED;
"""


def by_slug(model, related_name):
    """Replace the model's reference to a cluster's number by one to its slug."""
    reference = {"on_delete": django.db.models.deletion.PROTECT, "related_name": related_name, "db_index": False}
    return [
        migrations.RenameField(model, "cluster", "former"),
        migrations.AddField(model, "cluster", models.ForeignKey(null=True, to="clusters.cluster", **reference)),
        migrations.RunSQL(BY_SLUG.format(table=f"catalog_{model}"), migrations.RunSQL.noop),
        migrations.RemoveField(model, "former"),
        migrations.AlterField(model, "cluster", models.ForeignKey(to="clusters.cluster", **reference)),
    ]


class Migration(migrations.Migration):

    dependencies = [
        ("catalog", "0004_drop_histories"),
        ("clusters", "0001_initial"),
    ]

    operations = [
        migrations.RemoveConstraint("flavor", "flavor_identity"),
        migrations.RemoveConstraint("node", "node_once_per_cluster"),
        *by_slug("flavor", "flavors"),
        *by_slug("node", "nodes"),
        migrations.AddConstraint(
            "flavor",
            models.UniqueConstraint(fields=("cluster", "product", "path", "strategy"), name="flavor_identity"),
        ),
        migrations.AddConstraint(
            "node", models.UniqueConstraint(fields=("cluster", "name"), name="node_once_per_cluster")
        ),
        migrations.DeleteModel("Cluster"),
    ]
