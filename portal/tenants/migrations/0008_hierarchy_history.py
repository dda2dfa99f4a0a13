import django.db.models.deletion
from django.db import migrations, models
from django.utils import timezone


def begin_history(apps, schema_editor):
    """Record where every team and department is now."""
    Department, Team = apps.get_model("tenants", "Department"), apps.get_model("tenants", "Team")
    HierarchyChange, now = apps.get_model("tenants", "HierarchyChange"), timezone.now()
    departments = (HierarchyChange(at=now, department=one, parent=one.parent) for one in Department.objects.all())
    teams = (HierarchyChange(at=now, team=one, parent=one.department) for one in Team.objects.all())
    HierarchyChange.objects.bulk_create([*departments, *teams])


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0007_project_cluster'),
    ]

    operations = [
        migrations.CreateModel(
            name='HierarchyChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('department', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.department')),
                ('parent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.department')),
                ('team', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.team')),
            ],
            options={
                'ordering': ('-at', '-id'),
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('department', None), ('parent__isnull', False), ('team__isnull', False)), models.Q(('department__isnull', False), ('team', None)), _connector='OR'), name='hierarchy_change_of_one')],
            },
        ),
        migrations.RunPython(begin_history, migrations.RunPython.noop),
    ]
