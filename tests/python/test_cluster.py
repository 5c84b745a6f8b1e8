# SPDX-License-Identifier: Apache-2.0
"""The harness for real processes: what tests of jobs rely on."""
import os
import signal
import subprocess
import sys
import time

import pytest

import cluster
from cluster import LIMIT, Cluster, Failed

# A server leaves when every trainer has said goodbye; a trainer says so.
GREETING = """
import os, socket, sys, time
host, port = os.environ.get("PADDLE_CURRENT_ENDPOINT", ":0").split(":")
if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
    with socket.create_server((host, int(port)), reuse_port=True) as s:
        print("Server listening on %s:%s" % (host, port))
        for _ in range(int(os.environ["PADDLE_TRAINERS_NUM"])):
            s.accept()[0].close()
else:
    for end in os.environ["PADDLE_PSERVER_ENDPOINTS"].split(","):
        host, port = end.split(":")
        while True:
            try:
                socket.create_connection((host, int(port))).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
    print("trainer", os.environ["PADDLE_TRAINER_ID"], "done", sys.argv[1:])
"""
SLEEPS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("child", child.pid)
time.sleep(600)
"""


def lives(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] not in "XZ"
    except OSError:
        return False


def gone(pid):
    """It may take a moment until the system has cleared a process away."""
    limit = time.monotonic() + LIMIT
    while lives(pid) and time.monotonic() < limit:
        time.sleep(0.01)
    return not lives(pid)


@pytest.mark.parametrize("trainers_first", [False, True])
def test_a_job_runs_to_its_end(tmp_path, trainers_first):
    with Cluster(tmp_path, GREETING, servers=2, trainers=3,
                 argv=["word"]) as job:
        job.start(trainers_first).finish()
        assert job.trainer[2].text() == "trainer 2 done ['word']\n"
        assert "listening on " + job.endpoints[1] in job.server[1].text()
        assert len(set(job.endpoints)) == 2


def test_jobs_side_by_side_do_not_meet(tmp_path):
    folders = [tmp_path / n for n in "ab"]
    for f in folders:
        f.mkdir()
    with Cluster(folders[0], GREETING) as a, \
            Cluster(folders[1], GREETING) as b:
        assert a.endpoints != b.endpoints
        a.start()
        b.start()
        a.finish()
        b.finish()


def test_a_server_may_start_again_on_its_port(tmp_path):
    with Cluster(tmp_path, GREETING) as job:
        first = job.start_server(0)
        first.says("listening")
        first.kill()
        assert first.code() == -signal.SIGKILL
        again = job.start_server(0)
        again.says("listening")
        job.start_trainer(0)
        job.finish()
        assert (first.name, again.name) == ("server0", "server0-1")


def test_nothing_of_the_callers_job_leaks_in(tmp_path, monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINER_ROLE", "x")
    monkeypatch.setenv("PSERVERS", "x")
    with Cluster(tmp_path, "import os\nprint(sorted(os.environ))\n",
                 servers=0, env={"A": 1}) as job:
        p = job.start_trainer(0, B="2", PADDLE_TRAINING_ROLE=None)
        p.end()
        words = p.text()
        assert "'A'" in words and "'B'" in words
        assert "TRAINER_ROLE" not in words and "'PSERVERS'" not in words
        assert "PADDLE_TRAINING_ROLE" not in words


def test_what_is_wrong_is_said_and_nothing_is_left(tmp_path, capfd):
    with pytest.raises(Failed, match="trainer0 still runs after 0.1 s"):
        with Cluster(tmp_path, SLEEPS, servers=0) as job:
            p = job.start_trainer(0)
            child = int(p.says(r"child (\d+)").group(1))
            p.end(seconds=0.1)
    assert "--- trainer0 (runs) ---\nchild %d\n" % child \
        in capfd.readouterr().err
    assert gone(p.pid) and gone(child)


@pytest.mark.parametrize("script,sentence", [
    ("import sys\nsys.exit(3)\n", "trainer0 ended with 3, expected 0"),
    ("import os\nos.abort()\n", "trainer0 ended with -6, expected 0")])
def test_a_bad_end_is_said(tmp_path, script, sentence):
    with Cluster(tmp_path, script, servers=0) as job:
        p = job.start_trainer(0)
        with pytest.raises(Failed, match=sentence):
            p.end()
        with pytest.raises(Failed, match="and never said /hello/"):
            p.says("hello")
        p.kill()  # no harm


COUNTS = """
import time
for i in range(100000):
    print(i)
    time.sleep(0.01)
"""


def test_a_process_is_stopped_and_goes_on(tmp_path):
    with Cluster(tmp_path, COUNTS, servers=0) as job:
        p = job.start_trainer(0)
        p.says("^3$")
        p.stop()
        then = p.text()
        assert p._state() in "Tt" and p.code() is None
        p.go_on()
        p.says("^%d$" % (int(then.split()[-1]) + 3))
        p.stop()  # one that is stopped is cleared as well


def test_a_test_that_is_killed_takes_its_processes_along(tmp_path):
    (tmp_path / "s.py").write_text(
        "import os\nopen('pid', 'w').write(str(os.getpid()))\n" + COUNTS)
    code = ("import sys, time\nsys.path.insert(0, %r)\nfrom cluster import "
            "Cluster\njob = Cluster(%r, %r, servers=0)\n"
            "job.start_trainer(0).says('^2$')\nprint('on', flush=True)\n"
            "time.sleep(600)\n" % (os.path.dirname(cluster.__file__),
                                   str(tmp_path), str(tmp_path / "s.py")))
    p = subprocess.Popen([sys.executable, "-c", code],
                         stdout=subprocess.PIPE, text=True)
    assert p.stdout.readline() == "on\n"
    p.kill()
    p.communicate()
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_job_runs_from_a_shell(tmp_path):
    (tmp_path / "s.py").write_text(GREETING)
    run = [sys.executable, cluster.__file__, "--servers", "1", "--trainers"]
    good = subprocess.run(run + ["2", str(tmp_path / "s.py"), "w"], text=True,
                          capture_output=True)
    assert good.returncode == 0 and "trainer 1 done ['w']" in good.stdout
    (tmp_path / "s.py").write_text("raise KeyError('x')\n")
    bad = subprocess.run(run + ["1", str(tmp_path / "s.py")], text=True,
                         capture_output=True)
    assert bad.returncode == 1 and "KeyError: 'x'" in bad.stderr
    assert "trainer0 ended with 1, expected 0" in bad.stderr
