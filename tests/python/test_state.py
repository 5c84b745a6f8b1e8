# SPDX-License-Identifier: Apache-2.0
"""What befalls the directory in which a server keeps its state: it is too
small, full, held by another process, or of another version."""
import os
import re
import struct
import subprocess

import pytest

import fault_job
from cluster import Cluster

MB = 1 << 20

# One layer of 4 MB. $HOLD: trainers wait for that file before their first step.
LARGE = """
import os, sys, time
import numpy as np
import paddle.fluid as fluid

fluid.default_startup_program().random_seed = 7
x = fluid.layers.data("x", [1000])
loss = fluid.layers.mean(fluid.layers.fc(x, 1000, param_attr="w"))
fluid.optimizer.SGD(0.1).minimize(loss)
t = fluid.DistributeTranspiler()
t.transpile(int(os.environ.get("PADDLE_TRAINER_ID", 0)), trainers=2,
            pservers=os.environ["PADDLE_PSERVER_ENDPOINTS"])
exe = fluid.Executor(fluid.CPUPlace())
if os.environ["PADDLE_TRAINING_ROLE"] == "PSERVER":
    here = os.environ["PADDLE_CURRENT_ENDPOINT"]
    program = t.get_pserver_program(here)
    exe.run(t.get_startup_program(here, program))
    exe.run(program)
    sys.exit()
exe.run(fluid.default_startup_program())
print("ready")
while not os.path.exists(os.environ["HOLD"]):
    time.sleep(0.01)
for i in range(4):
    exe.run(t.get_trainer_program(), feed={"x": np.full((2, 1000), i, "float32")})
    print("step", i)
exe.close()
"""

# Two tables by id, which get 10000 rows more with every step. $HOLD: the trainer
# waits for that file after its first step. $LOOK: trainer 1 waits for that file
# and only looks rows up.
TABLES = """
import os, sys, time
import numpy as np
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler \\
    import DistributeTranspilerConfig, fleet

fleet.init(role_maker.PaddleCloudRoleMaker())
ids = fluid.layers.data("ids", [1], dtype="int64", lod_level=1)
rows = [fluid.layers.embedding(ids, [1 << 40, 32], is_sparse=True,
                               is_distributed=True, param_attr=name)
        for name in ("one", "two")]
loss = fluid.layers.mean(fluid.layers.square(rows[0] + rows[1]))
test = fluid.default_main_program().clone(for_test=True)
strategy = DistributeTranspilerConfig()
strategy.sync_mode = sys.argv[1] == "sync"
fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit()
exe = fluid.Executor(fluid.CPUPlace())
if sys.argv[1] == "sync":
    fleet.init_worker()
exe.run(fleet.startup_program)

def run(program, first, n):
    some = np.arange(first, first + n).reshape(-1, 1)
    return exe.run(program, fetch_list=[loss.name], feed={
        "ids": fluid.create_lod_tensor(some, [[n]], fluid.CPUPlace())})[0]

def wait_for(name):
    while not os.path.exists(os.environ[name]):
        time.sleep(0.01)

if fleet.worker_index():
    wait_for("LOOK")
    print("looked up", run(test, 0, 50000).tobytes().hex())
else:
    for i in range(5):
        now = run(fleet.main_program, 10000 * i, 10000)
        if not i:
            run(test, 0, 1)  # when the push is acknowledged
        print("step", i, now.tobytes().hex())
        if not i:
            wait_for("HOLD")
    print("loss", run(test, 0, 50000).tobytes().hex())
fleet.stop_worker()
"""


class Small:
    """A file system in memory, with a size."""

    def __init__(self, folder):
        self.folder = folder

    def mount(self, size):
        self.folder.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=%d,mode=700" % size, "none",
             str(self.folder)], text=True, capture_output=True)
        if done.returncode:
            pytest.skip("no small file system can be mounted: %s"
                        % done.stderr.strip())
        return str(self.folder)

    def fill(self):
        """Take all that is left."""
        room = os.statvfs(self.folder)
        size, more = 0, room.f_bavail * room.f_frsize
        with open(self.folder / "filler", "wb") as f:
            while more >= room.f_frsize:  # a server may have taken some of it
                try:
                    os.posix_fallocate(f.fileno(), size, more)
                    size += more
                except OSError:
                    more //= 2

    def make_room(self):
        (self.folder / "filler").unlink()

    def states(self):
        return [name for name in os.listdir(self.folder) if name != "filler"]


@pytest.fixture
def small(tmp_path):
    made = Small(tmp_path / "small")
    yield made
    subprocess.run(["umount", "-l", str(made.folder)],
                   stderr=subprocess.DEVNULL)


def large(tmp_path, state, **env):
    return Cluster(tmp_path, LARGE, 1, 2, env={
        "FLUID_STATE_DIR": state, "FLUID_LINGER": "0.1", "FLUID_STALL": "1",
        "HOLD": str(tmp_path / "hold"), **env})


NEEDS = r"the state of server 0 needs (\d+) bytes; \S+ has room for (\d+); " \
    "name another directory with FLUID_STATE_DIR"


def test_a_state_that_must_be_kept_and_has_no_room_is_refused(tmp_path, small):
    with large(tmp_path, small.mount(8 * MB), FLUID_DURABILITY="process") as job:
        job.start_server(0).end(code=1)
        need, room = job.server[0].says(NEEDS).groups()
        assert int(need) > 12 * MB and int(room) == 8 * MB
        assert not small.states()


def test_a_state_without_room_is_left_out_by_default(tmp_path, small):
    (tmp_path / "hold").touch()
    with large(tmp_path, small.mount(8 * MB)) as job:
        job.start().finish()
        text = job.server[0].text()
        assert len(re.findall(" W| E|^W|^E", text, re.M)) == 1  # one warning
        job.server[0].says(NEEDS + "; this server runs at level memory: the "
                           "job ends if its process is killed")
        assert "durability: memory; what this server holds ends with" in text
        assert not small.states()


def test_a_file_system_that_lies_about_its_room_is_no_end(tmp_path, small):
    """The room is gone when the server takes it, though it was there."""
    (tmp_path / "hold").touch()
    state = small.mount(17 * MB)  # enough for the sum, not for the pieces
    with large(tmp_path, state) as job:
        job.start_server(0).says("durability: ")
        for i in range(2):
            job.start_trainer(i)
        job.finish()
        assert not small.states()


def test_a_push_waits_until_there_is_room_again(tmp_path, small):
    with large(tmp_path, small.mount(40 * MB)) as job:
        job.start()
        for trainer in job.trainer:
            trainer.says("ready")
        small.fill()
        (tmp_path / "hold").touch()
        said = r"waits for server 0 \(%s\): .*%s/\S+/stage: no room for \d+ " \
            r"bytes more; its file system has \d+ left, [0-9.]+ s" \
            % (job.endpoints[0], small.folder)
        for trainer in job.trainer:
            trainer.says(said)  # its first pull was answered
            assert "step" not in trainer.text()
        job.server[0].says("a push waits: .*/stage: no room for .*; pulls are "
                           "answered")
        why = subprocess.run(["paddle", "why", job.endpoints[0]], text=True,
                             stdout=subprocess.PIPE, check=True).stdout
        assert "version 0" in why and "durability process: " in why
        small.make_room()
        job.finish()
        for trainer in job.trainer:
            assert "step 3" in trainer.text()
        assert not small.states()


def growing(folder, mode, state, servers=1, **env):
    folder.mkdir()
    trainers = 1 if mode == "sync" else 2
    return Cluster(folder, TABLES, servers, trainers, argv=[mode], env={
        "FLUID_STATE_DIR": str(state), "FLUID_LINGER": "0.1",
        "FLUID_STALL": "1", "HOLD": str(folder / "hold"),
        "LOOK": str(folder / "look"), "FLUID_JOURNAL_DIR":
        str(folder / "journal"), **env})


@pytest.fixture(scope="module")
def calm_loss(tmp_path_factory):
    """The loss at the end of a job that has room."""
    made = {}

    def result(mode):
        if mode not in made:
            folder = tmp_path_factory.mktemp(mode)
            with growing(folder / "calm", mode, folder / "state") as job:
                for name in ("hold", "look"):
                    (folder / "calm" / name).touch()
                job.start().finish()
                made[mode] = job.trainer[0].says("^loss .*").group()
        return made[mode]

    return result


def has_to_grow(small):
    return r"%s/\S+/extent-\d+: no room for \d+ bytes more; its file system " \
        r'has \d+ left \(table "(one|two)" with \d+ rows has to grow\)' \
        % small.folder


def fill_and_go_on(job, small):
    """Rows of the first step are there; for more there is no room."""
    job.start()
    job.trainer[0].says("^step 0 ")
    small.fill()
    with open(job.env["HOLD"], "w"):
        pass
    what = "round" if "sync" in job.argv else "push"
    return "a %s waits: %s" % (what, has_to_grow(small))


# Mode, owners, level, and whether the server is killed while it waits.
GROWTHS = [
    ("sync", 1, "process", False), ("sync", 2, "host", True),
    ("async", 2, "process", True), ("async", 1, "host", False),
    ("sync", 2, "process", True), ("sync", 1, "host", False),
    ("async", 1, "process", False), ("async", 2, "host", True),
]
if "FLUID_KILL_MATRIX" not in os.environ:
    GROWTHS = GROWTHS[:4]


@pytest.mark.parametrize("mode, owners, level, killed", GROWTHS)
def test_a_table_that_cannot_grow_waits_for_room(
        tmp_path, small, calm_loss, mode, owners, level, killed):
    env = {"FLUID_OWNERS": owners, "FLUID_DURABILITY": level,
           "FLUID_JOURNAL_BYTES": "20000"}  # a new base is due, too
    state = small.mount(96 * MB)
    with growing(tmp_path / "full", mode, state, **env) as job:
        waits = fill_and_go_on(job, small)
        job.server[0].says(waits)
        job.trainer[0].says("waits for server 0 .*" + has_to_grow(small))
        if killed:
            job.server[0].kill()
            job.start_server(0).says("going on at version")
            job.server[0].says(waits)
        if mode == "async":
            (tmp_path / "full" / "look").touch()
            job.trainer[1].says("^looked up ")
        why = subprocess.run(["paddle", "why", job.endpoints[0]], text=True,
                             stdout=subprocess.PIPE, check=True).stdout
        assert "durability %s: " % level in why
        assert re.search("the server waits for room: " + has_to_grow(small),
                         why)
        assert "loss" not in job.trainer[0].text()
        small.make_room()
        job.finish()
        assert job.trainer[0].says("^loss .*").group() == calm_loss(mode)
        assert not small.states()


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_job_that_fails_does_not_wait_for_room(tmp_path, small, mode):
    state = small.mount(96 * MB)
    with growing(tmp_path / "full", mode, state, servers=2) as job:
        waits = fill_and_go_on(job, small)
        job.server[0].says(waits)
        job.server[1].terminate()
        job.server[0].end(code=1)
        job.server[1].end(code=None)
        assert "was ended by SIGTERM" in job.server[0].text()
        assert not small.states()


def kept(tmp_path, *words, **env):
    return Cluster(tmp_path, fault_job.__file__, 1, 1, argv=words,
                   env={"FLUID_LINGER": "0.1", **env})


def leave_state(job):
    """Kill a server in the middle of its job; the directory that it left."""
    job.start()
    job.trainer[0].says("step 2 ")
    job.server[0].kill()
    job.trainer[0].kill()
    base = job.env["FLUID_STATE_DIR"]
    name, = os.listdir(base)
    return os.path.join(base, name)


def test_a_state_of_another_layout_is_refused(tmp_path):
    with kept(tmp_path, "steps=100000") as job:
        path = leave_state(job)
        with open(os.path.join(path, "head"), "r+b") as f:
            f.seek(8)
            layout, = struct.unpack("I", f.read(4))
            f.seek(8)
            f.write(struct.pack("I", layout + 1))
        job.start_server(0).end(code=1)
        job.server[0].says(
            r"%s cannot be used: its layout is %d \(byte order \w+\), this "
            r"program has %d \(\w+\); remove it with `paddle state rm %s` if it "
            "is not needed" % (path, layout + 1, layout, path))
        subprocess.run(["paddle", "state", "rm", path], check=True)
        job.start_server(0).says("durability: process; the state is in")


def test_a_state_of_another_job_is_refused(tmp_path):
    with kept(tmp_path, "steps=100000") as job:
        path = leave_state(job)
        with open(os.path.join(path, "head"), "r+b") as f:
            f.seek(16)
            mine = f.read(32).decode()
            f.seek(16)
            f.write(b"0123456789abcdef" * 2)
        job.start_server(0).end(code=1)
        job.server[0].says(
            "%s cannot be used: it is of job %s, server 0; this is job %s, "
            "server 0; remove it with `paddle state rm %s`"
            % (path, "0123456789abcdef" * 2, mine, path))


@pytest.mark.parametrize("setting, value", [
    ("FLUID_ALLOW_NAN", "maybe"), ("FLUID_TLS_CERT", "/nowhere/cert.pem"),
    ("FLUID_PORT_HELD", "perhaps")])
def test_a_server_that_cannot_start_leaves_its_state(tmp_path, setting, value):
    """A wrong setting must not cost the parameters."""
    env = {"FLUID_DURABILITY": "process"}
    with large(tmp_path, str(tmp_path / "state"), **env) as job:
        job.start()
        for p in job.trainer:
            p.says("ready")
        job.server[0].kill()
        wrong = job.start_server(0, **{setting: value})
        wrong.end(code=1)
        assert setting[:9] in wrong.text()
        job.start_server(0).says("going on at version 0")
        (tmp_path / "hold").write_text("")
        job.finish()


def test_a_state_that_a_process_holds_is_not_used_by_another(tmp_path):
    with kept(tmp_path, "steps=100000") as job:
        first = job.start_server(0)
        first.says("durability: process")
        second = job.start_server(0, FLUID_START="3", FLUID_LINGER="30")
        second.end(code=1)
        second.says(r"/state/\S+ is held by process %d \(.*fault_job.py .*\) "
                    "for 3 s; end that process first" % first.pid)
        third = job.start_server(0)
        third.end(code=1)
        third.says(r"/state/\S+ is held by process %d \(.*\), which serves at "
                   "the address of this server; end that process first, or "
                   "give this one an address of its own" % first.pid)
        assert first.code() is None
        listed = subprocess.run(
            ["paddle", "state", "ls"], text=True, check=True,
            stdout=subprocess.PIPE, env={**os.environ, **job.env}).stdout
        assert str(first.pid) in listed
