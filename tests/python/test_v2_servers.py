# SPDX-License-Identifier: Apache-2.0
"""`paddle pserver` and trainers of paddle.v2, as real processes."""
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from cluster import BUILD, FOREIGN, Failed, Process, hold_port
from test_state import small  # a fixture

HERE = os.path.dirname(os.path.abspath(__file__))
PADDLE = os.path.join(BUILD, "bin", "paddle")
SCRIPT = os.path.join(HERE, "v2_job.py")


def hold_ports(n, hosts):
    """n free ports in a row on each host, held so that nobody gets them."""
    for _ in range(100):
        held = []
        try:
            port = 0
            for i in range(n):
                for host in hosts:
                    held.append(hold_port(host, port and port + i))
                    port = port or held[0].getsockname()[1]
            return port, held
        except OSError:
            for s in held:
                s.close()
    raise Failed("no %d free ports in a row" % n)


class Job:
    """Servers on 127.0.0.1, 127.0.0.2 ..., and trainers; see v2_job.py."""

    def __init__(self, folder, servers=1, trainers=1, ports=1, sparse=1):
        self.folder, self.servers = str(folder), servers
        self.trainers, self.ports, self.sparse = trainers, ports, sparse
        self.port, self._held = hold_ports(
            ports + sparse, ["127.0.0.%d" % (i + 1) for i in range(servers)])
        self.started, self.env = [], {}

    def _run(self, name, argv, **more):
        env = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
        env.update({k: str(v) for k, v in {
            "PYTHONPATH": os.path.join(BUILD, "python"),
            "PYTHONDONTWRITEBYTECODE": "1", "FLUID_REJOIN": "0",
            "FLUID_PORT_HELD": "1",
            "FLUID_STATE_DIR": os.path.join(self.folder, "state"),
            **self.env, **more}.items()})
        again = sum(p.name.split("-")[0] == name for p in self.started)
        process = Process("%s-%d" % (name, again) if again else name, argv,
                          self.folder, env)
        self.started.append(process)
        return process

    def server(self, i=0, *flags, trainers=None, **env):
        return self._run(
            "server%d" % i,
            [PADDLE, "pserver", "--port=%d" % self.port,
             "--ports_num", str(self.ports),
             "--ports-num-for-sparse=%d" % self.sparse,
             "--num_gradient_servers=%d" % (trainers or self.trainers),
             *flags], PADDLE_CURRENT_IP="127.0.0.%d" % (i + 1), **env)

    def trainer(self, i=0, name=None, trainers=None, argv=None, **asked):
        hosts = ",".join("127.0.0.%d" % (k + 1) for k in range(self.servers))
        return self._run(
            name or "trainer%d" % i,
            argv or [sys.executable, SCRIPT, json.dumps(asked)],
            PADDLE_INIT_PORT=self.port, PADDLE_INIT_PORTS_NUM=self.ports,
            PADDLE_INIT_PORTS_NUM_FOR_SPARSE=self.sparse,
            PADDLE_INIT_TRAINER_ID=i, PADDLE_INIT_PSERVERS=hosts,
            PADDLE_INIT_NUM_GRADIENT_SERVERS=trainers or self.trainers)

    def start(self, **asked):
        """All servers and trainers."""
        servers = [self.server(i) for i in range(self.servers)]
        trainers = [self.trainer(i, **asked) for i in range(self.trainers)]
        return servers, trainers

    def run(self, **asked):
        """The costs of each trainer; all processes end well."""
        servers, trainers = self.start(**asked)
        for process in trainers + servers:
            process.end()
        return [costs(t) for t in trainers]

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for p in self.started:
            if kind is not None:
                print("--- %s ---\n%s" % (p.name, p.text()))
            p.clear()
        for s in self._held:
            s.close()


def costs(process):
    return [float(x) for x in re.findall(r"^cost (\S+)$", process.text(),
                                         re.M)]


def alone(folder, **asked):
    """The costs of one process on whole batches."""
    with Job(folder) as job:
        process = job._run("alone", [
            sys.executable, SCRIPT,
            json.dumps({"local": True, **asked})])
        process.end()
        return costs(process)


def mean(lists):
    return [sum(x) / len(x) for x in zip(*lists)]


def near(a, b, limit=1e-5):
    assert len(a) == len(b) > 0
    assert max(abs(x - y) for x, y in zip(a, b)) < limit, (a, b)


@pytest.mark.parametrize("servers, ports, sparse", [
    (1, 1, 1), (2, 2, 2), (2, 1, 0)])
def test_servers_train_as_one_process_does(tmp_path, servers, ports, sparse):
    asked = {"hidden": 900, "optimizer": "AdaGrad"}
    want = alone(tmp_path, **asked)
    with Job(tmp_path, servers, 2, ports, sparse) as job:
        near(mean(job.run(**asked, out="tar")), want)
    with open(tmp_path / "tar0", "rb") as one, \
            open(tmp_path / "tar1", "rb") as two:
        assert one.read() == two.read()


@pytest.mark.parametrize("optimizer, args", [
    ("Momentum", {"momentum": 0.5,
                  "gradient_clipping_threshold": 0.2}),
    ("Adam", {}), ("Adamax", {}), ("RMSProp", {}), ("DecayedAdaGrad", {}),
    ("AdaDelta", {"learning_rate": 1.0})])
def test_every_optimizer_adds_gradients_up(tmp_path, optimizer, args):
    asked = {"optimizer": optimizer, "args": args, "sparse": False}
    want = alone(tmp_path, **asked)
    with Job(tmp_path, 1, 2) as job:
        near(mean(job.run(**asked)), want)


@pytest.mark.parametrize("schedule, numbers", [
    ("poly", {"a": 0.05, "b": 1.0}), ("discexp", {"a": 0.5, "b": 50}),
    ("pass_manual", {"args": "0:1.0,1:0.1"})])
def test_schedules_count_the_samples_of_all_trainers(tmp_path, schedule,
                                                     numbers):
    asked = {"args": {"momentum": 0.5, "learning_rate_schedule": schedule,
                      **{"learning_rate_%s" % (k if k == "args" else
                                               "decay_" + k): v
                         for k, v in numbers.items()}}, "sparse": False}
    want = alone(tmp_path, **asked)
    with Job(tmp_path, 2, 2) as job:
        near(mean(job.run(**asked)), want)


def test_asynchronous_trainers_learn(tmp_path):
    asked = {"args": {"is_async": True, "learning_rate": 0.01}, "passes": 20}
    with Job(tmp_path, 2, 2) as job:
        costs_of = job.run(**asked)
        # Who comes first begins with parameters that have learnt nothing.
        began = max(sum(each[:8]) for each in costs_of)
        for each in costs_of:
            assert sum(each[-8:]) < 0.9 * began
        assert "asynchronous" in job.started[0].text()


def test_a_trainer_with_less_data_leaves_earlier(tmp_path):
    with Job(tmp_path, 1, 2) as job:
        one, two = job.run(extra=2)
        assert (len(one), len(two)) == (8, 4)


def test_sparse_rows_are_fetched_for_a_test(tmp_path):
    with Job(tmp_path, 1, 1) as job:
        job.run(test=True)
        remote = re.search(r"test (\S+)", job.started[1].text())[1]
    with Job(tmp_path) as job:
        p = job._run("alone", [sys.executable, SCRIPT,
                               json.dumps({"local": True, "test": True})])
        p.end()
        local = re.search(r"test (\S+)", p.text())[1]
    assert abs(float(remote) - float(local)) < 1e-5


def test_a_kept_server_takes_one_job_after_the_other(tmp_path):
    with Job(tmp_path, 1, 2) as job:
        job.env["FLUID_LINGER"] = 300  # nobody waits for it
        server = job.server(0, "--keep")
        trainers = [job.trainer(i, trains=2) for i in range(2)]
        for t in trainers:
            t.end()
        assert len(costs(trainers[0])) == 16
        again = [job.trainer(i, "again%d" % i) for i in range(2)]
        for t in again:
            t.end()
        assert server.code() is None
        server.terminate()
        server.end(0)


def test_averages_have_the_rows_of_other_trainers(tmp_path):
    from paddle.v2.parameters import Parameters
    asked = {"average": 0.5, "out": "alone"}
    alone(tmp_path, **asked)
    with Job(tmp_path, 1, 2) as job:
        job.run(**{**asked, "out": "tar"})
    want, *got = [Parameters.from_tar(io.BytesIO(
        (tmp_path / name).read_bytes())) for name in ("alone0", "tar0",
                                                      "tar1")]
    for parameters in got:
        for name in want.keys():
            assert abs(parameters[name] - want[name]).max() < 1e-5, name


def test_a_second_program_is_refused_by_name(tmp_path):
    with Job(tmp_path, 1, 2) as job:
        job.server()
        first = job.trainer(0)
        job.started[0].says("has brought the program")
        other = job.trainer(1, hidden=9)
        other.end(1)
        text = other.text()
        assert re.search(r"server 1 \(127.0.0.1:%d\): this server runs the "
                         r"job that \S+:%d \(127.0.0.1:\d+\) brought; what "
                         r"differs: " % (job.port + 1, first.pid), text)
        assert "[12,9] here, " in text and "[12,8] there" in text
        other = job.trainer(1, "faster", args={"learning_rate": 0.03})
        other.end(1)
        assert re.search(r"brought; what differs: what servers do differs "
                         r"\(the optimiser or its settings\)", other.text())
        job.trainer(1, "right").end()
        first.end()


@pytest.mark.parametrize("others_may_write", [False, True])
def test_a_job_that_cannot_begin_leaves_nothing(tmp_path, small,
                                                others_may_write):
    """The machines are there when the first base of the journal is written,
    for which there is no room; or the journal is refused before the state is
    made."""
    journal = small.mount(16 << 10)
    if others_may_write:
        small.folder.chmod(0o777)
    with Job(tmp_path, sparse=0) as job:
        job.env.update(FLUID_DURABILITY="host", FLUID_JOURNAL_DIR=journal)
        job.server().says("listening")
        for name in "first", "second":
            trainer = job.trainer(name=name)
            trainer.end(code=1)
            assert journal in trainer.text()
        why = subprocess.run(["paddle", "why", "127.0.0.1:%d" % job.port],
                             text=True, stdout=subprocess.PIPE, check=True)
        assert "waits for trainer 0 of 1, which brings the program" in \
            why.stdout
        assert not os.listdir(tmp_path / "state")
        assert not os.listdir(journal)


def test_another_number_of_trainers_is_named_on_both_sides(tmp_path):
    with Job(tmp_path, 1, 1) as job:
        server = job.server(trainers=2)
        trainer = job.trainer()
        trainer.end(1)
        words = "this server was started for 2 trainers " \
            r"\(--num_gradient_servers=2\), and trainer 0 says 1 "
        assert re.search(words, trainer.text())
        server.says(r"the program of \S+ \(127.0.0.1:\d+\) is refused: .*"
                    + words)
        server.terminate()
        server.end(0)


def test_a_trainer_waits_for_trainer_0_and_says_so(tmp_path):
    with Job(tmp_path, 1, 2) as job:
        job.env["FLUID_STALL"] = "0.5"
        server = job.server()
        late = job.trainer(1)
        late.says(r"waits for server 1 \(127.0.0.1:%d\): trainer 0 brings "
                  r"the program" % (job.port + 1))
        job.trainer(0).end()
        late.end()
        server.end()


def test_a_launched_server_that_is_stopped_says_one_sentence(tmp_path):
    """A script is its own server under `paddle launch`. It has no part in the
    end of the server, so that there is no traceback."""
    with Job(tmp_path, 1, 1, sparse=0) as job:
        address = "127.0.0.1:%d" % job.port
        server = job._run("server0", [
            sys.executable, "-c", "import paddle.v2 as p; p.init()"],
            FLUID_LAUNCHED=1, TRAINING_ROLE="PSERVER", POD_IP="127.0.0.1",
            PADDLE_PORT=job.port, PADDLE_TRAINERS_NUM=1,
            PADDLE_PSERVERS_IP_PORT_LIST=address)
        trainer = job.trainer(fail=True)
        trainer.end(1)
        server.end(75)  # by which the launcher knows that it is not the cause
        assert re.search("^paddle: the job has failed: .*ValueError",
                         server.text(), re.M)
        assert "Traceback" not in server.text()


@pytest.mark.parametrize("launched, code", [(0, 1), (1, 75)])
def test_a_failed_trainer_ends_the_servers_job_with_its_reason(
        tmp_path, launched, code):
    with Job(tmp_path, 1, 1) as job:
        server = job.server(FLUID_LAUNCHED=launched)
        trainer = job.trainer(fail=True)
        trainer.end(1)
        server.end(code)
        assert re.search("paddle: pserver: the job has failed: .*ValueError: "
                         "the handler has had enough", server.text())


def test_a_server_that_gets_sigterm_says_so_by_its_code(tmp_path):
    with Job(tmp_path, 1, 2) as job:
        server = job.server()
        job.trainer(0)
        server.says("has brought the program")
        server.terminate()
        server.end(128 + signal.SIGTERM)


WRONG = {"use_gpu": "True", "trainer_count": 3, "port": 9, "ports_num": 4,
         "ports_num_for_sparse": 5, "num_gradient_servers": 7,
         "trainer_id": 6, "pservers": "127.0.0.99"}
IDLE = ["--comment=of a test", "--async_lagged_ratio_default", "1.5",
        "--async-lagged-ratio-min=1.0", "--small_messages=false",
        "--check_sparse_distribution_in_pserver=false",
        "--loadsave_parameters_in_pserver=false", "--log_period_server=500",
        "--sock_listen_queue_size=1024", "--rdma_tcp=tcp"]


@pytest.mark.parametrize("by", ["environment", "arguments"])
def test_every_setting_of_both_tables(tmp_path, by):
    """Flags of `paddle pserver`, and settings of paddle.init: by variables
    alone, or by arguments where every variable is wrong."""
    want = alone(tmp_path)
    with Job(tmp_path, 1, 2, ports=2, sparse=1) as job:
        server = job.server(0, *IDLE)
        trainers = []
        for i in range(2):
            right = {"use_gpu": False, "trainer_count": 2, "port": job.port,
                     "ports_num": 2, "ports_num_for_sparse": 1,
                     "num_gradient_servers": 2, "trainer_id": i,
                     "pservers": "127.0.0.1"}
            env, init = (right, {}) if by == "environment" \
                else (WRONG, right)
            trainers.append(job._run(
                "trainer%d" % i, [sys.executable, SCRIPT,
                                  json.dumps({"init": init})],
                **{"PADDLE_INIT_" + k.upper(): v for k, v in env.items()}))
        for process in [*trainers, server]:
            process.end()
        near(mean([costs(t) for t in trainers]), want)


def test_logs_have_the_names_of_the_original(tmp_path):
    with Job(tmp_path, 1, 1) as job:
        job.env["PADDLE_LOG_DIR"] = str(tmp_path / "log")
        job.run()
    assert "has brought the program" in \
        (tmp_path / "log" / "paddle_pserver2.INFO").read_text()
    assert re.search(r"Pass 1, Batch 0, Cost \d\.\d+, "
                     r"classification_error_evaluator=0\.\d+",
                     (tmp_path / "log" / "paddle_trainer.INFO").read_text())


def test_a_server_listens_on_the_devices_of_nics(tmp_path):
    with Job(tmp_path, 1, 1) as job:
        lost = job.server(0, "--nics=eth77")
        lost.end(1)
        assert re.search(r"^paddle: pserver: there is no network device "
                         r"eth77; this host has (\w+, )*lo\b", lost.text(),
                         re.M)
        server = job.server(1, "--nics", "lo")
        server.says(r"listening on 127\.0\.0\.1:%d$" % job.port)
        job.trainer().end()
        server.end()


def test_a_taken_port_ends_all_servers_of_the_process(tmp_path):
    with Job(tmp_path, 1, 1) as job:
        taker = job._held[1]
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)
        taker.listen()
        server = job.server()
        server.end(1)
        assert "port %d on 127.0.0.1 is taken" % (job.port + 1) in \
            server.text()


def test_only_the_rows_of_a_batch_travel():
    import paddle.v2 as paddle
    from paddle.fluid import _fluid
    word = paddle.layer.data(name="rows_word",
                             type=paddle.data_type.integer_value(9000))
    table = paddle.attr.Param(name="rows_table", sparse_update=True)
    cost = paddle.layer.sum_cost(input=paddle.layer.fc(
        input=paddle.layer.embedding(input=word, size=4, param_attr=table),
        size=1))
    job = paddle.trainer.SGD(cost, paddle.parameters.create(cost),
                             paddle.optimizer.AdaGrad(),
                             is_local=False)._job
    cut = _fluid.transpile(job._main, job._start, "a:1,a:2,a:3", trainers=2,
                           sum_gradients=True, dense_servers=1)
    ops = cut.trainer().global_block().ops
    lookup, = [o for o in ops if o.type == "distributed_lookup_table"]
    assert lookup.attr("endpoints") == ["a:2", "a:3"]
    split, = [o for o in ops if o.type == "split_selected_rows"]
    assert split.input("X") == ["rows_table@GRAD"]
    got = {n for o in ops if o.type == "recv" for n in o.output("Out")}
    assert got and not any(n.startswith("rows_table") for n in got)
    for server in "a:2", "a:3":
        program, _ = cut.server(server)
        names = {o.type for i in range(program.num_blocks)
                 for o in program.block(i).ops}
        assert "sum" in names and "scale" not in names


def test_servers_in_go_are_refused():
    import paddle.v2 as paddle
    x = paddle.layer.data(name="go", type=paddle.data_type.dense_vector(2))
    cost = paddle.layer.sum_cost(input=paddle.layer.fc(input=x, size=1))
    with pytest.raises(NotImplementedError, match="pserver_spec='a:1'.*paddle "
                       "pserver"):
        paddle.trainer.SGD(cost, paddle.parameters.create(cost),
                           paddle.optimizer.Adam(), is_local=False,
                           pserver_spec="a:1")
