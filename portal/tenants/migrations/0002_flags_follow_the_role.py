from django.db import migrations


class Migration(migrations.Migration):
    """Django's flags are derived from the platform role: who was demoted before loses the admin with the columns."""

    dependencies = [("tenants", "0001_initial")]

    operations = [
        migrations.AlterModelManagers(name="user", managers=[]),
        migrations.RemoveField(model_name="user", name="groups"),
        migrations.RemoveField(model_name="user", name="is_staff"),
        migrations.RemoveField(model_name="user", name="is_superuser"),
        migrations.RemoveField(model_name="user", name="user_permissions"),
    ]
