import django.db.models.deletion
import simple_history.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("catalog", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="HistoricalPrice",
            fields=[
                (
                    "id",
                    models.BigIntegerField(auto_created=True, blank=True, db_index=True, verbose_name="ID"),
                ),
                ("valid_from", models.DateTimeField()),
                ("per_gpu_hour", models.DecimalField(decimal_places=10, max_digits=20)),
                ("currency", models.CharField(max_length=3)),
                ("source", models.CharField(help_text="where the figure comes from", max_length=200)),
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
                    "flavor",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="catalog.flavor",
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
                "verbose_name": "historical price",
                "verbose_name_plural": "historical prices",
                "ordering": ("-history_date", "-history_id"),
                "get_latest_by": ("history_date", "history_id"),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        migrations.CreateModel(
            name="Price",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("valid_from", models.DateTimeField()),
                ("per_gpu_hour", models.DecimalField(decimal_places=10, max_digits=20)),
                ("currency", models.CharField(max_length=3)),
                ("source", models.CharField(help_text="where the figure comes from", max_length=200)),
                (
                    "flavor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="prices",
                        to="catalog.flavor",
                    ),
                ),
            ],
            options={
                "ordering": ("flavor__name", "-valid_from"),
                "constraints": [
                    models.UniqueConstraint(fields=("flavor", "valid_from"), name="price_once_per_moment"),
                    models.CheckConstraint(
                        condition=models.Q(("per_gpu_hour__gte", 0)), name="price_not_negative"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("currency__regex", "^[A-Z]{3}$")), name="price_currency_iso4217"
                    ),
                ],
            },
        ),
    ]
