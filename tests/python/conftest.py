# SPDX-License-Identifier: Apache-2.0
"""What the Python tests share, and lines that scripts/run-tests can count."""
import os
import random
import signal
import sys
import tempfile
import time

import numpy as np
import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("FL_BUILD_DIR",
                                       os.path.join(ROOT, "build")))
if os.path.join(BUILD, "python") not in sys.path:
    sys.path.insert(0, os.path.join(BUILD, "python"))

# A shell starts what it runs in the background with SIGINT ignored, nohup with
# SIGHUP, and processes inherit that; those of the tests must hear both.
for number, handler in ((signal.SIGINT, signal.default_int_handler),
                        (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, handler)

# Servers that are killed leave their states: not in the directory of the user.
STATES = tempfile.TemporaryDirectory(prefix="fluid-states")
os.environ["FLUID_STATE_DIR"] = os.path.join(STATES.name, "state")
# No trainer is lost because the machine is busy.
os.environ.setdefault("FLUID_LEASE", "30")

MARKS = {"passed": "[       OK ]", "skipped": "[  SKIPPED ]",
         "failed": "[  FAILED  ]", "error": "[  FAILED  ]"}


def sentence(nodeid):
    """tests/python/test_a.py::test_it_works becomes `a: it works`."""
    file, _, name = nodeid.rpartition("::")
    file = os.path.basename(file.split("::")[0]).removesuffix(".py")
    return "%s: %s" % (file.removeprefix("test_"),
                       name.removeprefix("test_").replace("_", " "))


def reason(report):
    return report.longrepr[2].removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter):
    for kind, mark in MARKS.items():
        for report in terminalreporter.stats.get(kind, ()):
            if kind == "skipped":
                terminalreporter.write_line("           skipped: %s"
                                            % reason(report))
            terminalreporter.write_line("%s %s"
                                        % (mark, sentence(report.nodeid)))


@pytest.fixture(autouse=True)
def own_states(monkeypatch):
    """No test finds what servers of another one have left."""
    with tempfile.TemporaryDirectory(dir=STATES.name) as folder:
        monkeypatch.setenv("FLUID_STATE_DIR", os.path.join(folder, "state"))
        yield


@pytest.fixture
def shared():
    """The folder of optional data, or the test is skipped."""
    folder = os.environ.get("FLUID_SHARED", os.path.join(ROOT, "../shared"))
    folder = os.path.join(folder, "data")
    if not os.path.isdir(folder):
        pytest.skip("no optional data in FLUID_SHARED")
    return folder


@pytest.fixture
def data(tmp_path, monkeypatch):
    """An empty DATA_HOME of the test's own; there is no other place."""
    from paddle.dataset import common
    home = tmp_path / "data"
    home.mkdir()
    monkeypatch.setattr(common, "DATA_HOME", str(home))
    monkeypatch.setattr(common, "CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(common, "_fetched", list)
    monkeypatch.setattr(common, "_said", set())
    return home


@pytest.fixture
def shared_data(shared, data, monkeypatch):
    """The optional data as the DATA_HOME."""
    from paddle.dataset import common
    monkeypatch.setattr(common, "DATA_HOME", shared)
    return shared


@pytest.fixture(autouse=True)
def seeded():
    """Random numbers of a test are the same at every run."""
    random.seed(1)
    np.random.seed(1)


def burned(pid, seconds):
    """Wait until a process has used so much CPU since the call: it is then at
    work, however slow the machine."""
    def used():
        with open("/proc/%d/stat" % pid) as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    enough = used() + seconds
    while used() < enough:
        time.sleep(0.01)


@pytest.fixture
def programs():
    """A main and a startup program with a seed, names and a scope of the
    test's own."""
    fluid = pytest.importorskip("paddle.fluid")
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 1
    with fluid.program_guard(main, startup), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield main, startup


@pytest.fixture
def exe(programs):
    import paddle.fluid as fluid
    return fluid.Executor(fluid.CPUPlace())


@pytest.fixture
def line(programs, exe):
    """Fit a line, ready to train: the loss and the prediction."""
    import paddle.fluid as fluid
    x = fluid.layers.data("x", [13])
    y = fluid.layers.data("y", [1])
    predicted = fluid.layers.fc(x, 1)
    loss = fluid.layers.mean(fluid.layers.square_error_cost(predicted, y))
    fluid.optimizer.SGD(learning_rate=0.01).minimize(loss)
    exe.run(programs[1])
    return loss, predicted
