"""The parts of a worker's consumer."""

from types import SimpleNamespace
from typing import Any

from celery import current_app

from portal.celery import SwiftConsumer


def test_a_worker_sends_no_messages_about_itself() -> None:
    worker, events = SimpleNamespace(use_eventloop=True), current_app.conf.worker_send_task_events
    consumer: Any = SwiftConsumer(lambda request: None, app=current_app, controller=worker, task_events=events)
    parts = {type(step).__name__ for step in consumer.steps}
    assert "Tasks" in parts
    assert parts.isdisjoint({"Events", "Gossip", "Heart", "Mingle"})
