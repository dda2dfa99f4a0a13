from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("metering", "0012_usage_of_a_node"),
    ]

    operations = [
        migrations.AlterField(
            model_name="correction",
            name="cause",
            field=models.CharField(
                choices=[("finished", "the pod says when it finished"), ("overtime", "the rest was held past its end")],
                max_length=16,
            ),
        ),
    ]
