# SPDX-License-Identifier: Apache-2.0
"""Servers that are killed and started again: the job goes on with what they
held, and ends with the bits of a run that nobody disturbed."""
import os
import re
import signal
import subprocess
import time

import numpy as np
import pytest

import async_job
import returning_job
import sync_job
from cluster import Cluster
from kills import scene_word
from test_sync import same_bits

KEPT = {"FLUID_LINGER": "0.1", "FLUID_NO_FUSE": "1",
        "FLUID_DURABILITY": "process", "FLUID_RESTART": "300"}

# Who is killed at which store, and which time it passes there. All of them with
# FLUID_KILL_MATRIX=1, otherwise every fourth.
SCENES = [
    ("adam", {0: "stage.bytes:3"}), ("adam", {1: "stage.entry:5"}),
    ("adam", {1: "stage.count:4"}), ("adam", {0: "image.written:9"}),
    ("adam", {0: "image.selected:12"}), ("adam", {1: "owner.undo:9"}),
    ("adam", {0: "owner.live:13"}), ("adam", {1: "owner.applied:20"}),
    ("adam", {0: "owner.next:31", 1: "owner.live:40"}),
    ("noam", {1: "owner.rates:3"}), ("noam", {0: "owner.done:4"}),
    ("noam", {0: "round.version:2"}), ("noam", {1: "round.dropped:5"}),
    ("rows", {0: "owner.live:19"}), ("rows", {1: "owner.applied:22"}),
    ("table", {0: "table.row:7"}), ("table", {1: "table.count:11"}),
    ("table", {0: "table.redo:1"}), ("table", {1: "table.dir:1"}),
    ("table", {0: "owner.live:60", 1: "owner.applied:55"}),
]
ASYNC = [
    ("1", {1: "owner.live:21"}), ("1", {0: "owner.rates:5"}),
    ("1", {0: "owner.window:9", 1: "owner.marked:12"}),
    ("2", {1: "owner.applied:40"}), ("2", {0: "owner.done:7"}),
    ("1", {0: "image.selected:4"}),
]
# A tensor is copied before it is written only while a pull of it is being sent.
SLOTS = [{0: "slot.copied:1"}, {1: "slot.copied:2"}, {0: "slot.flip:2"},
         {1: "slot.flip:1"}]
if "FLUID_KILL_MATRIX" not in os.environ:
    SCENES, ASYNC, SLOTS = SCENES[::4], ASYNC[::4], SLOTS[::4]


def sync(folder, recipe):
    return Cluster(folder, sync_job.__file__, 2, 2, env=KEPT,
                   argv=[recipe, "split"])


def asynchronous(folder, owners):
    return Cluster(folder, async_job.__file__, 2, 2, argv=["25"],
                   env={**KEPT, "FLUID_OWNERS": owners})


def results(folder):
    """What trainers and servers have written, by name of the file."""
    found = {}
    for name in sorted(os.listdir(str(folder))):
        if name.endswith(".npz"):
            with np.load(os.path.join(str(folder), name)) as f:
                found[name] = {key: f[key] for key in f.files}
    assert len(found) == 2
    return found


def play(job, killed, lose=None, says="going on at version"):
    """Play a job; killed: the failpoint of each server's first process; lose:
    what else befalls a server that was killed, with the job and its number;
    says: what it says when it is back."""
    with job:
        for i in range(2):
            job.start_server(i, FLUID_FAILPOINT=killed.get(i))
        for i in range(2):
            job.start_trainer(i)
        first = list(job.server)
        while any(first[i] is job.server[i] for i in killed):
            for i in killed:
                if first[i] is job.server[i] and first[i].code() is not None:
                    first[i].end(code=-9)
                    if lose:
                        lose(job, i)
                    job.start_server(i).says(says)
            time.sleep(0.01)
        job.finish()
    assert not os.listdir(os.path.join(job.folder, "state"))
    return results(job.folder)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """What a job ends with that nobody disturbs; by kind and recipe."""
    made = {}

    def result(kind, recipe):
        if (kind, recipe) not in made:
            made[kind, recipe] = play(kind(tmp_path_factory.mktemp(recipe),
                                           recipe), {})
        return made[kind, recipe]

    return result


def compare(got, want):
    assert got.keys() == want.keys()
    for name in got:
        same_bits(got[name], want[name])


@pytest.mark.parametrize("recipe, killed", SCENES, ids=scene_word)
def test_a_killed_server_changes_no_bit(tmp_path, calm, recipe, killed):
    compare(play(sync(tmp_path, recipe), killed), calm(sync, recipe))


@pytest.mark.parametrize("owners, killed", ASYNC, ids=scene_word)
def test_every_asynchronous_push_counts_once(tmp_path, calm, owners, killed):
    compare(play(asynchronous(tmp_path, owners), killed),
            calm(asynchronous, owners))


OVERLAP = """
import os, sys
import numpy as np
import paddle.fluid as fluid

x = fluid.layers.data("x", [2000])
h = fluid.layers.fc(x, 2000, bias_attr=False, param_attr=fluid.ParamAttr(
    "w", initializer=fluid.initializer.Constant(0.5)))
fluid.optimizer.SGD(0.25).minimize(fluid.layers.reduce_sum(h))
t = fluid.DistributeTranspiler()
me = int(os.environ.get("PADDLE_TRAINER_ID", 0))
endpoints = os.environ["PADDLE_PSERVER_ENDPOINTS"]
t.transpile(me, pservers=endpoints, trainers=2, sync_mode=False)
exe = fluid.Executor(fluid.CPUPlace())
if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
    here = os.environ["PADDLE_CURRENT_ENDPOINT"]
    program, startup = t.get_pserver_programs(here)
    exe.run(startup)
    exe.run(program)
    np.savez("server-%d.npz" % endpoints.split(",").index(here),
             **{v.name: np.array(fluid.global_scope().find_var(v.name)
                                 .get_tensor())
                for v in program.list_vars() if v.persistable
                and v.name.startswith("w") and "GRAD" not in v.name})
    sys.exit()
exe.run(fluid.default_startup_program())
steps = more = 0
while more < 5:
    exe.run(t.get_trainer_program(), feed={"x": np.ones((1, 2000), "float32")})
    steps += 1
    print("step", steps)
    more += os.path.exists("back")
exe.close()
print("made", steps, "steps")
"""


def step_of(trainer):
    return len(re.findall("^step", trainer.text(), re.M))


def stop_until_killed(job, i):
    """Stop trainer 1 again and again, each time for some steps of trainer 0,
    until server i is killed because it writes what a stopped trainer has not
    received yet. In between it makes a step: if it hardly ran at all, its
    connections would break."""
    server, (other, stopped) = job.server[i], job.trainer
    for _ in range(500):  # a few are enough
        if server.code() is not None:
            break
        stopped.stop()
        enough = step_of(other) + 3
        other._until(lambda: server.code() is not None or
                     step_of(other) >= enough, None, "makes no step")
        stopped.go_on()
        made = step_of(stopped)
        stopped._until(lambda: server.code() is not None or
                       step_of(stopped) > made, None, "makes no step")
    server.end(code=-9)


@pytest.mark.parametrize("killed", SLOTS, ids=scene_word)
def test_a_server_is_killed_while_it_writes_what_it_sends(tmp_path, killed):
    """Trainers go on until that has happened: every step subtracts 0.25."""
    env = {**KEPT, "FLUID_LEASE": "600"}  # a stopped trainer is not lost
    with Cluster(tmp_path, OVERLAP, 2, 2, env=env) as job:
        for i in range(2):
            job.start_server(i, FLUID_FAILPOINT=killed.get(i))
        for i in range(2):
            job.start_trainer(i)
        for i in killed:
            stop_until_killed(job, i)
            job.start_server(i).says("going on at version")
        (tmp_path / "back").touch()
        job.finish()
        steps = sum(int(p.says(r"made (\d+) steps")[1]) for p in job.trainer)
    values = [v for held in results(tmp_path).values() for v in held.values()]
    assert sum(v.size for v in values) == 2000 * 2000
    assert {x for v in values for x in np.unique(v)} == {0.5 - 0.25 * steps}


def test_a_loop_of_exe_run_is_told_of_a_lost_step(tmp_path):
    """The trainer stops between its pushes to the two servers."""
    with Cluster(tmp_path, OVERLAP, 2, 2,
                 env={**KEPT, "FLUID_LEASE": "4"}) as job:
        for i in range(2):
            job.start_server(i)
        job.start_trainer(0)
        trainer = job.start_trainer(1, FLUID_FAILPOINT="step.push:3:stop")
        job.server[0].says("trainer 1 .* is lost: its lease ran out")
        trainer.go_on()
        trainer.says("the gradients of this step may not be in the model")
        (tmp_path / "back").touch()
        job.finish()


def launch(folder, servers, kill=()):
    """Launch returning_job.py; each server of `kill` is killed once, when the
    one before it is back. The digest of the model, and what was printed."""
    env = {**os.environ, **KEPT, "FLUID_STATE_DIR": str(folder / "state")}
    job = subprocess.Popen(
        ["paddle", "launch", "--server_num", str(servers), "--max_restarts",
         "2", returning_job.__file__, "120"], cwd=folder, env=env, text=True,
        stderr=subprocess.PIPE)
    seen = ""
    waits = ["trainer 1 is process"] + ["going on at version"] * len(kill)
    for at, wait in enumerate(waits):
        log = folder / "logs" / ("serverlog.%d" % kill[at - 1]) if at else None
        while wait not in (log.read_text() if at else seen):
            seen += "" if at else job.stderr.readline()
            time.sleep(0.01 if at else 0)
        if at < len(kill):
            until_trained(folder / "logs" / ("serverlog.%d" % kill[at]))
            pid = re.search(r"server %d at \S+ is process (\d+)" % kill[at],
                            seen).group(1)
            os.kill(int(pid), signal.SIGKILL)
    seen += job.communicate(timeout=120)[1]
    assert job.returncode == 0, seen
    assert not os.listdir(str(folder / "state"))
    return paddle("digest", folder / "model").split()[0], seen


def until_trained(log):
    while "the job trains" not in (log.read_text() if log.exists() else ""):
        time.sleep(0.01)


def paddle(*words):
    return subprocess.run(["paddle"] + [str(w) for w in words], check=True,
                          text=True, stdout=subprocess.PIPE).stdout


def test_the_launcher_brings_killed_servers_back(tmp_path):
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    for folder in calm, killed:
        folder.mkdir()
    want, _ = launch(calm, servers=1)
    got, seen = launch(killed, servers=2, kill=[0, 1])
    assert got == want  # whatever was killed, and however many servers
    for i in range(2):
        assert re.search(r"launch: server %d ended after .* signal 9 .*; it is "
                         r"started again in 1 s" % i, seen)
    assert paddle("ckpt", "diff", calm / "model", killed / "model") == \
        "the folders are equal\n"
    assert "is as it was saved" in paddle("ckpt", "verify", killed / "model")


LEAVES = """
import atexit, os, signal, sys, time
import numpy as np
import paddle.fluid as fluid

end = sys.argv[1]
if end == "unseen":
    os.close(7)  # through which the launcher sees that a trainer has completed
if end == "exit" and os.environ.get("PADDLE_TRAINER_ID") == "1":
    atexit.register(os.kill, os.getpid(), signal.SIGKILL)  # called last
x = fluid.layers.data("x", [4])
fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(x, 2)))
t = fluid.DistributeTranspiler()
me = int(os.environ.get("PADDLE_TRAINER_ID", 0))
t.transpile(me, pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"], trainers=2,
            sync_mode=False)
exe = fluid.Executor(fluid.CPUPlace())
if os.environ["TRAINING_ROLE"] == "PSERVER":
    here = os.environ["PADDLE_CURRENT_ENDPOINT"]
    program, startup = t.get_pserver_programs(here)
    exe.run(startup)
    exe.run(program)
    if end == "serve":
        raise ValueError("no disk")
    sys.exit()
try:
    exe.run(fluid.default_startup_program())
except fluid.core.EnforceNotMet:
    open("turned-away", "w").close()
    raise
while me == 0 and end == "unseen" and not os.path.exists("turned-away"):
    time.sleep(0.01)
exe.run(t.get_trainer_program(), feed={"x": np.ones((2, 4), "float32")})
exe.close()
if me == 1 and end in ("close", "unseen"):
    os.kill(os.getpid(), signal.SIGKILL)
if me == 1 and end == "raise":
    raise ValueError("no disk")
"""


def launch_leaves(folder, end, *flags, **env):
    """The launcher of such a job, and the log of trainer 1."""
    (folder / "leaves.py").write_text(LEAVES)
    done = subprocess.run(
        ["paddle", "launch", "--server_num", "1", *flags, "leaves.py", end],
        cwd=folder, env={**os.environ, **KEPT, **env}, text=True,
        stderr=subprocess.PIPE)
    return done, (folder / "logs" / "workerlog.1").read_text()


def test_a_kill_when_the_script_has_ended_costs_nothing(tmp_path):
    done, log = launch_leaves(tmp_path, "exit")
    assert done.returncode == 0, done.stderr
    assert "launch: trainer 1 was killed when it had completed and its script" \
        " had ended, so nothing is lost: signal 9 (Killed)\n" in done.stderr
    assert "it is started again" not in done.stderr


@pytest.mark.parametrize("point", ["end.over", "end.removed"])
def test_a_kill_of_a_server_whose_job_has_ended_costs_nothing(tmp_path, point):
    done, _ = launch_leaves(tmp_path, "well", FLUID_FAILPOINT=point + ":1")
    assert done.returncode == 0, done.stderr
    assert "launch: server 0 was killed when its job had ended, so nothing is " \
        "lost: signal 9 (Killed)\n" in done.stderr
    assert "it is started again" not in done.stderr


# What the script does after exe.close() would be lost, and nobody would know.
@pytest.mark.parametrize("end, code", [("close", 137), ("raise", 1)])
def test_a_trainer_that_fails_when_it_has_completed_is_named(tmp_path, end,
                                                             code):
    done, log = launch_leaves(tmp_path, end, "--max_restarts", "3")
    assert done.returncode == code, done.stderr
    assert "it is started again" not in done.stderr
    assert "launch: trainer 1 failed first: " in done.stderr
    assert "it had completed, so the parameters of the job are whole; but its" \
        " script may not\nhave run to its end: do by hand what the script " \
        "does after exe.close()" in done.stderr
    assert "the others:\n  2 ended well\n" in done.stderr


def test_a_server_that_fails_when_its_job_has_ended_is_named(tmp_path):
    done, _ = launch_leaves(tmp_path, "serve")
    assert done.returncode == 1, done.stderr
    assert "launch: server 0 failed first: exit code 1" in done.stderr
    assert "its job had ended, so the parameters are whole; but its script " \
        "may not have run\nto its end: do by hand what the script does " \
        "after fleet.run_server(),\nor after exe.run of the server's program\n" in done.stderr
    assert "exe.close()" not in done.stderr


def test_a_trainer_that_had_completed_is_turned_away(tmp_path):
    """It was killed before the launcher could see that it had completed."""
    done, log = launch_leaves(tmp_path, "unseen")
    assert re.search("trainer 1 ended after .* signal 9 .* it is started again",
                     done.stderr)
    assert re.search(r"^paddle: trainer 1 \(\S+\) has completed: its id", log,
                     re.M)
    assert "Traceback" not in log
    assert done.returncode == 137, done.stderr
    assert "launch: trainer 1 failed first: signal 9 (Killed)" in done.stderr
    assert "it had completed, so the parameters" in done.stderr


def launch_once(folder, env, enter=(), steps=1000):
    """Run a job whose level the launcher chooses; what server 0 has logged."""
    (folder / "state").mkdir(mode=0o700)
    done = subprocess.run(
        [*enter, "paddle", "launch", "--server_num", "1", "--max_restarts", "1",
         returning_job.__file__, str(steps)], cwd=folder, text=True, timeout=120,
        stderr=subprocess.PIPE, env={**os.environ, "FLUID_LINGER": "0.1",
                                     "FLUID_STATE_DIR": str(folder / "state"),
                                     **env})
    return done, (folder / "logs" / "serverlog.0").read_text()


def test_a_server_that_is_given_up_leaves_no_state(tmp_path):
    """Each of its processes is killed when it begins its third round."""
    done, log = launch_once(tmp_path, {"FLUID_FAILPOINT": "owner.begin:3"})
    assert done.returncode == 137, done.stderr
    assert "restart 1 of at most 1 in a minute" in done.stderr
    assert "going on at version 2" in log
    assert not os.listdir(tmp_path / "state")


@pytest.mark.skipif(os.geteuid() != 0 or subprocess.run(
    ["unshare", "-m", "true"], stderr=subprocess.DEVNULL).returncode != 0,
    reason="makes a small file system")
@pytest.mark.parametrize("level", ["", "process"])
def test_a_state_without_room_is_not_kept_unless_it_must_be(tmp_path, level):
    small = "mount -t tmpfs -o size=64k,mode=700 none state && exec \"$@\""
    done, log = launch_once(tmp_path, {"FLUID_DURABILITY": level}, steps=3,
                            enter=["unshare", "-m", "sh", "-c", small, "sh"])
    assert re.search(r"no directory has room|needs \d+ bytes", log), log
    assert ("runs at level memory" in log) == (not level)
    assert (done.returncode == 0) == (not level), done.stderr


LARGE = """
import os, shutil, sys
import numpy as np
import paddle.fluid as fluid

fluid.default_startup_program().random_seed = 7
x = fluid.layers.data("x", [200])
h = fluid.layers.fc(x, 200, param_attr="w", bias_attr=False)
loss = fluid.layers.mean(h)
fluid.optimizer.Momentum(0.1, 0.9).minimize(loss)
t = fluid.DistributeTranspiler()
me = int(os.environ.get("PADDLE_TRAINER_ID", 0))
t.transpile(me, pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"], trainers=2)
exe = fluid.Executor(fluid.CPUPlace())
if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
    here = os.environ["PADDLE_CURRENT_ENDPOINT"]
    program = t.get_pserver_program(here)
    exe.run(t.get_startup_program(here, program))
    for name in sorted(program.global_block().vars):
        value = fluid.global_scope().find_var(name)
        if name.startswith("w") and "GRAD" not in name and value:
            try:
                print(name, "was made of", np.array(value.get_tensor()).size)
            except Exception as error:
                print(error)
    if "GONE" in os.environ:
        shutil.rmtree(os.environ["FLUID_STATE_DIR"])
    exe.run(program)
    sys.exit()
exe.run(fluid.default_startup_program())
for i in range(8):
    exe.run(t.get_trainer_program(), feed={"x": np.full((2, 200), i, "float32")})
exe.close()
np.savez("out-%d.npz" % me,
         w=np.array(fluid.global_scope().find_var("w").get_tensor()))
"""


@pytest.fixture
def large(tmp_path):
    def job(name):
        (tmp_path / name).mkdir()
        return Cluster(tmp_path / name, LARGE, 2, 2, env=KEPT)
    return job


def test_a_server_that_is_back_makes_no_start_values(large):
    calm, killed = large("calm"), large("killed")
    want = play(calm, {})
    compare(play(killed, {0: "owner.live:3"}), want)
    made = re.compile(r"^w\S* was made of 20000$", re.M)
    assert len(made.findall(calm.server[0].text())) == 2  # with its velocity
    assert not made.findall(killed.server[0].text())
    assert len(made.findall(killed.server[1].text())) == 2


def test_a_job_that_was_killed_whole_goes_on_aloud(large):
    """Whoever starts all of it again is told that it does not begin anew."""
    with large("whole") as job:
        job.start(FLUID_LEASE="2", FLUID_FAILPOINT="round.version:3")
        job.server[0].end(code=-9)
        for process in job.server[1], *job.trainer:
            process.kill()  # server 1 may not have heard of version 3
        job.start(FLUID_LEASE="2", FLUID_REJOIN="300")
        for i in range(2):
            job.server[i].says("going on at version [23]")
            assert "goes on with the parameters" not in job.server[i].text()
            job.trainer[i].says(r"server 0 \(\S+\) goes on with the parameters "
                                "that an earlier process of it held; to begin "
                                "with start values, first end all servers by")
        job.finish()
    assert not os.listdir(os.path.join(job.folder, "state"))


def test_start_values_that_are_nowhere_are_missed(large):
    with large("gone") as job:
        job.start_server(0, FLUID_FAILPOINT="owner.live:3")
        job.start_server(1)
        for i in range(2):
            job.start_trainer(i)
        job.server[0].end(code=-9)
        job.start_server(0, GONE="1").end(code=1)
        job.server[0].says("which was removed since; start this server again")


def test_a_failed_job_does_not_wait_for_a_server_that_never_came(tmp_path):
    """No trainer comes in time either."""
    with Cluster(tmp_path, sync_job.__file__, 2, 2, argv=["adam", "split"],
                 env={**KEPT, "FLUID_START": "1",
                      "FLUID_REACH": "1000"}) as job:
        assert job.start_server(0).end(code=None) != 0
        assert "0 of 2 trainers came within 1 s" in job.server[0].text()
