from django.db import migrations, models


class Migration(migrations.Migration):
    """Keeps the columns that a person chooses for a list."""

    dependencies = [("tenants", "0002_teams_without_history")]

    operations = [
        migrations.AddField(
            "user",
            "columns",
            models.JSONField(
                blank=True, db_default={}, default=dict, editable=False, help_text="chosen columns, by list"
            ),
        ),
    ]
