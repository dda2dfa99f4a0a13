"""What a web process does before its first request: how often threads take turns, and what is imported."""

import subprocess
import sys

from portal.core.threads import SWITCH_S


def test_in_a_web_process_a_thread_that_computes_gives_way_ten_times_as_often_as_python_would_have_it():
    before, after = map(
        float, _printed("import sys; before = sys.getswitchinterval()", "before, sys.getswitchinterval()")
    )
    assert (round(before / after), round(after, 6)) == (10, SWITCH_S)


def test_the_first_request_of_a_web_process_finds_all_views_imported():
    assert _printed("import sys", "'frontend.views.home' in sys.modules, 'portal.wsgi' in sys.modules") == [
        "True",
        "True",
    ]


def test_a_garbage_collection_does_not_look_at_what_was_imported():
    assert _printed("import gc", "gc.get_freeze_count() > 10 * len(gc.get_objects())") == ["True"]


def _printed(before: str, words: str) -> list[str]:
    """Return what a new process prints that imports the application after ``before``."""
    program = f"{before}; import portal.wsgi; print({words})"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
