from django.db import migrations

# The owner of a table may delete what it likes, as everywhere; the application's role owns none.
FUNCTION = """
    CREATE FUNCTION costs_keep_what_has_begun() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') THEN
            RAISE insufficient_privilege USING MESSAGE = format('a row of %s that has begun cannot be deleted', TG_RELNAME);
        END IF;
        RETURN OLD;
    END $$
"""
BEGINS = {
    **dict.fromkeys(("costs_price", "costs_nodecost", "costs_nodeterm"), "OLD.valid_from <= now()"),
    "costs_sharedcost": "OLD.month <= (now() AT TIME ZONE 'UTC')::date",
}


class Migration(migrations.Migration):
    dependencies = [("costs", "0001_initial")]

    operations = [
        migrations.RunSQL(FUNCTION, "DROP FUNCTION costs_keep_what_has_begun"),
        *(
            migrations.RunSQL(
                f"CREATE TRIGGER keep_what_has_begun BEFORE DELETE ON {table} FOR EACH ROW WHEN ({has_begun})"
                " EXECUTE FUNCTION costs_keep_what_has_begun()",
                f"DROP TRIGGER keep_what_has_begun ON {table}",
            )
            for table, has_begun in BEGINS.items()
        ),
    ]
