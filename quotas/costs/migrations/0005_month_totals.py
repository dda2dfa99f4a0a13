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
CAPACITY_COST = f"""
    INSERT INTO costs_capacitycostmonth (cluster, start, flavor, term, part, price, denominator, amount)
    {WHOLE}
    SELECT cluster, t0, flavor, term, part, price, denominator, sum(amount)
    FROM costs_capacitycostday JOIN whole USING (cluster) WHERE start >= t0 AND start < t1
    GROUP BY cluster, t0, flavor, term, part, price, denominator
"""


class Migration(migrations.Migration):
    dependencies = [
        ("clusters", "0001_initial"),
        ("costs", "0004_saved_view"),
        ("metering", "0017_month_totals"),
    ]

    operations = [
        migrations.CreateModel(
            name="CapacityCostMonth",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("start", models.DateTimeField()),
                ("flavor", models.CharField(max_length=63)),
                (
                    "term",
                    models.CharField(
                        choices=[("on-demand", "on-demand"), ("reserved", "reserved"), ("spot", "spot")], max_length=9
                    ),
                ),
                ("part", models.CharField(help_text="gpu, rate where no cost is stated, or rest", max_length=4)),
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
                "ordering": ("-start", "cluster", "flavor", "term", "part", "id"),
                "abstract": False,
                "indexes": [models.Index(fields=["start", "cluster"], name="capacity_cost_month")],
            },
        ),
        migrations.RunSQL(CAPACITY_COST, migrations.RunSQL.noop),
    ]
