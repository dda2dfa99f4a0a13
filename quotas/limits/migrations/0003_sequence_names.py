from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("limits", "0002_drop_histories")]

    operations = [
        migrations.RenameField("LimitUse", "taken", "granted_seq"),
        migrations.RenameField("LimitUse", "given", "released_seq"),
    ]
