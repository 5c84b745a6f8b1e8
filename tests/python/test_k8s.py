# SPDX-License-Identifier: Apache-2.0
"""paddle k8s: its manifests, and pods that run what they say."""
import contextlib
import os
import re
import stat
import subprocess
import sys

import pytest

import sync_job
from cluster import BUILD, FOREIGN, Hosts, Process
from paddle import _needs
from test_cli import paddle
from test_sync import QUICK, alone, load, same_bits

yaml = pytest.importorskip("yaml", reason="needs python3-yaml: scripts/deps "
                                          "test")


def write(folder, *words):
    """The objects of job.yaml, and the folder of the files."""
    code, _, said = paddle("k8s", "--out", str(folder), *words)
    assert code == 0, said
    return list(read(folder / "job.yaml"))


def read(path):
    with open(path) as f:
        return [found for found in yaml.safe_load_all(f) if found]


def name(found):
    return "%s %s" % (found["kind"], found["metadata"]["name"])


def pod(found):
    """The pod of a StatefulSet or Job, and its container."""
    spec = found["spec"]["template"]["spec"]
    container, = spec["containers"]
    return spec, container


def env(container):
    return {e["name"]: e.get("value") for e in container["env"]}


def test_a_job_is_plain_objects_of_kubernetes(tmp_path):
    found = write(tmp_path, "--server_num", "3", "--claim", "clicks", "--cpu",
                  "500m", "--memory", "2Gi", "jobs/Click_2.py", "train",
                  'a "b" \\ $(c) $$d $e\n')
    assert [name(f) for f in found] == [
        "Service click-2-server", "StatefulSet click-2-server",
        "Job click-2-trainer-0", "Job click-2-trainer-1"]
    service, servers, *trainers = found
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"]
    labels = servers["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels
    assert servers["spec"]["selector"]["matchLabels"] == labels
    assert servers["spec"]["serviceName"] == "click-2-server"
    assert servers["spec"]["replicas"] == 3
    for each in found[1:]:
        spec, container = pod(each)
        assert container["image"] == "fluid-click-2"
        assert container["command"][-3:] == ["jobs/Click_2.py", "train",
                                             'a "b" \\ $$(c) $$$d $e\n']
        assert container["env"][0] == {"name": "POD_NAME", "valueFrom": {
            "fieldRef": {"fieldPath": "metadata.name"}}}
        assert container["resources"]["requests"] == {"cpu": "500m",
                                                      "memory": "2Gi"}
        mounts = {m["name"]: m["mountPath"]
                  for m in container["volumeMounts"]}
        assert mounts == {"memory": "/dev/shm", "tls": "/tls",
                          "data": "/data"}
        volumes = {v["name"]: v for v in spec["volumes"]}
        assert volumes.keys() == mounts.keys()
        assert volumes["tls"]["secret"]["secretName"] == "click-2-tls"
    assert "paddle why" in str(pod(servers)[1]["readinessProbe"]["exec"])
    assert all(pod(t)[0]["restartPolicy"] == "Never" for t in trainers)


def test_an_indexed_job_has_probes_of_grpc(tmp_path):
    service, servers, job = write(tmp_path, "--indexed", "--insecure",
                                  "--worker_num", "5", "a.py")
    assert name(job) == "Job a-trainer"
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == 5
    assert pod(servers)[1]["readinessProbe"]["grpc"] == {"port": 6174}
    assert not (tmp_path / "secret.yaml").exists()
    assert "FLUID_TLS_KEY" not in env(pod(job)[1])


def test_the_same_words_give_the_same_manifests(tmp_path):
    words = ["--name", "x", "a.py"]
    for folder in "one", "two":
        write(tmp_path / folder, *words)
    write(tmp_path / "one", *words)  # over what is there
    for file in "job.yaml", "Dockerfile":
        one, two = ((tmp_path / f / file).read_text()
                    for f in ("one", "two"))
        assert one.replace("/one/", "/two/") == two
    keys = [read(tmp_path / f / "secret.yaml")[0]["stringData"]["tls.key"]
            for f in ("one", "two")]
    assert keys[0] != keys[1]
    mode = (tmp_path / "one" / "secret.yaml").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_the_image_has_what_the_library_needs(tmp_path):
    write(tmp_path, "a.py")
    text = (tmp_path / "Dockerfile").read_text()
    for package in ("python3-numpy", *_needs.PACKAGES):
        assert " %s " % package in text


def test_no_key_of_a_job_is_in_the_image(tmp_path):
    """The stage that copies files removes the Secrets of all jobs."""
    work = tmp_path / "work"
    for job in "k8s", "a b":
        write(work / job, "a.py")
    (work / "secret.yaml").write_text("mine: 1\n")
    first, last = (work / "k8s" / "Dockerfile").read_text().split("\n\n")
    clean, = re.findall("^RUN (.*)$", first, re.M)
    assert "COPY . /work\nRUN" in re.sub("#.*\n", "", first)
    assert last.endswith("\nCOPY --from=files /work /work\n")
    subprocess.run(clean.replace("/work", str(work)), shell=True, check=True,
                   cwd=tmp_path)
    assert [str(p.relative_to(work)) for p in work.rglob("secret.yaml")] == [
        "secret.yaml"]
    assert len(list(work.rglob("job.yaml"))) == 2


@pytest.mark.parametrize("words, code, sentence", [
    ([], 2, "name the script or program to run; see paddle help k8s"),
    (["7.py"], 1, '"7" cannot be the name of a job, expected a small letter, '
     "then at most 39 small letters, digits and dashes; choose one with "
     "--name"),
    (["--name", "x" * 41, "a.py"], 1, '"%s" cannot be' % ("x" * 41)),
    (["--server_num", "0", "a.py"], 1, "0 servers and 2 trainers were asked "
     "for, expected 1 to 1000 of each"),
    (["--port", "70000", "a.py"], 1, "--port is 70000, expected a number"),
    (["--out", "/dev/null/x", "a.py"], 1, "/dev/null/x"),
], ids=["nothing", "digit", "long", "no server", "port", "folder"])
def test_what_is_wrong_is_said_in_a_sentence(words, code, sentence):
    got, out, said = paddle("k8s", *words)
    assert (got, out) == (code, "") and sentence in said


def test_a_script_that_is_not_here_is_warned_of(tmp_path):
    _, _, said = paddle("k8s", "--out", str(tmp_path / "out"), "absent.py")
    assert "script absent.py: No such file or directory; the Docker" in said
    here = tmp_path / "here.py"
    here.touch()
    _, _, said = paddle("k8s", "--out", str(tmp_path / "out"), str(here))
    assert "script" not in said


@pytest.mark.parametrize("pod, line", [
    ("a-server-1", "server 1, "),
    ("a-trainer-2-x7k2p", "trainer 2, "),
    ("a-server-0-trainer-1-abcde", "trainer 1, "),
    ("a-trainer-0-server-1", "server 1, "),
], ids=["server", "trainer", "server in the job's name",
        "trainer in the job's name"])
def test_a_pod_knows_its_place_by_its_name(pod, line):
    code, _, said = paddle("launch", "--pod", "--worker_num", "3",
                           "--dry_run", "true", POD_NAME=pod)
    job = pod[:pod.rindex(line.split()[0]) - 1]
    assert code == 0 and "\n%s" % line in said
    assert "PADDLE_PSERVER_ENDPOINTS=" + ",".join(
        "%s-server-%d.%s-server:6174" % (job, i, job) for i in (0, 1)) in said


@pytest.mark.parametrize("pod, sentence", [
    ("web-7d9f", 'this pod is called "web-7d9f", expected a name like '),
    ("a-server-2", 'this pod is called "a-server-2", but --server_num is 2'),
    ("a-trainer-9-abcde", "but --worker_num is 2"),
], ids=["foreign", "too many servers", "too many trainers"])
def test_a_pod_of_another_name_is_refused(pod, sentence):
    code, _, said = paddle("launch", "--pod", "true", POD_NAME=pod)
    assert code == 1 and sentence in said


@pytest.mark.parametrize("words", [
    ["--hosts", "node1"], ["--mpi"], ["--slurm"], ["--mode", "collective"],
    ["--cluster_node_ips", "10.0.0.1"], ["--endpoints", "10.0.0.1:6174"],
], ids=lambda words: words[0][2:])
def test_a_pod_refuses_flags_that_name_hosts(words):
    code, _, said = paddle("launch", "--pod", *words, "true",
                           POD_NAME="a-trainer-0-x7k2p",
                           SLURM_JOB_NODELIST="node1")
    assert code == 1
    assert ("--pod takes all hosts from the name of the pod; leave out %s\n"
            % (" ".join(words) if "--mode" in words else words[0])) in said


class Pods:
    """Pods as processes of one host, which finds them by their names."""

    def __init__(self, tmp_path, host, found):
        self.folder, self.host = tmp_path, host
        secret, = read(tmp_path / "secret.yaml")
        for file, text in secret["stringData"].items():
            (tmp_path / file).write_text(text)
        (tmp_path / "hosts").write_text("".join(
            "127.0.0.%d a-server-%d.a-server\n" % (2 + i, i)
            for i in range(2)))
        self.found = {name(f): f for f in found}

    def start(self, kind, called):
        _, container = pod(self.found[kind])
        told = {k: v.replace("/tls/", "%s/" % self.folder)
                for k, v in env(container).items() if v}
        clean = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
        command = [w.replace("/tmp/logs", "logs-" + called)
                   for w in container["command"][1:]]
        return Process(called, [
            *self.host, "unshare", "--mount", "--pid", "--fork",
            "--kill-child", "--mount-proc", "sh", "-c",
            "mount --bind hosts /etc/hosts && exec \"$@\"", "sh",
            os.path.join(BUILD, "bin", "paddle"), *command],
            str(self.folder), {**clean, **told, **QUICK, "POD_NAME": called,
                               "PADDLE_PYTHON": sys.executable,
                               "PYTHONPATH": os.path.join(BUILD, "python")})


def first(process):
    """The process with number 1 in the pod."""
    with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as f:
        return int(f.read())


@pytest.mark.skipif(not Hosts.can_be(), reason="needs root and iproute2")
def test_pods_run_a_job_with_the_bits_of_one_machine(tmp_path):
    """The servers' pods stay when they are done, and end when deleted."""
    local = alone(tmp_path, "adam")
    found = write(tmp_path, "--name", "a", sync_job.__file__, "adam", "same")
    with Hosts(1) as hosts, contextlib.ExitStack() as stack:
        pods = Pods(tmp_path, hosts.enter(0), found)
        servers = [stack.enter_context(pods.start(
            "StatefulSet a-server", "a-server-%d" % i)) for i in range(2)]
        trainers = [stack.enter_context(pods.start(
            "Job a-trainer-%d" % i, "a-trainer-%d-x7k2p" % i))
            for i in range(2)]
        stack.callback(lambda: [print(p.text()) for p in servers + trainers])
        for trainer in trainers:
            trainer.end()
        for server in servers:
            server.says("this pod stays until it is deleted")
            assert "plain text" not in server.text()
            os.kill(first(server), 15)
            server.end()
    for i in range(2):
        same_bits(load(tmp_path, i), local)


@pytest.mark.skipif(not Hosts.can_be(), reason="needs root and iproute2")
def test_a_pod_that_is_deleted_tells_its_process(tmp_path):
    """A trainer that is told to end has failed: its Job starts another."""
    found = write(tmp_path, "--name", "a", "sh", "-c",
                  "trap 'echo told; exit 3' TERM; echo up; "
                  "while :; do sleep 0.1; done")
    with Hosts(1) as hosts:
        pods = Pods(tmp_path, hosts.enter(0), found)
        with pods.start("Job a-trainer-1", "a-trainer-1-x7k2p") as trainer:
            trainer.says("^up$")
            os.kill(first(trainer), 15)
            trainer.end(143)
            assert "told" in trainer.text()
