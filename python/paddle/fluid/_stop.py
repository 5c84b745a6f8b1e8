# SPDX-License-Identifier: Apache-2.0
"""Under a launcher one Ctrl-C means: finish the step, save, leave.

A script that trains on datasets saves after each pass. So the signal ends the
pass it meets after the current step, and later ones before their first; what
the script does between them goes on. A script with a loop of its own gets a
KeyboardInterrupt, but not in the middle of a step of Executor.run: it can save
where it catches that. A second signal interrupts as usual.

A process that ends because its job does, or by Ctrl-C in a job, shows one line
in place of a traceback, since its script is not the cause.
"""
import contextlib
import os
import signal
import sys
import threading

from . import _fluid

LAUNCHED = (os.environ.get("FLUID_LAUNCHED") == "1"
            and os.environ.get("TRAINING_ROLE") != "PSERVER")
_PATIENCE = 10  # seconds for the rest of a step
_was_asked = []  # not empty: a signal asked to stop
_at_failure = []  # what else is called with an uncaught exception


def _ask(number, frame):
    if _was_asked:
        raise KeyboardInterrupt
    _was_asked.append(number)


def _answer():
    return bool(_was_asked)


@contextlib.contextmanager
def asked(ask=_ask):
    """A context in which SIGINT asks to stop after the step, if a launcher
    started this process and no other handler is set. Its value is a function
    that returns whether to stop."""
    ours = (LAUNCHED and threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler)
    if ours:
        signal.signal(signal.SIGINT, ask)
    try:
        yield _answer
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt():
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def finish(run, *args):
    """Return run(*args). A first Ctrl-C meanwhile raises KeyboardInterrupt
    after it, or after _PATIENCE seconds."""
    before = bool(_was_asked)
    timer = None

    def ask(number, frame):
        nonlocal timer
        _ask(number, frame)
        timer = threading.Timer(_PATIENCE, _interrupt)
        timer.daemon = True
        timer.start()

    with asked(ask) as answer:
        try:
            results = run(*args)
        finally:
            if timer:
                timer.cancel()
    if answer() and not before:
        raise KeyboardInterrupt
    return results


def at_failure(call):
    """call(kind, error) for an exception that nobody has caught."""
    _at_failure.append(call)


def _interrupted():
    """"trainer 0 was ended by Ctrl-C"; None: this process is in no job."""
    try:
        role = _fluid.role()
    except ValueError:
        return None
    if role["role"] == "PSERVER":
        name = "server %d (%s)" % (role["endpoints"].index(role["endpoint"]),
                                   role["endpoint"])
    else:
        name = "%s %d" % ("rank" if role["mode"] == "collective"
                          else "trainer", role["trainer_id"])
    return None if role["mode"] == "local" else name + " was ended by Ctrl-C"


def show_one_line():
    """Show the end of a job as one line rather than as a traceback."""
    show = sys.excepthook

    def hook(kind, error, trace):
        ended = issubclass(kind, _fluid.JobEnded)
        line = str(error) if ended else \
            _interrupted() if issubclass(kind, KeyboardInterrupt) else None
        if line:
            sys.stderr.write("paddle: %s\n" % line)
        else:
            show(kind, error, trace)
        for call in _at_failure:
            call(kind, error)
        if ended:
            sys.exit(error.code)

    sys.excepthook = hook


show_one_line()
