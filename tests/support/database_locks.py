"""Whether a session of PostgreSQL waits for another one."""

from django.db import connection


def waits_for_a_lock(kind: str = "advisory") -> bool:
    """Return whether any session waits for a lock of this kind; one that waits for a row has ``transactionid``."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = %s AND NOT granted)", [kind])
        return cursor.fetchone() == (True,)
