"""Sign-in by password under attack: limits per address, few concurrent passwords, and no attempt uncounted."""

from itertools import count

import pytest
import redis
from django.test import Client

from portal.core.models import AuditEntry
from portal.core.slots import Slots
from portal.http import counters
from portal.tenants import password_hashing, services
from portal.tenants.actors import SYSTEM
from tests.services import free_port
from tests.support.people import client as api_client
from tests.support.people import person

pytestmark = pytest.mark.django_db
SECRET = "a long enough secret"
addresses = (f"192.0.2.{number}" for number in count(1))


@pytest.fixture(autouse=True)
def one_minute(monkeypatch):
    monkeypatch.setattr(counters, "_paused_until", 0.0)
    monkeypatch.setattr("portal.http.counters.time.time", lambda: 1_000_000_007.0)  # no minute ends meanwhile


@pytest.fixture
def address():
    return next(addresses)


@pytest.fixture
def user(team):
    user = person(team)
    services.set_password(SYSTEM, user, SECRET)
    return user


@pytest.fixture
def redis_is_away(monkeypatch):
    gone = redis.Redis.from_url(f"redis://127.0.0.1:{free_port()}/0")
    monkeypatch.setattr(counters, "client", lambda: gone)


def sign_in(name, password, address, **headers):
    return Client(REMOTE_ADDR=address).post("/login", {"username": name, "password": password}, headers=headers)


def test_many_names_from_one_address_are_refused_before_a_password_is_hashed(settings, monkeypatch, address, user):
    settings.LOGIN_FAILURES_PER_MINUTE = 3
    for number in range(3):
        assert sign_in(f"nobody-{number}", "wrong", address).status_code == 200
    monkeypatch.setattr(password_hashing, "SLOTS", Slots(1, 1, 0, password_hashing.busy))
    with password_hashing.SLOTS.one():  # whoever wants to hash now is answered 503
        for name in ("nobody-3", user.username):
            answer = sign_in(name, SECRET, address)
            assert answer.status_code == 429
            assert 0 < int(answer["Retry-After"]) <= 60
            assert f"Try again in {answer['Retry-After']} seconds." in answer.content.decode()
    assert AuditEntry.objects.filter(action="user.sign_in_refused").count() == 3


def test_the_neighbours_of_an_address_sign_in(settings, address, user):
    settings.LOGIN_FAILURES_PER_MINUTE = 1
    sign_in("nobody", "wrong", address)
    assert sign_in(user.username, SECRET, address).status_code == 429
    assert sign_in(user.username, SECRET, next(addresses)).status_code == 302


def test_right_passwords_are_not_counted_so_an_office_behind_one_address_signs_in(settings, address, user):
    settings.LOGIN_FAILURES_PER_MINUTE = 1
    assert [sign_in(user.username, SECRET, address).status_code for _ in range(4)] == [302] * 4


def test_a_forged_header_is_no_other_address(settings, address, user):
    settings.LOGIN_FAILURES_PER_MINUTE = 1
    sign_in("nobody", "wrong", address)
    assert sign_in(user.username, SECRET, address, **{"X-Forwarded-For": next(addresses)}).status_code == 429


def test_behind_a_trusted_proxy_each_client_is_counted_by_itself(settings, address, user):
    settings.LOGIN_FAILURES_PER_MINUTE, settings.TRUSTED_PROXIES = 1, 1
    one, other = next(addresses), next(addresses)
    sign_in("nobody", "wrong", address, **{"X-Forwarded-For": one})
    assert sign_in(user.username, SECRET, address, **{"X-Forwarded-For": f"{other}, {one}"}).status_code == 429
    assert sign_in(user.username, SECRET, address, **{"X-Forwarded-For": other}).status_code == 302


def test_other_addresses_of_one_ipv6_network_are_the_same_client(settings, user):
    settings.LOGIN_FAILURES_PER_MINUTE = 1
    sign_in("nobody", "wrong", "2001:db8:5:5::1")
    assert sign_in(user.username, SECRET, "2001:db8:5:5:aaaa::2").status_code == 429
    assert sign_in(user.username, SECRET, "2001:db8:5:6::1").status_code == 302


def test_many_attempts_at_one_name_are_429_too(settings, address, user):
    settings.LOGINS_PER_MINUTE = 1
    assert sign_in(user.username, "wrong", address).status_code == 200
    answer = sign_in(user.username, SECRET, address)
    assert answer.status_code == 429
    assert "Too many attempts for this name. Try again in" in answer.content.decode()


@pytest.mark.parametrize("name", ["person", "a name that nobody has"])
def test_when_too_many_sign_in_at_once_the_answer_is_busy_for_known_and_unknown_names(name, monkeypatch, address, user):
    monkeypatch.setattr(password_hashing, "SLOTS", Slots(1, 1, 0.05, password_hashing.busy))
    name = user.username if name == "person" else name
    with password_hashing.SLOTS.one():
        answer = sign_in(name, SECRET, address)
    assert (answer.status_code, answer["Retry-After"]) == (503, "1")
    assert "Your password was not checked." in answer.content.decode()
    assert not AuditEntry.objects.filter(action__startswith="user.sign_in").exists()
    assert sign_in(user.username, SECRET, address).status_code == 302


def test_without_redis_nobody_signs_in_by_password(redis_is_away, address, user):
    answer = sign_in(user.username, SECRET, address)
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) > 0
    assert "Sign-in by password is closed for the moment: Redis does not answer" in answer.content.decode()
    assert "sessionid" not in answer.cookies


def test_without_redis_sessions_and_tokens_go_on(redis_is_away, user):
    browser = Client()
    browser.force_login(user)
    assert browser.get("/").status_code == 200
    assert api_client(user).get("/api/v1/me").status_code == 200
    assert Client().get("/login").status_code == 200
    assert Client().get("/api/v1/me", headers={"Authorization": "Bearer gpup_wrong"}).status_code == 401


def test_sign_in_works_again_when_redis_is_back(monkeypatch, address, user):
    gone, client = redis.Redis.from_url(f"redis://127.0.0.1:{free_port()}/0"), counters.client
    monkeypatch.setattr(counters, "client", lambda: gone)
    assert sign_in(user.username, SECRET, address).status_code == 503
    monkeypatch.setattr(counters, "client", client)
    monkeypatch.setattr(counters, "PAUSE_S", 0.0)
    monkeypatch.setattr(counters, "_paused_until", 0.0)
    assert sign_in(user.username, SECRET, address).status_code == 302
