"""Keeps the wake-ups that a worker has taken in its memory alone.

kombu copies each message to Redis when it is taken, and deletes it there when it is done, so that another worker gets
it `VISIBILITY_TIMEOUT_S` after this one was killed. By then a wake-up has expired, and the sweep has found its row.
Messages without a row are copied as before.
"""

from typing import Any

from kombu.transport import redis, virtual

from portal.workqueue import wakeups


class WakeupQoS(redis.QoS):
    """The messages that a channel has taken and not acknowledged, at most as many as its prefetch limit.

    A wake-up goes back to its queue as any message does: if the process that has it is killed, or the worker stops.
    """

    channel: Any  # typed without what channels of Redis have
    _delivered: Any

    def append(self, message: Any, delivery_tag: str) -> None:
        if _is_wakeup(message):
            virtual.QoS.append(self, message, delivery_tag)
        else:
            super().append(message, delivery_tag)

    def ack(self, delivery_tag: str) -> None:
        if self._wakeup(delivery_tag):
            virtual.QoS.ack(self, delivery_tag)
        else:
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        if not requeue and self._wakeup(delivery_tag):
            virtual.QoS.ack(self, delivery_tag)
        else:
            super().reject(delivery_tag, requeue=requeue)

    def restore_by_tag(self, tag: str, client: Any = None, leftmost: bool = False) -> None:
        message = self._wakeup(tag)
        if message is None:
            super().restore_by_tag(tag, client, leftmost)
            return
        info = message.delivery_info
        with self.channel.conn_or_acquire(client) as connected:
            self.channel._do_restore_message(message._raw, info["exchange"], info["routing_key"], connected, leftmost)

    def _wakeup(self, delivery_tag: str) -> Any | None:
        """Return the wake-up that was taken with this tag; None if there is none."""
        message = self._delivered.get(delivery_tag)
        return message if message is not None and _is_wakeup(message) else None


def _is_wakeup(message: Any) -> bool:
    return bool(message.headers.get("task") == wakeups.TASK)
