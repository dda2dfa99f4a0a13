from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("api", "0002_headers_of_replies"),
    ]

    operations = [
        migrations.AddField(
            model_name="idempotentreply",
            name="asked",
            field=models.JSONField(
                default=list, help_text="Permissions that its effect required: action, team, owner."
            ),
        ),
    ]
