import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's, which sends ``SELECT 1`` before the first statement of each request (``CONN_HEALTH_CHECKS``)."""

    def is_usable(self) -> bool:
        """Return whether the connection is open, mostly without a round trip.

        PostgreSQL sends nothing on an idle connection. Only where something came, such as the end of the connection,
        it is asked.
        """
        if self.connection is None or self.connection.closed:
            return False
        poll = select.poll()
        poll.register(self.connection.fileno(), select.POLLIN | select.POLLPRI)
        return super().is_usable() if poll.poll(0) else True
