"""The hash chain of the audit log: writers never wait for it, and every later change is detected."""

import json
import threading
from datetime import UTC, date, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, transaction

from portal.audit import chain as audit_chain
from portal.audit import heads as audit_heads
from portal.audit.entries import audit
from portal.audit.heads import Head
from portal.audit.verify import verify
from portal.core import clock
from portal.core.models import AuditEntry, AuditSeal

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def written(count: int, word: str = "made") -> None:
    for number in range(count):
        audit("operator", "test.write", f"{word}-{number}", before={"n": number}, after={"n": number + 1})


def run_sql(*statements: str) -> None:
    """Run SQL as the owner of the tables, with triggers and foreign keys off, which no grant prevents."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture
def chain(db):
    """Create seven sealed entries: positions 1 to 7."""
    written(7)
    assert audit_chain.seal() == 7
    yield list(AuditSeal.objects.select_related("entry").order_by("position"))
    run_sql("DELETE FROM core_auditseal")  # Django looks for broken references at the end of a test


def entry_at(chain, position):
    return chain[position - 1].entry_id


def test_an_untouched_chain_holds_and_sealing_again_adds_nothing(chain):
    verdict = verify()
    assert (verdict.count, verdict.digest, verdict.broken) == (7, chain[-1].digest, "")
    assert audit_chain.seal() == 0


def test_an_empty_log_holds(db):
    assert verify().broken == ""


def test_an_entry_that_commits_late_gets_a_later_place(chain):
    first = AuditEntry.objects.earliest("pk")
    late = AuditEntry(
        pk=first.pk - 1, at=first.at - timedelta(hours=1), actor="late", action="test.write", target="x", source={}
    )
    late.save(force_insert=True)
    audit_chain.seal()
    assert late.seal.position == 8
    assert verify().broken == ""


@pytest.mark.parametrize(
    "change",
    [
        "target = 'another'",
        "actor = 'nobody'",
        "team = 'vision'",
        "at = at + interval '1 microsecond'",
        "before = NULL",
        "after = '{\"n\": 99}'",
        'source = \'{"way": "api"}\'',
        "request_id = 'r'",
    ],
)
def test_a_changed_entry_is_named(chain, change):
    run_sql(f"UPDATE core_auditentry SET {change} WHERE id = {entry_at(chain, 4)}")
    verdict = verify()
    assert verdict.count == 3
    assert verdict.broken.startswith(f"position 4: entry {entry_at(chain, 4)} (")
    assert verdict.broken.endswith(" was changed.")


def test_a_changed_digest_is_told_from_a_changed_entry(chain):
    run_sql(f"UPDATE core_auditseal SET digest = '{'0' * 64}' WHERE position = 4")
    assert verify().broken.endswith("UTC) holds, but its seal was changed.")


def test_a_changed_time_of_sealing_is_found(chain):
    run_sql("UPDATE core_auditseal SET sealed_at = sealed_at - interval '1 day' WHERE position = 7")
    assert verify().broken.startswith("position 7: ")


def test_a_missing_entry_is_named(chain):
    run_sql(f"DELETE FROM core_auditentry WHERE id = {entry_at(chain, 4)}")
    assert verify().broken == f"position 4: entry {entry_at(chain, 4)} is missing."


def test_a_gap_is_named(chain):
    run_sql(
        "DELETE FROM core_auditseal WHERE position = 4", f"DELETE FROM core_auditentry WHERE id = {entry_at(chain, 4)}"
    )
    assert verify().broken == "position 4: missing; the next is 5."


def test_two_entries_that_changed_places_are_found(chain):
    fourth, fifth = entry_at(chain, 4), entry_at(chain, 5)
    run_sql(
        "UPDATE core_auditseal SET entry_id = 0 WHERE position = 4",
        f"UPDATE core_auditseal SET entry_id = {fourth} WHERE position = 5",
        f"UPDATE core_auditseal SET entry_id = {fifth} WHERE position = 4",
    )
    assert verify().broken.startswith(f"position 4: entry {fifth} (")


def test_an_inserted_seal_is_found(chain):
    audit("somebody", "test.write", "not sealed by the portal")
    AuditSeal.objects.create(position=8, entry=AuditEntry.objects.latest("pk"), sealed_at=clock.now(), digest="f" * 64)
    assert verify().broken.startswith("position 8: ")


def test_a_chain_that_was_made_anew_differs_from_the_head_that_was_exported(chain):
    exported = [Head(date(2026, 3, 1), 3, chain[2].digest), Head(date(2026, 3, 2), 7, chain[6].digest)]
    run_sql(
        f"UPDATE core_auditentry SET target = 'another' WHERE id = {entry_at(chain, 5)}", "DELETE FROM core_auditseal"
    )
    audit_chain.seal()
    assert verify().broken == "", "the chain alone is whole"
    now = AuditSeal.objects.get(position=3).digest
    verdict = verify([Head(date(2026, 3, 1), 3, now), exported[1]])
    assert verdict.broken == "position 4 or later, up to 7: rewritten since the head of 2026-03-02 was exported."
    assert (verdict.count, verdict.digest) == (3, now)


def test_an_end_that_was_cut_off_is_missed(chain):
    exported = [Head(date(2026, 3, 2), 7, chain[6].digest)]
    run_sql(
        "DELETE FROM core_auditseal WHERE position > 5", f"DELETE FROM core_auditentry WHERE id >= {entry_at(chain, 6)}"
    )
    assert verify().broken == ""
    assert verify(exported).broken == "position 6: missing, as all up to 7, which the head of 2026-03-02 counts."


def test_a_walk_takes_as_many_queries_as_it_has_batches(chain, monkeypatch, django_assert_num_queries):
    monkeypatch.setattr("portal.audit.verify.BATCH", 3)
    with django_assert_num_queries(2 * 3 + 1):
        assert verify().count == 7


def test_sealing_takes_the_same_queries_for_one_entry_and_for_many(db, django_assert_max_num_queries):
    written(1)
    with django_assert_max_num_queries(20) as first:
        audit_chain.seal()
    written(20)
    with django_assert_max_num_queries(len(first)):
        assert audit_chain.seal() == 20


def test_a_day_has_a_head_once_it_is_over_and_quiet_days_have_that_of_the_day_before(db, django_assert_num_queries):
    for days in (0, 1, 4):
        with clock.frozen(NOON + timedelta(days=days)):
            written(2)
            audit_chain.seal()
    with clock.frozen(NOON + timedelta(days=4)), django_assert_num_queries(2):
        heads = list(audit_heads.heads())
    assert [(head.day.day, head.count) for head in heads] == [(2, 2), (3, 4), (4, 4), (5, 4)]
    assert heads[1].digest == heads[3].digest == AuditSeal.objects.get(position=4).digest
    with clock.frozen(NOON + timedelta(days=5)):
        assert [(head.day.day, head.count) for head in audit_heads.heads(date(2026, 3, 5))] == [(5, 4), (6, 6)]


def test_heads_are_exported_once_and_missed_days_are_made_up_for(db, tmp_path):
    file = tmp_path / "heads.jsonl"
    with clock.frozen(NOON):
        written(2)
        audit_chain.seal()
        assert audit_heads.export(file) == [], "the day is not over"
    with clock.frozen(NOON + timedelta(days=1)):
        audit_heads.export(file)
        assert audit_heads.export(file) == []
    with clock.frozen(NOON + timedelta(days=3)):
        assert [head.day.day for head in audit_heads.export(file)] == [3, 4]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["day"] for line in lines] == ["2026-03-02", "2026-03-03", "2026-03-04"]
    assert {line["count"] for line in lines} == {2}
    assert audit_heads.read(file)[0].digest == AuditSeal.objects.get(position=2).digest


def test_the_command_says_that_all_holds(chain, tmp_path):
    out = StringIO()
    call_command("audit", "verify", file=tmp_path / "none", stdout=out)
    assert out.getvalue().startswith("7 entries hold, 0 exported heads too. Head: ")


def test_the_command_exits_1_and_names_the_first_broken_row(chain):
    run_sql(f"DELETE FROM core_auditentry WHERE id = {entry_at(chain, 4)}")
    out = StringIO()
    with pytest.raises(SystemExit) as exit_:
        call_command("audit", "verify", stdout=out)
    assert exit_.value.code == 1
    assert out.getvalue() == (
        f"BROKEN at position 4: entry {entry_at(chain, 4)} is missing. 3 entries before it hold.\n"
    )


def test_the_command_takes_exported_heads_into_account(chain, tmp_path):
    file = tmp_path / "heads.jsonl"
    file.write_text(Head(date(2026, 3, 2), 7, "0" * 64).line() + "\n")
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("audit", "verify", file=file, stdout=out)
    assert "rewritten since the head of 2026-03-02 was exported" in out.getvalue()


def test_what_is_rolled_back_is_not_noted(db):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        audit("operator", "test.write", "x")
        raise ZeroDivisionError
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_eight_writers_and_two_sealers_at_once_leave_a_whole_chain():
    writers = [threading.Thread(target=_many, name=f"writer-{number}") for number in range(8)]
    over = threading.Event()
    sealers = [threading.Thread(target=_seal_until, args=(over,), name=f"sealer-{number}") for number in range(2)]
    for thread in (*writers, *sealers):
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    for thread in sealers:
        thread.join()
    audit_chain.seal()
    verdict = verify()
    assert (verdict.count, verdict.broken) == (8 * 40, "")
    assert AuditEntry.objects.count() == 8 * 40


def _many() -> None:
    try:
        for number in range(20):
            with transaction.atomic():
                written(2, f"{threading.current_thread().name}-{number}")
    finally:
        connection.close()


def _seal_until(over: threading.Event) -> None:
    try:
        while not over.is_set():
            audit_chain.seal()
    finally:
        connection.close()
