import django.db.models.deletion
import simple_history.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Cluster",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slug", models.SlugField(unique=True)),
                ("name", models.CharField(max_length=100)),
            ],
            options={
                "ordering": ("slug",),
            },
        ),
        migrations.CreateModel(
            name="Flavor",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=63, unique=True)),
                (
                    "product",
                    models.CharField(
                        help_text="value of the node label nvidia.com/gpu.product", max_length=63
                    ),
                ),
                (
                    "path",
                    models.CharField(
                        choices=[("dra", "DRA"), ("device-plugin", "device plugin")], max_length=13
                    ),
                ),
                ("strategy", models.CharField(max_length=63)),
                ("architecture", models.CharField(blank=True, max_length=40)),
                ("memory_mib", models.PositiveIntegerField(default=0)),
                ("compute_capability", models.CharField(blank=True, max_length=10)),
                ("node_selector", models.JSONField(default=dict)),
                ("tolerations", models.JSONField(default=list)),
                ("partitionable", models.BooleanField(default=False)),
                ("hidden", models.BooleanField(default=False)),
                (
                    "start_deadline_s",
                    models.PositiveIntegerField(
                        blank=True, help_text="empty: the portal's default", null=True
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="flavors",
                        to="catalog.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="HistoricalFlavor",
            fields=[
                (
                    "id",
                    models.BigIntegerField(auto_created=True, blank=True, db_index=True, verbose_name="ID"),
                ),
                ("name", models.CharField(db_index=True, max_length=63)),
                (
                    "product",
                    models.CharField(
                        help_text="value of the node label nvidia.com/gpu.product", max_length=63
                    ),
                ),
                (
                    "path",
                    models.CharField(
                        choices=[("dra", "DRA"), ("device-plugin", "device plugin")], max_length=13
                    ),
                ),
                ("strategy", models.CharField(max_length=63)),
                ("architecture", models.CharField(blank=True, max_length=40)),
                ("memory_mib", models.PositiveIntegerField(default=0)),
                ("compute_capability", models.CharField(blank=True, max_length=10)),
                ("node_selector", models.JSONField(default=dict)),
                ("tolerations", models.JSONField(default=list)),
                ("partitionable", models.BooleanField(default=False)),
                ("hidden", models.BooleanField(default=False)),
                (
                    "start_deadline_s",
                    models.PositiveIntegerField(
                        blank=True, help_text="empty: the portal's default", null=True
                    ),
                ),
                ("history_id", models.AutoField(primary_key=True, serialize=False)),
                ("history_date", models.DateTimeField(db_index=True)),
                ("history_change_reason", models.CharField(max_length=100, null=True)),
                (
                    "history_type",
                    models.CharField(
                        choices=[("+", "Created"), ("~", "Changed"), ("-", "Deleted")], max_length=1
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="catalog.cluster",
                    ),
                ),
                (
                    "history_user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "historical flavor",
                "verbose_name_plural": "historical flavors",
                "ordering": ("-history_date", "-history_id"),
                "get_latest_by": ("history_date", "history_id"),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        migrations.CreateModel(
            name="Node",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=253)),
                ("ready", models.BooleanField(help_text="ready and schedulable")),
                (
                    "tainted",
                    models.BooleanField(help_text="has a GPU taint, so that pods without a GPU stay away"),
                ),
                ("problem", models.TextField(blank=True)),
                ("capacity", models.JSONField(default=dict)),
                ("present", models.BooleanField(default=True, help_text="seen in the last inventory")),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="nodes",
                        to="catalog.cluster",
                    ),
                ),
                (
                    "flavor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="nodes",
                        to="catalog.flavor",
                    ),
                ),
            ],
            options={
                "ordering": ("name",),
            },
        ),
        migrations.CreateModel(
            name="Device",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=63)),
                ("uuid", models.CharField(blank=True, max_length=64)),
                ("healthy", models.BooleanField()),
                ("attributes", models.JSONField(default=dict)),
                ("present", models.BooleanField(default=True, help_text="seen in the last inventory")),
                (
                    "flavor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="devices",
                        to="catalog.flavor",
                    ),
                ),
                (
                    "node",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="devices", to="catalog.node"
                    ),
                ),
            ],
            options={
                "ordering": ("node__name", "name"),
            },
        ),
        migrations.CreateModel(
            name="Pool",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=127, unique=True)),
                ("resources", models.JSONField()),
                (
                    "flavor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="pools", to="catalog.flavor"
                    ),
                ),
            ],
            options={
                "ordering": ("key",),
            },
        ),
        migrations.CreateModel(
            name="Offering",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=127, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("whole", "whole GPU"),
                            ("mig", "MIG slice"),
                            ("shared", "shared, not isolated"),
                            ("claim", "own DRA claim"),
                        ],
                        max_length=6,
                    ),
                ),
                ("profile", models.CharField(blank=True, max_length=40)),
                (
                    "isolation",
                    models.CharField(
                        choices=[
                            ("full", "a card of its own"),
                            ("hardware", "isolated in hardware"),
                            ("none", "shared, not isolated"),
                        ],
                        max_length=8,
                    ),
                ),
                ("requests", models.JSONField()),
                ("resource", models.CharField(blank=True, max_length=63)),
                ("device_class", models.CharField(blank=True, max_length=253)),
                ("selectors", models.JSONField(blank=True, default=list)),
                ("gpu_share_numerator", models.PositiveIntegerField(default=1)),
                ("gpu_share_denominator", models.PositiveIntegerField(default=1)),
                (
                    "per_node",
                    models.PositiveIntegerField(default=0, help_text="the most slices one node can give"),
                ),
                ("hidden", models.BooleanField(default=False)),
                (
                    "flavor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="offerings",
                        to="catalog.flavor",
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="offerings",
                        to="catalog.pool",
                    ),
                ),
            ],
            options={
                "ordering": ("key",),
            },
        ),
        migrations.CreateModel(
            name="PoolUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("total", models.PositiveIntegerField(default=0)),
                ("foreign", models.PositiveIntegerField(default=0)),
                (
                    "pool",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE, related_name="use", to="catalog.pool"
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="flavor",
            constraint=models.UniqueConstraint(
                fields=("cluster", "product", "path", "strategy"), name="flavor_identity"
            ),
        ),
        migrations.AddConstraint(
            model_name="flavor",
            constraint=models.CheckConstraint(
                condition=models.Q(("path__in", ["dra", "device-plugin"])), name="flavor_path_known"
            ),
        ),
        migrations.AddConstraint(
            model_name="node",
            constraint=models.UniqueConstraint(fields=("cluster", "name"), name="node_once_per_cluster"),
        ),
        migrations.AddConstraint(
            model_name="device",
            constraint=models.UniqueConstraint(fields=("node", "name"), name="device_once_per_node"),
        ),
        migrations.AddConstraint(
            model_name="offering",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["whole", "mig", "shared", "claim"])),
                name="offering_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="offering",
            constraint=models.CheckConstraint(
                condition=models.Q(("isolation__in", ["full", "hardware", "none"])),
                name="offering_isolation_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="offering",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("gpu_share_denominator__gt", 0),
                    ("gpu_share_numerator__lte", models.F("gpu_share_denominator")),
                ),
                name="offering_share_at_most_one",
            ),
        ),
    ]
