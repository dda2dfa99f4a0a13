"""How long a simulated past may be, and what the demo says to other values."""

import pytest

from demo.simulated_history import length
from deploy.local import __main__ as local
from deploy.local.errors import LocalError


@pytest.mark.parametrize(("text", "days"), [("1d", 1), ("30d", 30), ("90d", 90)])
def test_whole_days_are_a_length(text, days):
    assert length.days(text) == days


@pytest.mark.parametrize("text", ["", "0d", "91d", "30", "d", "1w", "-1d", "1.5d", "30d ", "1000d", "٣d"])
def test_another_value_is_refused_with_what_works(text):
    with pytest.raises(ValueError, match="Give whole days from 1d to 90d, such as 30d"):
        length.days(text)


@pytest.mark.parametrize("command", ["up", "run", "tour"])
def test_the_demo_refuses_it_before_it_starts_anything(command, monkeypatch, capsys):
    monkeypatch.setenv("HISTORY", "6w")
    monkeypatch.setattr("sys.argv", ["deploy.local", "--home=/nowhere", command])
    assert local.main() == 1
    assert "HISTORY='6w' is no length of a history. Give whole days" in capsys.readouterr().err


def test_no_history_is_written_unless_it_is_asked_for(monkeypatch):
    monkeypatch.delenv("HISTORY", raising=False)
    assert local._history() == ""
    monkeypatch.setenv("HISTORY", "07d")
    assert local._history() == "7d"
    monkeypatch.setenv("HISTORY", "7")
    with pytest.raises(LocalError):
        local._history()
