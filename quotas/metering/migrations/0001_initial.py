from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="UsageInterval",
            fields=[
                ("key", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                ("allocation", models.UUIDField()),
                ("slot", models.CharField(max_length=400)),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField(blank=True, null=True)),
                ("estimated_start", models.BooleanField(default=False)),
                ("estimated_end", models.BooleanField(default=False)),
                ("gpu_share_numerator", models.PositiveIntegerField()),
                ("gpu_share_denominator", models.PositiveIntegerField()),
                ("count", models.PositiveIntegerField()),
                ("offering", models.CharField(max_length=127)),
                ("flavor", models.CharField(max_length=63)),
                ("kind", models.CharField(max_length=6)),
                ("cluster", models.CharField(max_length=50)),
                ("node", models.CharField(blank=True, max_length=253)),
                ("device_uuid", models.CharField(blank=True, max_length=64)),
                ("department", models.CharField(max_length=63)),
                ("team", models.CharField(max_length=63)),
                ("project", models.CharField(max_length=63)),
                ("member", models.CharField(max_length=150)),
                ("namespace", models.CharField(max_length=63)),
                ("source_start", models.JSONField()),
                ("source_end", models.JSONField(blank=True, null=True)),
                ("recorded_at", models.DateTimeField()),
            ],
            options={
                "ordering": ("-start", "key"),
                "indexes": [
                    models.Index(fields=["allocation"], name="usage_allocation"),
                    models.Index(fields=["end", "start"], name="usage_window"),
                    models.Index(fields=["team", "start"], name="usage_team_window"),
                    models.Index(fields=["slot", "-end"], name="usage_slot_end"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("end__isnull", True), ("end__gte", models.F("start")), _connector="OR"
                        ),
                        name="usage_ends_after_start",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("end__isnull", True), ("estimated_end", False), ("source_end__isnull", True)
                            ),
                            models.Q(("end__isnull", False), ("source_end__isnull", False)),
                            _connector="OR",
                        ),
                        name="usage_end_has_evidence",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("count__gt", 0), ("gpu_share_denominator__gt", 0), ("gpu_share_numerator__gt", 0)
                        ),
                        name="usage_quantity_positive",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("end__isnull", True)),
                        fields=("slot",),
                        name="usage_one_open_per_slot",
                    ),
                ],
            },
        ),
    ]
