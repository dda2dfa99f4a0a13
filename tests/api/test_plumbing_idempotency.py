import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from rest_framework.decorators import api_view
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory, force_authenticate

from portal.api.http.idempotency import idempotent
from portal.core import clock
from portal.core.errors import Invalid
from portal.core.models import Heartbeat, IdempotentReply
from portal.http import idempotency
from portal.http.person_limits import limit_client
from tests.support.people import person


@api_view(["POST"])
@idempotent()
def beat(request, started=None, go_on=None):
    """Yield a route whose effect counts its calls."""
    if started:
        started.set()
        go_on.wait(10)
    if request.data.get("name") == "bad":
        raise Invalid({"name": ["No."]})
    row = Heartbeat.objects.create(name=f"{request.data['name']}-{Heartbeat.objects.count()}", at=clock.now())
    return Response({"name": row.name}, status=201)


def post(user, key, name="a", **options):
    request = APIRequestFactory().post("/beat", {"name": name}, format="json", headers={"Idempotency-Key": key})
    force_authenticate(request, user)
    return limit_client(lambda request: beat(request, **options))(request)


@pytest.mark.django_db
def test_the_same_request_again_has_the_same_answer_and_no_effect():
    user = person()
    first, second = post(user, "k"), post(user, "k")
    assert (second.status_code, second.data) == (201, first.data)
    assert second["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first
    assert Heartbeat.objects.count() == 1


@pytest.mark.django_db
def test_the_same_key_with_another_body_is_422():
    user = person()
    post(user, "k")
    answer = post(user, "k", name="b")
    assert (answer.status_code, answer.data["reason"]) == (422, "key_reused")


@pytest.mark.django_db
def test_keys_belong_to_one_person():
    post(person(), "k")
    assert "Idempotent-Replayed" not in post(person(), "k")
    assert Heartbeat.objects.count() == 2


@pytest.mark.django_db
def test_a_refused_request_may_be_sent_again():
    user = person()
    assert post(user, "k", name="bad").status_code == 400
    assert not IdempotentReply.objects.exists()
    assert post(user, "k").status_code == 201


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", " ", "k" * 256])
def test_a_key_has_1_to_255_characters(key):
    assert post(person(), key).status_code == 400


@pytest.mark.django_db(transaction=True)
def test_while_the_first_runs_the_second_is_in_progress(settings):
    settings.PERSON_REQUESTS_AT_ONCE = 2
    user = person()
    started, go_on, answers = threading.Event(), threading.Event(), []

    def first():
        answers.append(post(user, "k", started=started, go_on=go_on))
        connection.close()

    thread = threading.Thread(target=first)
    thread.start()
    assert started.wait(10)
    second = post(user, "k")
    go_on.set()
    thread.join(10)
    assert (second.status_code, second.data["reason"]) == (409, "in_progress")
    assert second["Retry-After"] == "1"
    assert answers[0].status_code == 201
    assert post(user, "k")["Idempotent-Replayed"] == "true"


@pytest.mark.django_db(transaction=True)
def test_effect_and_answer_are_stored_together_or_not_at_all():
    user = person()
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        post(user, "k")
        _ = 1 / 0
    assert not Heartbeat.objects.exists()
    assert not IdempotentReply.objects.exists()


@pytest.mark.django_db
def test_answers_are_forgotten_after_two_days():
    user = person()
    post(user, "k")
    with clock.frozen(clock.now() + timedelta(hours=49)):
        assert idempotency.purge() == 1
