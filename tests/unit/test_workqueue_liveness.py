"""When a worker is replaced because it takes no messages."""

from portal.workqueue.liveness import Patience


def test_a_worker_is_stuck_once_messages_waited_for_the_limit_and_none_was_taken():
    patience = Patience(30)
    assert not patience.is_over(100, waiting=3, taken=False)
    assert not patience.is_over(129.9, waiting=3, taken=False)
    assert patience.is_over(130, waiting=3, taken=False)


def test_a_message_that_is_taken_begins_the_time_anew():
    patience = Patience(30)
    patience.is_over(100, waiting=3, taken=False)
    assert not patience.is_over(130, waiting=3, taken=True)
    assert not patience.is_over(135, waiting=3, taken=False)
    assert not patience.is_over(164.9, waiting=3, taken=False)


def test_a_worker_without_messages_is_never_stuck():
    patience = Patience(30)
    patience.is_over(100, waiting=3, taken=False)
    assert not patience.is_over(120, waiting=0, taken=False)
    assert not patience.is_over(1_000, waiting=1, taken=False)
