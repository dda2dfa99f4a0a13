import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('clusters', '0001_initial'),
        ('metering', '0014_labels'),
    ]

    operations = [
        migrations.CreateModel(
            name='OwnedIdleDay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('start', models.DateTimeField()),
                ('flavor', models.CharField(max_length=63)),
                ('department', models.CharField(max_length=63)),
                ('team', models.CharField(max_length=63)),
                ('price', models.DecimalField(decimal_places=10, max_digits=20, null=True)),
                ('amount', models.DecimalField(decimal_places=0, max_digits=60)),
                ('cluster', models.ForeignKey(db_column='cluster', db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='clusters.cluster')),
            ],
            options={
                'ordering': ('-start', 'cluster', 'flavor', 'department', 'team', 'id'),
                'abstract': False,
                'indexes': [models.Index(fields=['start', 'cluster'], name='owned_idle_day')],
            },
        ),
        migrations.CreateModel(
            name='OwnedIdleHour',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('start', models.DateTimeField()),
                ('flavor', models.CharField(max_length=63)),
                ('department', models.CharField(max_length=63)),
                ('team', models.CharField(max_length=63)),
                ('price', models.DecimalField(decimal_places=10, max_digits=20, null=True)),
                ('amount', models.DecimalField(decimal_places=0, max_digits=60)),
                ('cluster', models.ForeignKey(db_column='cluster', db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='clusters.cluster')),
            ],
            options={
                'ordering': ('-start', 'cluster', 'flavor', 'department', 'team', 'id'),
                'abstract': False,
                'indexes': [models.Index(fields=['start', 'cluster'], name='owned_idle_hour')],
            },
        ),
    ]
