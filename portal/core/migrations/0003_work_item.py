from django.db import migrations, models


class Migration(migrations.Migration):
    """Name the model WorkItem; its table stays."""

    dependencies = [('core', '0002_targets_name_their_cluster')]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameModel('Due', 'WorkItem'),
                migrations.AlterModelTable('WorkItem', 'core_due'),
                migrations.AlterModelOptions('WorkItem', {'verbose_name_plural': 'work items'}),
                migrations.AlterField(
                    'WorkItem', 'leased_until',
                    models.DateTimeField(blank=True, help_text='Until when a worker has it.', null=True),
                ),
                migrations.AlterField(
                    'WorkItem', 'marks',
                    models.PositiveBigIntegerField(default=1, help_text='How often it was enqueued.'),
                ),
            ],
        ),
    ]
