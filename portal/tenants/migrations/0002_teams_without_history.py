from django.db import migrations

# As in `costs` 0002: the owner of a table may delete what it likes, and the application's role owns none.
FUNCTION = """
    CREATE FUNCTION tenants_keep_what_has_begun() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NOT pg_has_role((SELECT relowner FROM pg_class WHERE oid = TG_RELID), 'USAGE') AND (
            OLD.team_id IS NULL
            OR EXISTS (SELECT FROM tenants_project WHERE team_id = OLD.team_id)
            OR EXISTS (SELECT FROM limits_quotachange WHERE team_id = OLD.team_id)
        ) THEN
            RAISE insufficient_privilege USING MESSAGE = 'the history of a team that had projects or quota cannot be deleted';
        END IF;
        RETURN OLD;
    END $$
"""
TABLE = "tenants_hierarchychange"


class Migration(migrations.Migration):
    """Lets the history of a team be deleted with it, while it has had neither a project nor a quota."""

    dependencies = [("tenants", "0001_initial")]

    operations = [
        migrations.RunSQL(FUNCTION, "DROP FUNCTION tenants_keep_what_has_begun"),
        migrations.RunSQL(
            f"CREATE TRIGGER keep_what_has_begun BEFORE DELETE ON {TABLE} FOR EACH ROW"
            " EXECUTE FUNCTION tenants_keep_what_has_begun()",
            f"DROP TRIGGER keep_what_has_begun ON {TABLE}",
        ),
    ]
