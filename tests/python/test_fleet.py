# SPDX-License-Identifier: Apache-2.0
"""Fleet: roles, shares of files, programs of workers and servers."""
import os
import subprocess
import sys

import pytest

from cluster import LIMIT
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.base.fleet_base import Fleet
from paddle.fluid.incubate.fleet.base.role_maker import (
    PaddleCloudRoleMaker, Role, UserDefinedRoleMaker)
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler \
    import DistributedTranspiler

SERVERS = ["127.0.0.1:6174", "127.0.0.1:6175"]

SCRIPT = """
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler \\
    import fleet, DistributeTranspilerConfig
x = fluid.layers.data("x", [13])
loss = fluid.layers.mean(fluid.layers.fc(x, 1))
fleet.init(role_maker.PaddleCloudRoleMaker())
strategy = DistributeTranspilerConfig()
strategy.sync_mode = %s
strategy.wait_port = False
fleet.distributed_optimizer(fluid.optimizer.SGD(0.1), strategy).minimize(loss)
print(fleet.worker_num(), fleet.server_num(), fleet.is_server(),
      fleet.server_index() if fleet.is_server() else fleet.worker_index())
print(*(op.type for op in fleet.main_program.global_block().ops))
print(fleet.main_program is fluid.default_main_program())
"""


def run(sync_mode, **env):
    env = {**{k: v for k, v in os.environ.items()
              if not k.startswith("PADDLE_TRAIN")}, **env}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT % sync_mode], env=env, text=True,
        capture_output=True, timeout=LIMIT, check=True).stdout.splitlines()


def test_a_worker_has_the_trainers_program():
    who, ops, same = run(True, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID="1",
                         PADDLE_TRAINERS_NUM="2",
                         PADDLE_PSERVERS_IP_PORT_LIST=",".join(SERVERS))
    assert who == "2 2 False 1"
    assert ops.endswith("send_barrier recv recv fetch_barrier")
    assert same == "True"


def test_an_async_worker_does_not_meet_the_others():
    ops = run(False, TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID="0",
              PADDLE_TRAINERS_NUM="2",
              PADDLE_PSERVERS_IP_PORT_LIST=",".join(SERVERS))[1]
    assert "barrier" not in ops and ops.endswith("recv recv")


def test_a_server_has_the_servers_program():
    who, ops, same = run(True, TRAINING_ROLE="PSERVER", POD_IP="127.0.0.1",
                         PADDLE_PORT="6175", PADDLE_TRAINERS_NUM="2",
                         PADDLE_PSERVERS_IP_PORT_LIST=",".join(SERVERS))
    assert who == "2 2 True 1"
    assert ops == "listen_and_serv" and same == "False"


def test_arguments_make_a_role():
    role = UserDefinedRoleMaker(1, Role.SERVER, 3, SERVERS)
    assert role.is_server() and not role.is_worker()
    assert (role.server_index(), role.worker_num()) == (1, 3)
    assert role.get_pserver_endpoints() == SERVERS
    assert UserDefinedRoleMaker(0, Role.WORKER, 1, SERVERS).is_first_worker()


@pytest.mark.parametrize("args, error, sentence", [
    ((0, Role.WORKER, 1, "h:1"), TypeError, "server_endpoints is 'h:1'"),
    ((0, Role.WORKER, 1, []), ValueError, "one 'host:port' at least"),
    ((0, Role.WORKER, 1, ["h:1", "h:1"]), ValueError, "no server twice"),
    ((0, 7, 1, SERVERS), TypeError, "role is 7"),
    ((0, Role.WORKER, "1", SERVERS), TypeError, "worker_num is '1'"),
    ((0, Role.WORKER, 0, SERVERS), ValueError, "worker_num is 0"),
    ((2, Role.SERVER, 5, SERVERS), ValueError, "current_id is 2"),
])
def test_wrong_arguments_get_a_sentence(args, error, sentence):
    with pytest.raises(error, match=sentence.replace("[", r"\[")):
        UserDefinedRoleMaker(*args)


@pytest.mark.parametrize("n, workers, shares", [
    (5, 2, ["abc", "de"]), (4, 4, ["a", "b", "c", "d"]),
    (7, 3, ["abc", "de", "fg"]),
])
def test_files_are_dealt_in_runs(n, workers, shares):
    files = list("abcdefg"[:n])
    for me, share in enumerate(shares):
        fleet = Fleet()
        fleet.init(UserDefinedRoleMaker(me, Role.WORKER, workers, SERVERS))
        assert "".join(fleet.split_files(files)) == share


def test_fewer_files_than_workers_is_an_error():
    fleet = Fleet()
    fleet.init(UserDefinedRoleMaker(0, Role.WORKER, 3, SERVERS))
    with pytest.raises(ValueError, match="2 files for 3 workers"):
        fleet.split_files(["a", "b"])
    with pytest.raises(TypeError, match="expected a list"):
        fleet.split_files("ab")


ROLES = {
    "server": dict(TRAINING_ROLE="PSERVER", CURRENT_ENDPOINT=SERVERS[0]),
    "worker": dict(TRAINING_ROLE="TRAINER", PADDLE_TRAINER_ID="0"),
}


def say(role, words, inputs=4):
    """The last words on stderr of a process, in a job with one server."""
    job = dict(ROLES[role], PADDLE_TRAINERS_NUM="2",
               PADDLE_PSERVERS_IP_PORT_LIST=SERVERS[0])
    script = SCRIPT.replace("[13]", "[%d]" % inputs) % True
    p = subprocess.run(
        [sys.executable, "-c", script + "exe = fluid.Executor()\n" + words],
        env={**os.environ, **job}, text=True, capture_output=True,
        timeout=LIMIT)
    return (p.stderr.splitlines() or [""])[-1]


@pytest.mark.parametrize("role, call", [
    ("worker", "init_server()"), ("worker", "run_server()"),
    ("server", "init_worker()"), ("server", "stop_worker()"),
    ("server", "save_persistables(exe, 'x')"),
    ("server", "save_inference_model(exe, 'x', ['x'], [loss])"),
])
def test_calls_of_the_other_role_are_refused(role, call):
    other = "worker" if role == "server" else "server"
    assert say(role, "fleet." + call) == (
        "RuntimeError: fleet.%s is for a %s, this process is a %s"
        % (call.split("(")[0], other, role))


def test_a_job_without_servers_names_the_variables():
    env = {k: v for k, v in os.environ.items() if "PADDLE_PSERVER" not in k}
    p = subprocess.run([sys.executable, "-c", SCRIPT % True], env=env,
                       text=True, capture_output=True, timeout=LIMIT)
    assert "fleet: no servers are named" in p.stderr
    assert "PADDLE_PSERVERS_IP_PORT_LIST=host:port" in p.stderr


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Of 4 inputs, by one process alone."""
    path = tmp_path_factory.mktemp("model")
    subprocess.run(
        [sys.executable, "-c", """
import sys
import paddle.fluid as fluid
x = fluid.layers.data("x", [4])
loss = fluid.layers.mean(fluid.layers.fc(x, 1))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor()
exe.run(fluid.default_startup_program())
fluid.io.save_persistables(exe, sys.argv[1])""", str(path)],
        check=True, timeout=LIMIT)
    return path


def test_a_server_starts_from_a_model(model):
    assert say("server", "fleet.init_server(%r)" % str(model)) == ""


def test_a_model_of_another_width_is_refused(model):
    assert say("server", "fleet.init_server(%r)" % str(model), 3).endswith(
        'fc_0.w_0 has the shape [4,1], but "fc_0.w_0" has 3 elements: the file '
        'is of another model')


def test_what_a_model_lacks_is_told(model, tmp_path):
    """A folder without a manifest, as the original writes it."""
    for name in os.listdir(model):
        if name not in ("fc_0.w_0", "__manifest__"):
            (tmp_path / name).symlink_to(model / name)
    assert say("server", "fleet.init_server(%r)" % str(tmp_path)).endswith(
        'has no "fc_0.w_0"; variables that it lacks start with their initial '
        'values')


def test_a_folder_that_is_not_there_is_named():
    assert say("server", "fleet.init_server('/no/model')") == (
        "ValueError: fleet.init_server: there is no folder '/no/model'")


def test_all_workers_may_save_at_once(tmp_path):
    """And a folder that cannot be made is named, not what is in it."""
    (tmp_path / "job.py").write_text(SCRIPT.replace(
        "strategy.wait_port = False\n", "") % True + """
exe = fluid.Executor()
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
else:
    fleet.init_worker()
    exe.run(fleet.startup_program)
    for i in range(20):
        fleet.save_persistables(exe, "model")
    try:
        fleet.save_persistables(exe, "job.py/model")
    except Exception as e:
        print(e)
    fleet.stop_worker()
""")
    p = subprocess.run(
        ["paddle", "launch", "--server_num", "1", "--python", sys.executable,
         "job.py"], cwd=tmp_path, text=True, capture_output=True,
        timeout=LIMIT, env=dict(os.environ, FLUID_LINGER="0.2"))
    assert p.returncode == 0, p.stderr
    assert "cannot make the directory: Not a directory" in p.stderr
    assert sorted(os.listdir(tmp_path / "model")) == [
        "__manifest__", "fc_0.b_0", "fc_0.w_0", "learning_rate_0"]


def test_fleet_wants_to_be_initialised():
    with pytest.raises(RuntimeError, match="fleet.init"):
        Fleet().worker_num()
    with pytest.raises(TypeError, match="expected a RoleMakerBase"):
        Fleet().init("TRAINER")
    fresh = DistributedTranspiler()
    for call in fresh.init_server, fresh.init_worker, fresh.stop_worker:
        with pytest.raises(RuntimeError, match="%s: call" % call.__name__):
            call()


def test_a_strategy_is_checked_before_the_program_changes():
    fleet = DistributedTranspiler()
    fleet.init(UserDefinedRoleMaker(0, Role.WORKER, 1, SERVERS))
    with pytest.raises(TypeError, match="strategy is 'sync'"):
        fleet.distributed_optimizer(None, "sync")
    with pytest.raises(TypeError, match="optimizer is 0.1, expected an "):
        fleet.distributed_optimizer(0.1)


def test_the_environment_is_read_once(monkeypatch):
    monkeypatch.setenv("TRAINING_ROLE", "TRAINER")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("PADDLE_PSERVERS_IP_PORT_LIST", ",".join(SERVERS))
    role = PaddleCloudRoleMaker()
    role.generate_role()
    monkeypatch.setenv("PADDLE_TRAINER_ID", "0")
    role.generate_role()
    assert role.worker_index() == 1 and role.server_num() == 2
    assert role_maker.Role.SERVER == 2


def test_collective_variables_name_no_servers():
    with pytest.raises(subprocess.CalledProcessError) as error:
        run(True, PADDLE_TRAINER_IPS="127.0.0.1,127.0.0.2",
            PADDLE_TRAINER_ID="0")
    assert "ValueError: fleet: no servers are named" in error.value.stderr
    assert "incubate.fleet.collective" in error.value.stderr
