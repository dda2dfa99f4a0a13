import django.db.models.deletion
from django.db import migrations, models

# A query takes a month once all its hours are rolled up, so those that are so already get their totals here.
WHOLE = """
    WITH whole AS (
        SELECT cluster, month AT TIME ZONE 'UTC' AS t0, (month + interval '1 month') AT TIME ZONE 'UTC' AS t1
        FROM metering_rolleduphour CROSS JOIN LATERAL date_trunc('month', hour AT TIME ZONE 'UTC') AS month
        GROUP BY cluster, month HAVING count(*) * interval '1 hour' = month + interval '1 month' - month
    )
"""
TOTALS = f"""
    INSERT INTO metering_monthtotal
        (cluster, start, flavor, category, offering, department, team, project, price, denominator, amount)
    {WHOLE}
    SELECT cluster, t0, flavor, category, offering, department, team, project, price, denominator, sum(amount)
    FROM metering_daytotal JOIN whole USING (cluster) WHERE start >= t0 AND start < t1
    GROUP BY cluster, t0, flavor, category, offering, department, team, project, price, denominator
"""
OWNED_IDLE = f"""
    INSERT INTO metering_ownedidlemonth (cluster, start, flavor, department, team, price, amount)
    {WHOLE}
    SELECT cluster, t0, flavor, department, team, price, sum(amount)
    FROM metering_ownedidleday JOIN whole USING (cluster) WHERE start >= t0 AND start < t1
    GROUP BY cluster, t0, flavor, department, team, price
"""


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0001_initial"),
        ("metering", "0016_hold_use"),
    ]

    operations = [
        migrations.CreateModel(
            name="MonthTotal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("start", models.DateTimeField()),
                ("flavor", models.CharField(max_length=63)),
                (
                    "category",
                    models.CharField(
                        choices=[
                            ("held", "held"),
                            ("unmanaged", "unmanaged"),
                            ("unavailable", "unavailable"),
                            ("stranded", "stranded"),
                            ("idle", "idle"),
                            ("variance", "variance"),
                        ],
                        max_length=11,
                    ),
                ),
                ("offering", models.CharField(max_length=127)),
                ("department", models.CharField(max_length=63)),
                ("team", models.CharField(max_length=63)),
                ("project", models.CharField(max_length=63)),
                ("price", models.DecimalField(decimal_places=10, max_digits=20, null=True)),
                ("denominator", models.DecimalField(decimal_places=0, max_digits=40)),
                ("amount", models.DecimalField(decimal_places=0, max_digits=60)),
                (
                    "cluster",
                    models.ForeignKey(
                        db_column="cluster",
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="clusters.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ("-start", "cluster", "flavor", "category", "id"),
                "abstract": False,
                "indexes": [models.Index(fields=["start", "cluster"], name="month_total")],
            },
        ),
        migrations.CreateModel(
            name="OwnedIdleMonth",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("start", models.DateTimeField()),
                ("flavor", models.CharField(max_length=63)),
                ("department", models.CharField(max_length=63)),
                ("team", models.CharField(max_length=63)),
                ("price", models.DecimalField(decimal_places=10, max_digits=20, null=True)),
                ("amount", models.DecimalField(decimal_places=0, max_digits=60)),
                (
                    "cluster",
                    models.ForeignKey(
                        db_column="cluster",
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="clusters.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ("-start", "cluster", "flavor", "department", "team", "id"),
                "abstract": False,
                "indexes": [models.Index(fields=["start", "cluster"], name="owned_idle_month")],
            },
        ),
        migrations.RunSQL([TOTALS, OWNED_IDLE], migrations.RunSQL.noop),
    ]
