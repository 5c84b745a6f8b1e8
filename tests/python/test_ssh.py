# SPDX-License-Identifier: Apache-2.0
"""paddle launch --hosts: jobs on hosts of their own, started by ssh."""
import os
import re
import shutil
import signal
import sys
import time

import pytest

import fault_job
import sync_job
from cluster import BUILD, FOREIGN, LIMIT, ROOT, Process
from sshd import LACKING, SshHosts
from test_sync import QUICK, alone, load, same_bits

pytestmark = pytest.mark.skipif(
    bool(LACKING), reason="needs %s: scripts/deps cluster" % ", ".join(LACKING))
PADDLE = os.path.join(BUILD, "bin", "paddle")


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Hosts 0, 1 and 2 answer ssh; 3 is where users sit."""
    with SshHosts(tmp_path_factory.mktemp("cluster"), 4) as made:
        yield made


@pytest.fixture
def workspace(hosts):
    """A folder of the same name on hosts 0, 1 and 2, empty."""
    for i in range(3):
        shutil.rmtree(hosts.home(i) / "work", ignore_errors=True)
        (hosts.home(i) / "work").mkdir()
    return "/home/work"


def parent(pid):
    try:
        with open("/proc/%s/stat" % pid) as f:
            return int(f.read().rpartition(")")[2].split()[1])
    except OSError:
        return None


class Launch:
    """`paddle launch` on host 3. What it says is in a log."""

    def __init__(self, hosts, folder, words, **env):
        env = {k: v for k, v in {**os.environ, **env}.items()
               if not FOREIGN.match(k) or k in env}
        self.hosts = hosts
        where = [] if "--hostfile" in words else [
            "--hosts", ",".join(hosts.address(i) for i in range(3))]
        self.process = Process("launch", [
            *hosts.start_words(3), PADDLE, "launch", "--ssh",
            "ssh -F " + hosts.config, *where, *words], str(folder), env)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.process.clear()
        print(self.process.text())  # pytest shows it on failure

    def end(self, code=0, but=()):
        self.process.end(code)
        self.alone(but=but)
        return self.process.text()

    def interrupt(self):
        """As Ctrl-C."""
        self.signal(signal.SIGINT)

    def signal(self, number):
        """To the launcher, which is process 1 of its host."""
        child, = (int(pid) for pid in os.listdir("/proc")
                  if pid.isdigit() and parent(pid) == self.process.pid)
        os.kill(child, number)

    def shown(self, row):
        """Wait until a view of all processes has such a row."""
        limit = time.monotonic() + LIMIT
        while not re.search(row, self.process.text(), re.M):
            assert time.monotonic() < limit, row
            self.signal(signal.SIGUSR1)
            time.sleep(0.2)

    def alone(self, but=()):
        """Wait until no host has a process of the job."""
        limit = time.monotonic() + LIMIT
        usual = {"unshare", "sshd", *but}
        while (left := [(i, name) for i in range(3)
                        for name in self.hosts.running(i)
                        if name not in usual]):
            assert time.monotonic() < limit, left
            time.sleep(0.05)


def run(hosts, folder, words, code=0, but=(), **env):
    with Launch(hosts, folder, words, **env) as job:
        return job.end(code, but)


def shell(command):
    return ["sh", "-c", command]


def test_every_process_knows_its_place(hosts, workspace, tmp_path):
    said = run(hosts, tmp_path, [
        "--job_workspace", workspace, "--server_num", "1", "--worker_num",
        "2", *shell("pwd; hostname; %s env" % PADDLE)])
    assert "6 trainers and 3 servers finished" in said
    for i in range(6):
        text = (tmp_path / "logs" / ("workerlog.%d" % i)).read_text()
        assert text.splitlines()[:2] == [workspace, "host%d" % (i // 2)]
        assert re.search(r"trainer_id +%d " % i, text)
        assert re.search(r"trainers +6 ", text)
        for k in range(3):
            assert hosts.address(k) + ":6170" in text
    for i in range(3):
        text = (tmp_path / "logs" / ("serverlog.%d" % i)).read_text()
        assert re.search(r"endpoint +%s:6170 " % hosts.address(i), text)
    assert "[trainer 5] host2\n" in said and "[server 1] host1\n" in said


@pytest.mark.parametrize("more", [[], ["--insecure"]], ids=["tls", "plain"])
def test_a_job_of_two_hosts_gives_the_bits_of_one_machine(hosts, workspace,
                                                          tmp_path, more):
    local = alone(tmp_path, "adam")
    run(hosts, tmp_path, [
        *more, "--hosts", "10.77.0.1,10.77.0.2", "--job_workspace", workspace,
        "--server_num", "1", "--worker_num", "1", "--python", sys.executable,
        sync_job.__file__, "adam", "same"],
        PYTHONPATH=os.path.join(BUILD, "python"), **QUICK)
    for i in range(2):
        same_bits(load(hosts.home(i) / "work", i), local)
    for name in "serverlog.0", "serverlog.1":
        log = (tmp_path / "logs" / name).read_text()
        assert ("plain text" in log) == ("--insecure" in more)


def test_ranks_of_three_hosts_share_a_key(hosts, workspace, tmp_path):
    said = run(hosts, tmp_path, [
        "--job_workspace", workspace, "--mode", "collective",
        "--worker_num", "1", *shell("sha256sum <&$FLUID_JOB_KEY_FD; "
                                    "env | grep KEY")])
    keys = set(re.findall(r"\[rank \d\] ([0-9a-f]{64}) ", said))
    assert len(keys) == 1 and said.count("FLUID_JOB_KEY_FD=3") == 3


def test_a_package_becomes_a_workspace_with_the_documented_files(
        hosts, tmp_path):
    package = tmp_path / "package"
    (package / "data").mkdir(parents=True)
    (package / "data" / "words").write_text("hello\n")
    (package / "train.py").write_text(
        "import os\n"
        "print(open('data/words').read().strip(), os.environ['MORE'])\n")
    said = run(hosts, tmp_path, [
        "--job_dispatch_package", "package", "--job_root", "/home/jobs",
        "--export", "MORE", "--server_num", "1", "--worker_num", "2",
        "train.py"], MORE="to all")
    assert "6 trainers and 3 servers finished" in said
    for i in range(3):
        job, = (hosts.home(i) / "jobs").iterdir()
        assert re.fullmatch(r"JOB\d{14}\.[0-9a-f]{8}", job.name)
        assert (job / "nodefile").read_text() == str(i)
        for name in ("train.log", "paddle_trainer.INFO", "server.log",
                     "paddle_pserver2.INFO", "train.1.log",
                     "paddle_trainer.1.INFO"):
            assert (job / "log" / name).read_text() == "hello to all\n", name


def test_ports_that_are_taken_are_passed_over(hosts, workspace, tmp_path):
    with Process("taker", [
            *hosts.enter(1), "python3", "-c",
            "import socket, time\n"
            "s = socket.socket()\n"
            "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
            "s.bind(('', 6170))\n"
            "s.listen()\n"
            "print('taken', flush=True)\n"
            "time.sleep(%d)" % LIMIT],
            str(tmp_path), os.environ) as taker:
        taker.says("taken")
        said = run(hosts, tmp_path, [
            "--job_workspace", workspace, "--server_num", "1", "--worker_num",
            "1", *shell("echo $PADDLE_PSERVERS_IP_PORT_LIST")], but=["python3"])
        assert "%s:6170,%s:6171,%s:6170" % tuple(
            hosts.address(i) for i in range(3)) in said
        said = run(hosts, tmp_path, [
            "--job_workspace", workspace, "--server_num", "2", "--worker_num",
            "1", "--start_port", "6171",
            *shell("echo $PADDLE_PSERVERS_IP_PORT_LIST")], but=["python3"])
        assert ",".join("%s:6171,%s:6172" % (hosts.address(i),
                                             hosts.address(i))
                        for i in range(3)) in said
        said = run(hosts, tmp_path, [
            "--job_workspace", workspace, "--start_port", "6170", *shell("")],
            code=1, but=["python3"])
    assert "host %s cannot be used: port 6170 on %s is taken by " \
        % (hosts.address(1), hosts.address(1)) in said
    assert "1 of 3 hosts cannot be used; nothing was started" in said


STUBBORN = "trap '' INT TERM; echo up; while :; do sleep 1; done"


def within(seconds, turn, folder):
    """One of three turns takes no longer: a busy machine delays some of them.
    turn(folder) returns its seconds."""
    took = []
    for i in range(3):
        (folder / str(i)).mkdir()
        took.append(turn(folder / str(i)))
        if took[-1] <= seconds:
            return
    assert min(took) <= seconds


@pytest.mark.parametrize("command", [STUBBORN, "echo up; exec sleep 600"],
                         ids=["stubborn", "plain"])
def test_ctrl_c_ends_every_process_on_every_host(hosts, workspace, tmp_path,
                                                 command):
    def turn(folder):
        with Launch(hosts, folder, ["--job_workspace", workspace,
                                    "--server_num", "1", "--worker_num", "1",
                                    *shell(command)]) as job:
            for i in range(3):
                job.process.says(r"\[trainer %d\] up" % i)
                job.process.says(r"\[server %d\] up" % i)
            began = time.monotonic()
            job.interrupt()
            job.process.end(130)
            job.alone()
            return time.monotonic() - began
    within(10, turn, tmp_path)


def test_all_processes_are_shown_at_one_glance(hosts, workspace, tmp_path):
    with Launch(hosts, tmp_path, [
            "--job_workspace", workspace, "--server_num", "1", "--worker_num",
            "1", *shell('echo step "$PADDLE_TRAINER_ID"; '
                        '[ "$PADDLE_TRAINER_ID" != 1 ] || exit 3; '
                        'exec sleep 600')]) as job:
        for i in 0, 2:
            job.process.says(r"\[trainer %d\] step %d$" % (i, i))
        job.process.says(r"\[trainer 1\] step 1$")
        job.shown(r"trainer 1 +%s +exit code 3 +step 1$"
                  % re.escape(hosts.address(1)))
        assert re.search(r"trainer 2 +%s +runs +step 2\n"
                         % re.escape(hosts.address(2)), job.process.text())


def test_processes_end_when_the_launcher_is_killed(hosts, workspace, tmp_path):
    def turn(folder):
        with Launch(hosts, folder, ["--job_workspace", workspace, *shell(
                STUBBORN)]) as job:
            for i in range(6):
                job.process.says(r"\[trainer %d\] up" % i)
            began = time.monotonic()
            job.process.kill()
            job.alone()
            return time.monotonic() - began
    within(10, turn, tmp_path)


def test_a_host_that_dies_gives_a_verdict(tmp_path):
    with SshHosts(tmp_path, 4) as hosts, Launch(
            hosts, tmp_path, ["--job_workspace", "/home", "--max_restarts",
                              "0", *shell(
                "echo up; exec sleep 600")]) as job:
        for i in range(6):
            job.process.says(r"\[server %d\] up" % i)
        hosts.crash(1)
        job.process.end(255)
        said = job.process.text()
        job.alone()
    assert "host %s is lost: " % hosts.address(1) in said
    assert "server 2 failed first: its host was lost" in said
    assert "launch: server 2 has failed; all other processes are stopped" \
        in said
    assert "host %s has not said that its processes have ended" \
        % hosts.address(1) not in said


LASTING = {"FLUID_DURABILITY": "process", **QUICK}


def held_job(hosts, tmp_path, gate, **env):
    """A server and a trainer on each host, and trainers wait at step 20."""
    return Launch(hosts, tmp_path, [
        "--job_workspace", "/home", "--server_num", "1", "--worker_num", "1",
        "--max_restarts", "3", "--python", sys.executable, fault_job.__file__,
        "steps=40", "hold=20:%s" % gate],
        PYTHONPATH=os.path.join(BUILD, "python"),
        FLUID_STATE_DIR=str(tmp_path / "state"), **LASTING, **env)


def test_a_host_that_dies_and_comes_back_joins_again(tmp_path):
    """Its disk, with the state of its server, has survived."""
    gate = tmp_path / "gate"
    with SshHosts(tmp_path, 4) as hosts, held_job(hosts, tmp_path,
                                                  gate) as job:
        for i in range(3):
            job.process.says(r"\[trainer %d\] step 19 " % i)
        job.shown(r"trainer 2 +%s +runs +20 +[0-9.]+  step 19 "
                  % re.escape(hosts.address(2)))
        hosts.crash(1)
        job.process.says("host %s is lost: .*; the launcher tries to reach it "
                         "for 60 s" % hosts.address(1))
        hosts.restore(1)
        job.process.says("host %s is back after" % hosts.address(1))
        gate.touch()
        said = job.end()
    assert "trainer 1 ended after" in said and "its host was lost" in said
    assert "3 trainers and 3 servers finished" in said
    for i in range(3):
        assert "[trainer %d] step 39 " % i in said


def test_a_host_that_is_replaced_under_its_name_joins_again(tmp_path):
    """Its disk is new. It gets the package again, and since the state of its
    server is lost, the job goes back to a snapshot, which all hosts see."""
    gate, package = tmp_path / "gate", tmp_path / "package"
    package.mkdir()
    shutil.copy(fault_job.__file__, package)
    with SshHosts(tmp_path, 4) as hosts, Launch(hosts, tmp_path, [
            "--job_dispatch_package", str(package), "--job_root", "/home/jobs",
            "--server_num", "1", "--worker_num", "1", "--max_restarts", "3",
            "--python", sys.executable, "fault_job.py", "steps=40",
            "hold=20:%s" % gate], PYTHONPATH=os.path.join(BUILD, "python"),
            FLUID_STATE_DIR="/home/state", FLUID_SNAPSHOT_EVERY="0.1",
            FLUID_SNAPSHOT_DIR=str(tmp_path / "snap"), **LASTING) as job:
        for i in range(3):
            job.process.says(r"\[trainer %d\] step 19 " % i)
        job.process.says(r"\[server 0\] .* snapshot \d+ of version \d+ is in")
        hosts.crash(1)
        for name in "state", "jobs":
            shutil.rmtree(hosts.home(1) / name)
        job.process.says("host %s is lost: .*; the launcher tries to reach it "
                         "for 60 s" % hosts.address(1))
        hosts.restore(1)
        job.process.says("host %s is back after" % hosts.address(1))
        gate.touch()
        said = job.end()
        assert list((hosts.home(1) / "jobs").glob("*/fault_job.py"))
    assert "went back to a snapshot" in said
    assert "3 trainers and 3 servers finished" in said


def test_a_host_that_never_comes_back_ends_the_job(tmp_path):
    gate = tmp_path / "gate"
    with SshHosts(tmp_path, 4) as hosts, held_job(
            hosts, tmp_path, gate, FLUID_REJOIN="3") as job:
        for i in range(3):
            job.process.says(r"\[trainer %d\] step 19 " % i)
        hosts.crash(1)
        job.process.says("the launcher tries to reach it for 3 s")
        job.process.end(255)
        said = job.process.text()
        job.alone()
    assert "host %s has not come back: " % hosts.address(1) in said
    assert "server 1 failed first: its host was lost" in said
    assert "launch: restart" not in said  # in the last lines of its log


def test_the_first_failure_of_all_hosts_is_the_verdict(hosts, workspace,
                                                       tmp_path):
    said = run(hosts, tmp_path, [
        "--job_workspace", workspace, "--server_num", "1", "--worker_num", "1",
        *shell('[ "$PADDLE_TRAINER_ID" != 1 ] || { echo no luck; exit 7; }')],
        code=7)
    assert "trainer 1 failed first: exit code 7" in said
    assert "it ran on host %s in %s" % (hosts.address(1), workspace) in said
    assert "    no luck" in said and "5 ended well" in said


WRONG = {  # flags that are wrong, and what is said of host 1
    "missing workspace": (
        ["--job_workspace", "/home/none"],
        "workspace /home/none: No such file or directory; send one with "
        "--job_dispatch_package"),
    "missing script": (
        ["--job_workspace", "/home/work", "none.py"],
        "script none.py in workspace /home/work: No such file or directory"),
    "missing paddle": (
        ["--remote_paddle", "/none/paddle"], "install Fluid on 10.77.0.2, or "
        "say with --remote_paddle"),
    "another version": (
        ["--remote_paddle", "/home/work/old"],
        "it has Fluid 0.0.1, this host has "),
    "refused": (["--hosts", "10.77.0.4"], "does sshd run on 10.77.0.4?"),
    "no such host": (["--hosts", "none.invalid"],
                     "is none.invalid the right name"),
    "no key at a port": (["--hosts", "root@10.77.0.2:22", "--ssh",
                          "ssh -i /dev/null -oStrictHostKeyChecking=no "
                          "-oUserKnownHostsFile=/dev/null"],
                         "ssh-copy-id -p 22 root@10.77.0.2"),
    "no key": (["--ssh", "ssh -i /dev/null -oStrictHostKeyChecking=no "
                "-oUserKnownHostsFile=/dev/null"],
               "ssh-copy-id 10.77.0.2"),
    "unknown key": (["--ssh", "ssh -oUserKnownHostsFile=/dev/null"],
                    "look at it once with ssh 10.77.0.2 true"),
}


@pytest.mark.parametrize("words, sentence", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_in_a_sentence(hosts, workspace, tmp_path, words,
                                             sentence):
    for i in range(3):
        old = hosts.home(i) / "work" / "old"
        old.write_text("#!/bin/sh\nprintf 'hello 1 5\\n0.0.1\\n'; cat\n")
        old.chmod(0o755)
    said = run(hosts, tmp_path, [*words, *shell("true")], code=1)
    assert sentence in said
    assert "hosts cannot be used; nothing was started" in said
    assert len(said.splitlines()) < 10


def test_a_dry_run_says_what_would_run_where(hosts, tmp_path):
    said = run(hosts, tmp_path, [
        "--dry_run", "--hosts", "a,root@b:2222", "--worker_num", "1",
        "--server_num", "1", "--job_workspace", "/ws",
        "--job_dispatch_package", "pack", "train.py", "--x=1", "two words",
        ""], FLUID_LEASE="9")
    assert "python3 -u train.py --x=1 'two words' ''\n" in said
    assert "their workspace is /ws, to which the files of pack are sent\n" \
        in said
    assert "host root@b:2222 is reached by" in said and "-p 2222 root@b" in said
    part = said[said.index("trainer 1 on host root@b:2222"):]
    for line in ("PADDLE_TRAINER_ID=1", "PADDLE_TRAINING_ROLE=TRAINER",
                 "PADDLE_PSERVERS_IP_PORT_LIST=a:6170,b:6170",
                 "FLUID_LEASE=9"):
        assert "    %s\n" % line in part


@pytest.mark.parametrize("text", [
    "10.77.0.1 slots=2\n# one more\n10.77.0.2\n",
    "# hosts\nHOSTS = [\n    '10.77.0.1',  # [first]\n    \"10.77.0.2\","
    "\n]\nPORT = 7164\n"], ids=["machines", "conf.py"])
def test_a_file_names_the_hosts(hosts, workspace, tmp_path, text):
    (tmp_path / "machines").write_text(text)
    said = run(hosts, tmp_path, [
        "--hostfile", "machines", "--job_workspace", workspace,
        "--server_num", "1", "--worker_num", "1", *shell("hostname")])
    assert "2 trainers and 2 servers finished" in said
    assert "[trainer 1] host1" in said


def test_the_documents_fabric_script_starts_a_job(hosts, tmp_path):
    """conf.py, paddle.py and options of the job as the document has them."""
    fabric = os.path.join(ROOT, "scripts", "cluster_train_v2", "fabric")
    shutil.copytree(fabric, tmp_path / "fabric")
    (tmp_path / "fabric" / "conf.py").write_text(
        "HOSTS = ['10.77.0.1',\n         '10.77.0.2']\n"
        "ROOT_DIR = '/home/paddle'\nLD_LIBRARY_PATH = ''\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "train.py").write_text(
        "import os\nprint('passes', os.environ['PADDLE_INIT_NUM_PASSES'],"
        " os.environ['TRAINING_ROLE'])\n")
    env = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
    env["PATH"] = os.path.dirname(PADDLE) + ":" + env["PATH"]
    with Process("fabric", [
            *hosts.start_words(3), "python3", "fabric/paddle.py",
            "--job_dispatch_package=package", "--num_passes=10",
            "--worker-num=1", "--ssh=ssh -F " + hosts.config], str(tmp_path),
            env) as job:
        job.end()
        said = job.text()
    assert "[trainer 1] passes 10 TRAINER" in said
    assert "[server 0] passes 10 PSERVER" in said
    for i in range(2):
        folder, = (hosts.home(i) / "paddle").iterdir()
        assert (folder / "log" / "paddle_trainer.INFO").exists()


def test_a_missing_python_is_one_sentence_for_each_host(hosts, tmp_path):
    (tmp_path / "job.py").write_text("")
    said = run(hosts, tmp_path, ["--python", "/none/python", "job.py"], code=1)
    for i in range(3):
        assert "launch: host %s cannot be used: it has no program " \
            "/none/python; name the Python of the hosts with --python\n" \
            % hosts.address(i) in said
    assert len(said.splitlines()) < 6
