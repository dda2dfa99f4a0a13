"""How the threads of a web process share the interpreter."""

import subprocess
import sys

from portal.core.threads import SWITCH_S


def test_in_a_web_process_a_thread_that_computes_gives_way_ten_times_as_often_as_python_would_have_it():
    program = "import sys; before = sys.getswitchinterval(); import portal.wsgi; print(before, sys.getswitchinterval())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    before, after = map(float, done.stdout.split())
    assert (round(before / after), round(after, 6)) == (10, SWITCH_S)


def test_a_garbage_collection_in_a_web_process_does_not_look_at_what_was_loaded():
    program = "import gc, portal.wsgi; print(gc.get_freeze_count() > 10 * len(gc.get_objects()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
