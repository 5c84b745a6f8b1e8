# SPDX-License-Identifier: Apache-2.0
"""Jobs on three hosts, each from one command: by ssh, and by mpirun over ssh.
All leave the bits of one machine. word2vec runs as the document of the cluster
scripts has it, line by line."""
import os
import shutil
import sys

import pytest

from cluster import BUILD, ROOT, Process
from sshd import LACKING, SshHosts
from three_hosts import ENV, HOSTS, JOBS, PADDLE

pytestmark = pytest.mark.skipif(
    bool(LACKING), reason="needs %s: scripts/deps cluster" % ", ".join(LACKING))
with_mpi = pytest.mark.skipif(
    not shutil.which("mpirun") or not os.path.exists(
        os.path.join(BUILD, "lib", "libfluid-mpi.so")),
    reason="needs OpenMPI and libfluid-mpi.so: scripts/deps mpi cluster, make")

SCRIPTS = os.path.join(ROOT, "scripts", "cluster_train_v2")
HEAD, DESK = HOSTS, HOSTS + 1  # where mpirun is, and where the user sits


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Three nodes and a head, which answer ssh, and a desk. A login finds
    Fluid, and mpirun fills all hosts evenly, as docker_cluster sets it."""
    folder = tmp_path_factory.mktemp("v2")
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(sys.executable)
    for name in "ssh", "scp":
        tool = folder / "bin" / name
        tool.write_text('#!/bin/sh\nexec %s -F %s/ssh.conf "$@"\n'
                        % (shutil.which(name), folder))
        tool.chmod(0o755)
    login = {name: ENV[name] for name in (
        "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "FLUID_LINGER")}
    login.update({"OMPI_MCA_" + name: value for name, value in {
        "rmaps_base_mapping_policy": "node", "orte_tmpdir_base": "/tmp",
        "btl": "tcp,self", "btl_tcp_if_include": "eth0",
        "oob_tcp_if_include": "eth0"}.items()},
        PATH="%s:%s" % (folder / "bin", ENV["PATH"]),
        PADDLE_PYTHON=sys.executable,
        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    with SshHosts(folder, DESK + 1, login=login) as made:
        made.login = login
        yield made


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """The job of a name, made once."""
    made = {}

    def find(name):
        if name not in made:
            made[name] = JOBS[name](tmp_path_factory.mktemp(name))
        return made[name]

    return find


def run_at(hosts, i, folder, words):
    """What a command on host i says."""
    with Process("host%d" % i, [*hosts.start_words(i), *words], str(folder),
                 {**ENV, **hosts.login}) as job:
        code = job.end(code=None)
        print(job.text())
        assert code == 0
        return job.text()


def test_the_click_job_on_three_hosts_by_ssh(hosts, jobs, tmp_path):
    job = jobs("clicks")
    said = run_at(hosts, DESK, tmp_path, [
        PADDLE, "launch", "--hosts", ",".join(
            hosts.address(i) for i in range(HOSTS)), "--job_dispatch_package",
        str(job.package), "--job_root", "/home/jobs", "--server_num", "1",
        "--worker_num", "1", "--python", sys.executable, *job.words])
    assert "3 trainers and 3 servers finished" in said
    for i in range(HOSTS):
        folder, = (hosts.home(i) / "jobs").iterdir()
        assert (folder / "nodefile").read_text() == str(i)
        for log in "train.log", "paddle_trainer.INFO", "server.log", \
                "paddle_pserver2.INFO":
            assert (folder / "log" / log).read_text()
        if not i:
            job.check(folder, tmp_path / "logs")


@with_mpi
def test_the_click_job_on_three_hosts_by_mpirun(hosts, jobs, tmp_path):
    """All hosts see one workspace, where all logs are."""
    job = jobs("clicks")
    work = tmp_path / "work"
    shutil.copytree(job.package, work)
    (work / "machines").write_text("".join(
        hosts.address(i) + "\n" for i in range(HOSTS)))
    run_at(hosts, DESK, work, [
        "mpirun", "-hostfile", "machines", "-n", "3", "-wdir", str(work),
        PADDLE, "launch", "--mpi", "--server_num", "1", "--worker_num", "1",
        "--python", sys.executable, *job.words])
    job.check(work, work / "logs")


DOCUMENT = """
set -ex
scp -i ssh/id_rsa.mpi machines prepare.py train.py start_mpi_train.sh \
    text tutorial@HEAD:~
ssh -i ssh/id_rsa.mpi tutorial@HEAD sh -ex <<'END'
# --------------- in head node ---------------
python prepare.py
cat machines | xargs -i scp word_dict.pickle train.py start_mpi_train.sh \
    machines {}:/home/tutorial
mpirun -hostfile machines -n 3 mkdir /home/tutorial/logs
scp train.txt-00000 test.txt-00000 NODE1:/home/tutorial
scp train.txt-00001 test.txt-00001 NODE2:/home/tutorial
scp train.txt-00002 test.txt-00002 NODE3:/home/tutorial
mpirun -hostfile machines -n 3  /home/tutorial/start_mpi_train.sh
END
"""


@with_mpi
def test_the_documents_session_with_mpirun(hosts, jobs, tmp_path):
    """From the desk over the head. The text is sent as well, since there is
    no data set to fetch, and -i names the private key."""
    job = jobs("word2vec")
    for name in "prepare.py", "train.py", "text":
        shutil.copy(job.package / name, tmp_path)
    shutil.copy(os.path.join(SCRIPTS, "openmpi", "start_mpi_train.sh"),
                tmp_path)
    (tmp_path / "machines").write_text("".join(
        hosts.address(i) + "\n" for i in range(HOSTS)))
    (tmp_path / "ssh").mkdir()
    shutil.copy(hosts.key, tmp_path / "ssh" / "id_rsa.mpi")
    session = DOCUMENT.replace("HEAD", hosts.address(HEAD))
    for i in range(HOSTS):
        session = session.replace("NODE%d" % (i + 1), hosts.address(i))
    run_at(hosts, DESK, tmp_path, ["sh", "-c", session])
    logs = tmp_path / "logs"
    logs.mkdir()
    for i in range(HOSTS):
        there = hosts.home(i) / "tutorial" / "logs"
        assert (there / ("serverlog.%d" % i)).read_text()
        shutil.copy(there / ("workerlog.%d" % i), logs)
    job.check(hosts.home(0) / "tutorial", logs)


def write_conf(fabric, hosts, root, n):
    (fabric / "conf.py").write_text(
        "HOSTS = %r\nROOT_DIR = %r\n"
        % ([hosts.address(i) for i in range(n)], root))


def test_the_documents_paddle_py_sends_a_package(hosts, jobs, tmp_path):
    """The model is in `output` on node 0, and only there."""
    job = jobs("word2vec")
    shutil.copytree(os.path.join(SCRIPTS, "fabric"), tmp_path / "fabric")
    write_conf(tmp_path / "fabric", hosts, "/home/paddle", HOSTS)
    said = run_at(hosts, DESK, tmp_path, [
        "python", "fabric/paddle.py", "--job_dispatch_package=%s" % job.package,
        "--trainer_count=1", "--python=" + sys.executable])
    assert "3 trainers and 3 servers finished" in said
    for i in range(HOSTS):
        folder, = (hosts.home(i) / "paddle").iterdir()
        assert "has brought the program" in (
            folder / "log" / "paddle_pserver2.INFO").read_text()
        assert (folder / "output").exists() == (i == 0)
        if not i:
            job.check(folder, tmp_path / "logs")


def test_the_documents_run_sh(hosts, tmp_path):
    """`sh run.sh` trains the recommender on the hosts of conf.py."""
    fabric = tmp_path / "scripts" / "cluster_train_v2" / "fabric"
    shutil.copytree(os.path.join(SCRIPTS, "fabric"), fabric)
    shutil.copytree(os.path.join(ROOT, "examples"), tmp_path / "examples")
    write_conf(fabric, hosts, "/home/films", 2)
    run = (fabric / "run.sh").read_text()
    assert "v2/recommender_system.py" in run
    said = run_at(hosts, DESK, fabric, [
        "sh", "run.sh", "--python=" + sys.executable])
    assert "2 trainers and 2 servers finished" in said
    folder, = (hosts.home(0) / "films").iterdir()
    assert (folder / "output" / "pass-00002.tar").stat().st_size > 1000
