from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("catalog", "0005_cluster_is_a_row_of_its_own")]

    operations = [
        migrations.RenameField("offering", "card_part_numerator", "memory_part_numerator"),
        migrations.RenameField("offering", "card_part_denominator", "memory_part_denominator"),
        migrations.AlterField(
            "offering",
            "isolation",
            models.CharField(
                choices=[("full", "dedicated GPU"), ("hardware", "isolated in hardware"), ("none", "shared, not isolated")],
                max_length=8,
            ),
        ),
        migrations.AlterField(
            "offering",
            "kind",
            models.CharField(
                choices=[
                    ("whole", "whole GPU"),
                    ("mig", "MIG slice"),
                    ("shared", "shared, not isolated"),
                    ("claim", "custom DRA claim"),
                ],
                max_length=6,
            ),
        ),
    ]
