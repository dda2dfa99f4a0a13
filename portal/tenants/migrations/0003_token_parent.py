import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0002_flags_follow_the_role")]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="parent",
            field=models.ForeignKey(
                blank=True,
                help_text="The token it was created with, if any.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                to="tenants.apitoken",
            ),
        ),
    ]
