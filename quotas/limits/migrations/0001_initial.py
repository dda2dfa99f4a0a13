import django.core.validators
import django.db.models.deletion
import simple_history.models
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("catalog", "0001_initial"),
        ("tenants", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="HistoricalLimit",
            fields=[
                ("id", models.BigIntegerField(auto_created=True, blank=True, db_index=True, verbose_name="ID")),
                (
                    "nominal",
                    models.PositiveIntegerField(validators=[django.core.validators.MaxValueValidator(1000000)]),
                ),
                (
                    "borrowing",
                    models.PositiveIntegerField(
                        blank=True, default=0, null=True, validators=[django.core.validators.MaxValueValidator(1000000)]
                    ),
                ),
                (
                    "lending",
                    models.PositiveIntegerField(
                        blank=True, null=True, validators=[django.core.validators.MaxValueValidator(1000000)]
                    ),
                ),
                ("history_id", models.AutoField(primary_key=True, serialize=False)),
                ("history_date", models.DateTimeField(db_index=True)),
                ("history_change_reason", models.CharField(max_length=100, null=True)),
                (
                    "history_type",
                    models.CharField(choices=[("+", "Created"), ("~", "Changed"), ("-", "Deleted")], max_length=1),
                ),
                (
                    "department",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenants.department",
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
                (
                    "offering",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="catalog.offering",
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="catalog.pool",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenants.project",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenants.team",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "historical limit",
                "verbose_name_plural": "historical limits",
                "ordering": ("-history_date", "-history_id"),
                "get_latest_by": ("history_date", "history_id"),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        migrations.CreateModel(
            name="HistoricalQueuePolicy",
            fields=[
                ("id", models.BigIntegerField(auto_created=True, blank=True, db_index=True, verbose_name="ID")),
                (
                    "weight",
                    models.DecimalField(
                        decimal_places=3,
                        default=1,
                        help_text="fair-share weight: twice as much may be borrowed with twice the weight",
                        max_digits=9,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "reclaim",
                    models.CharField(
                        choices=[("Never", "Never"), ("LowerPriority", "Lower Priority"), ("Any", "Any")],
                        default="Any",
                        max_length=13,
                    ),
                ),
                (
                    "within",
                    models.CharField(
                        choices=[
                            ("Never", "Never"),
                            ("LowerPriority", "Lower Priority"),
                            ("LowerOrNewerEqualPriority", "Lower Or Newer"),
                        ],
                        default="Never",
                        max_length=25,
                    ),
                ),
                ("history_id", models.AutoField(primary_key=True, serialize=False)),
                ("history_date", models.DateTimeField(db_index=True)),
                ("history_change_reason", models.CharField(max_length=100, null=True)),
                (
                    "history_type",
                    models.CharField(choices=[("+", "Created"), ("~", "Changed"), ("-", "Deleted")], max_length=1),
                ),
                (
                    "department",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenants.department",
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
                (
                    "team",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenants.team",
                    ),
                ),
            ],
            options={
                "verbose_name": "historical queue policy",
                "verbose_name_plural": "historical queue policies",
                "ordering": ("-history_date", "-history_id"),
                "get_latest_by": ("history_date", "history_id"),
            },
            bases=(simple_history.models.HistoricalChanges, models.Model),
        ),
        migrations.CreateModel(
            name="Limit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "nominal",
                    models.PositiveIntegerField(validators=[django.core.validators.MaxValueValidator(1000000)]),
                ),
                (
                    "borrowing",
                    models.PositiveIntegerField(
                        blank=True, default=0, null=True, validators=[django.core.validators.MaxValueValidator(1000000)]
                    ),
                ),
                (
                    "lending",
                    models.PositiveIntegerField(
                        blank=True, null=True, validators=[django.core.validators.MaxValueValidator(1000000)]
                    ),
                ),
                ("used", models.BigIntegerField(default=0, editable=False)),
                ("allowance", models.BigIntegerField(default=0, editable=False)),
                ("changes", models.BigIntegerField(default=0, editable=False, help_text="how often `used` changed")),
                (
                    "department",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="limits",
                        to="tenants.department",
                    ),
                ),
                (
                    "flavor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="limits",
                        to="catalog.flavor",
                    ),
                ),
                (
                    "offering",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="limits",
                        to="catalog.offering",
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="limits",
                        to="catalog.pool",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="limits",
                        to="tenants.project",
                    ),
                ),
                (
                    "team",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="limits",
                        to="tenants.team",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="limits",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ("department__slug", "team__slug", "project__slug", "user__username", "pool__key", "id"),
            },
        ),
        migrations.CreateModel(
            name="LimitUse",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("allocation", models.UUIDField()),
                ("parts", models.BigIntegerField()),
                ("taken", models.BigIntegerField()),
                ("given", models.BigIntegerField(blank=True, null=True)),
                (
                    "limit",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="uses", to="limits.limit"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="QueuePolicy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "weight",
                    models.DecimalField(
                        decimal_places=3,
                        default=1,
                        help_text="fair-share weight: twice as much may be borrowed with twice the weight",
                        max_digits=9,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "reclaim",
                    models.CharField(
                        choices=[("Never", "Never"), ("LowerPriority", "Lower Priority"), ("Any", "Any")],
                        default="Any",
                        max_length=13,
                    ),
                ),
                (
                    "within",
                    models.CharField(
                        choices=[
                            ("Never", "Never"),
                            ("LowerPriority", "Lower Priority"),
                            ("LowerOrNewerEqualPriority", "Lower Or Newer"),
                        ],
                        default="Never",
                        max_length=25,
                    ),
                ),
                (
                    "department",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queue_policy",
                        to="tenants.department",
                    ),
                ),
                (
                    "team",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="queue_policy",
                        to="tenants.team",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "queue policies",
            },
        ),
        migrations.AddConstraint(
            model_name="limit",
            constraint=models.UniqueConstraint(
                fields=("department", "team", "project", "user", "pool", "offering", "flavor"),
                name="limit_once_per_holder_and_scope",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="limit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("department__isnull", False), ("project", None), ("team", None), ("user", None)),
                    models.Q(("department", None), ("project", None), ("team__isnull", False)),
                    models.Q(("department", None), ("project__isnull", False), ("team", None), ("user", None)),
                    _connector="OR",
                ),
                name="limit_has_one_holder",
            ),
        ),
        migrations.AddConstraint(
            model_name="limit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("flavor", None), ("offering", None)),
                    models.Q(("flavor", None), ("pool", None)),
                    models.Q(("offering", None), ("pool", None)),
                    _connector="OR",
                ),
                name="limit_has_one_scope",
            ),
        ),
        migrations.AddConstraint(
            model_name="limit",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("pool__isnull", False),
                        models.Q(
                            models.Q(("team__isnull", False), ("user", None)),
                            ("department__isnull", False),
                            _connector="OR",
                        ),
                    ),
                    models.Q(("borrowing", 0), ("lending", None)),
                    _connector="OR",
                ),
                name="limit_is_lent_by_kueue_only",
            ),
        ),
        migrations.AddConstraint(
            model_name="limit",
            constraint=models.CheckConstraint(
                condition=models.Q(("used__gte", 0), ("used__lte", models.F("allowance"))),
                name="limit_never_used_beyond_its_allowance",
            ),
        ),
        migrations.AddIndex(
            model_name="limituse",
            index=models.Index(fields=["allocation"], name="limit_use_allocation"),
        ),
        migrations.AddConstraint(
            model_name="limituse",
            constraint=models.UniqueConstraint(fields=("limit", "allocation"), name="limit_use_once_per_allocation"),
        ),
        migrations.AddConstraint(
            model_name="limituse",
            constraint=models.CheckConstraint(condition=models.Q(("parts__gt", 0)), name="limit_use_positive"),
        ),
        migrations.AddConstraint(
            model_name="queuepolicy",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("department__isnull", False), ("team", None)),
                    models.Q(("department", None), ("team__isnull", False)),
                    _connector="OR",
                ),
                name="queue_policy_has_one_holder",
            ),
        ),
        migrations.AddConstraint(
            model_name="queuepolicy",
            constraint=models.CheckConstraint(
                condition=models.Q(("weight__gte", 0)), name="queue_policy_weight_not_negative"
            ),
        ),
    ]
