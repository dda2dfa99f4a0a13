import django.db.models.deletion
from django.db import migrations, models
from django.utils import timezone


def begin_history(apps, schema_editor):
    """Record the quotas and weights of now."""
    Limit, QueuePolicy = apps.get_model("limits", "Limit"), apps.get_model("limits", "QueuePolicy")
    QuotaChange, WeightChange = apps.get_model("limits", "QuotaChange"), apps.get_model("limits", "WeightChange")
    now = timezone.now()
    QuotaChange.objects.bulk_create(
        QuotaChange(
            at=now,
            department_id=one.department_id,
            team_id=one.team_id,
            pool_id=one.pool_id,
            nominal=one.nominal,
            borrowing=one.borrowing,
            lending=one.lending,
        )
        for one in Limit.objects.filter(pool__isnull=False, project=None, user=None)
    )
    WeightChange.objects.bulk_create(
        WeightChange(at=now, department_id=one.department_id, team_id=one.team_id, weight=one.weight)
        for one in QueuePolicy.objects.exclude(weight=1)
    )


class Migration(migrations.Migration):

    dependencies = [
        ('catalog', '0008_node_use'),
        ('limits', '0003_sequence_names'),
        ('tenants', '0008_hierarchy_history'),
    ]

    operations = [
        migrations.CreateModel(
            name='QuotaChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('nominal', models.PositiveIntegerField()),
                ('borrowing', models.PositiveIntegerField(null=True)),
                ('lending', models.PositiveIntegerField(null=True)),
                ('department', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.department')),
                ('pool', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='catalog.pool')),
                ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.team')),
            ],
            options={
                'ordering': ('-at', '-id'),
                'indexes': [models.Index(fields=['at'], name='quota_change_at')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('department__isnull', False), ('team', None)), models.Q(('department', None), ('team__isnull', False)), _connector='OR'), name='quota_change_has_one_holder')],
            },
        ),
        migrations.CreateModel(
            name='WeightChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('weight', models.DecimalField(decimal_places=3, max_digits=9)),
                ('department', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.department')),
                ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.team')),
            ],
            options={
                'ordering': ('-at', '-id'),
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('department__isnull', False), ('team', None)), models.Q(('department', None), ('team__isnull', False)), _connector='OR'), name='weight_change_has_one_holder')],
            },
        ),
        migrations.RunPython(begin_history, migrations.RunPython.noop),
    ]
