"""Under a launcher one Ctrl-C means: finish the step, save, leave.

A script that trains on datasets saves after each pass. So the signal ends the
pass it meets after the current step, and later ones before their first; what
the script does between them goes on. A second signal interrupts as usual.
"""
import contextlib
import os
import signal
import threading

_was_asked = []  # by a signal


def _ask(number, frame):
    if _was_asked:
        raise KeyboardInterrupt
    _was_asked.append(number)


def _answer():
    return bool(_was_asked)


@contextlib.contextmanager
def asked():
    """Within `with`, SIGINT is a wish to stop, if a launcher started this and
    nobody else handles the signal; gives who tells of the wish."""
    ours = (os.environ.get("FLUID_LAUNCHED") == "1"
            and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    if ours:
        signal.signal(signal.SIGINT, _ask)
    try:
        yield _answer
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
