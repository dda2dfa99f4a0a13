from django.db import migrations


def rename_fact(before, after):
    """Return a function that renames a key in the mirrored facts of Workloads."""

    def rename(apps, schema_editor):
        rows = apps.get_model("allocations", "MirrorObject").objects.filter(kind="Workload", facts__has_key=before)
        for row in rows.only("facts").iterator():
            row.facts[after] = row.facts.pop(before)
            row.save(update_fields=["facts"])

    return rename


class Migration(migrations.Migration):
    dependencies = [("allocations", "0010_field_names")]

    operations = [
        migrations.RunPython(rename_fact("asks", "gpu_requests"), rename_fact("gpu_requests", "asks")),
    ]
