from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('api', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='idempotentreply',
            name='headers',
            field=models.JSONField(default=dict, help_text='Those that are sent again, such as Location.'),
        ),
    ]
