"""The number of concurrent password hashes is bounded, whichever way passwords arrive."""

import time
from threading import Barrier, Thread

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher, check_password, make_password

from portal import settings as product
from portal.core.errors import Busy
from portal.core.slots import Slots
from portal.tenants import password_hashing
from tests.support.people import person


@pytest.fixture(autouse=True)
def products_hashers(settings):
    settings.PASSWORD_HASHERS = product.PASSWORD_HASHERS


@pytest.fixture
def slots(monkeypatch):
    monkeypatch.setattr(password_hashing, "SLOTS", Slots(1, 1, 0.05, password_hashing.busy))
    return password_hashing.SLOTS


def test_who_finds_no_slot_is_told_to_try_again(slots):
    encoded = make_password("a long enough secret")
    with slots.one():
        for hash_one in (lambda: make_password("another"), lambda: check_password("another", encoded)):
            with pytest.raises(Busy) as refused:
                hash_one()
            assert refused.value.retry_after_s >= 1
    assert check_password("a long enough secret", encoded)


def test_who_waits_gets_the_slot_when_it_is_free():
    slots, done = Slots(1, 1, 30, password_hashing.busy), []

    def wait():
        with slots.one():
            done.append(True)

    with slots.one():
        waiting = Thread(target=wait)
        waiting.start()
    waiting.join()
    assert done


def test_as_many_wait_as_are_hashed_and_the_next_is_refused_at_once():
    slots = Slots(1, 1, 30, password_hashing.busy)

    def wait():
        with slots.one():
            pass

    waiting = Thread(target=wait)
    with slots.one():
        waiting.start()
        deadline = time.monotonic() + 10
        while slots._inside._value and time.monotonic() < deadline:
            time.sleep(0.01)
        began = time.monotonic()
        with pytest.raises(Busy), slots.one():
            pass
        assert time.monotonic() - began < 10
    waiting.join()


def test_of_16_at_once_no_more_are_hashed_together_than_there_are_slots(monkeypatch):
    running, seen, refused = [], [], []
    together, encode = Barrier(16), Argon2PasswordHasher.encode

    def watched(hasher, password, salt):
        running.append(1)
        seen.append(len(running))
        try:
            return encode(hasher, password, salt)
        finally:
            running.pop()

    def hash_one():
        together.wait()
        try:
            make_password("a long enough secret")
        except Busy:
            refused.append(1)

    monkeypatch.setattr(password_hashing, "SLOTS", Slots(2, 2, password_hashing.WAIT_S, password_hashing.busy))
    monkeypatch.setattr(Argon2PasswordHasher, "encode", watched)
    threads = [Thread(target=hash_one) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(seen) <= 2
    assert len(seen) + len(refused) == 16


@pytest.mark.django_db
def test_a_password_that_djangos_own_hasher_hashed_is_right_and_is_hashed_anew_at_sign_in(client):
    user = person()
    user.password = Argon2PasswordHasher().encode("a long enough secret", "salt-of-the-user")
    user.save()
    answer = client.post(
        "/login", {"username": user.username, "password": "a long enough secret"}, REMOTE_ADDR="203.0.113.7"
    )
    assert answer.status_code == 302
    user.refresh_from_db()
    assert user.password.startswith("argon2$argon2id$v=19$m=47104,t=1,p=1$")
    assert check_password("a long enough secret", user.password)


@pytest.mark.django_db
def test_a_page_of_the_admin_that_finds_no_slot_says_so(slots, client):
    operator, user = person(platform_role="operator"), person()
    client.force_login(operator)
    words = {"password1": "a long enough secret", "password2": "a long enough secret", "usable_password": "true"}
    with slots.one():
        answer = client.post(f"/admin/tenants/user/{user.pk}/password/", words)
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert b"Try again" in answer.content
    user.refresh_from_db()
    assert not user.has_usable_password()
