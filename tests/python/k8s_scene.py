#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs as pods of a Kubernetes cluster: one runs to its end; of another a node
dies in the middle, and it comes to its end as well.

    make k8s KUBECTL="kubectl --kubeconfig config" K8S_HOSTS="node*/hosts" \\
        K8S_CRASH="crash"

The nodes of the cluster must see the files of this machine, as those of a
control plane for tests do, where pods are processes.

    KUBECTL     the command with its flags
    K8S_HOSTS   files that pods see as /etc/hosts, for a cluster without DNS
    K8S_CRASH   a command that ends the node of its last word; without it there
                is no second job
"""
import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import fault_job
from cluster import BUILD

KUBECTL = shlex.split(os.environ.get("KUBECTL", "kubectl"))
CRASH = shlex.split(os.environ.get("K8S_CRASH", ""))
FILES = [f for p in os.environ.get("K8S_HOSTS", "").split()
         for f in glob.glob(p)]
PATIENCE = 600  # s for anything to happen
HOLD, STEPS = 50, 100


def kubectl(*words, good=True):
    done = subprocess.run([*KUBECTL, *words], capture_output=True, text=True)
    if good and done.returncode:
        sys.exit("k8s: %s: %s" % (" ".join(words), done.stderr))
    return done.stdout


class Job:
    """A job of one server and two trainers, as paddle k8s writes it."""

    def __init__(self, name, *argv):
        self.name, self.base = name, {f: open(f).read() for f in FILES}
        self.folder = tempfile.mkdtemp()
        env = "PATH=%s PYTHONPATH=%s" % (
            shlex.quote(os.environ["PATH"]),
            shlex.quote(os.path.join(BUILD, "python")))
        subprocess.run([
            "paddle", "k8s", "--insecure", "--name", name, "--server_num", "1",
            "--worker_num", "2", "--out", self.folder, "sh", "-c",
            "exec env %s %s -u %s %s" % (
                env, shlex.quote(sys.executable),
                shlex.quote(fault_job.__file__), " ".join(argv))], check=True)
        # A pod has no more of this machine's settings than the command says.
        path = os.path.join(self.folder, "job.yaml")
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text.replace("[paddle,", "[%s," % os.path.join(
                BUILD, "bin", "paddle")))

    def __enter__(self):
        kubectl("apply", "-f", os.path.join(self.folder, "job.yaml"))
        return self

    def __exit__(self, *unused):
        kubectl("delete", "--wait=false", "-f",
                os.path.join(self.folder, "job.yaml"))
        for file, text in self.base.items():
            with open(file, "w") as f:
                f.write(text)
        shutil.rmtree(self.folder)

    def pods(self):
        """Those of the job; their names become known to all."""
        found = json.loads(kubectl("get", "pods", "-l",
                                   "fluid-job=" + self.name, "-o", "json"))
        for file, text in self.base.items():
            with open(file, "w") as f:
                f.write(text + "".join("%s %s.%s-server\n" % (
                    p["status"]["podIP"], p["metadata"]["name"], self.name)
                    for p in found["items"] if p["status"].get("podIP")))
        return {p["metadata"]["name"]: p for p in found["items"]
                if "deletionTimestamp" not in p["metadata"]}

    def until(self, what, true):
        limit = time.monotonic() + PATIENCE
        while not (found := true(self.pods())):
            if time.monotonic() > limit:
                self.show()
                sys.exit("k8s: never: %s" % what)
            time.sleep(1)
        print("k8s: %s: %s" % (self.name, what), flush=True)
        return found

    def log(self, pod):
        return kubectl("logs", pod, good=False)

    def trainers(self, pods, line):
        """Pods of trainers that have said the line, by number."""
        return {int(name.split("-")[2]): name for name in pods
                if "-trainer-" in name and line in self.log(name)}

    def complete(self):
        self.until("both trainers are complete", lambda _: kubectl(
            "get", "jobs", "-l", "fluid-job=" + self.name, "-o",
            "jsonpath={.items[*].status.succeeded}").split() == ["1", "1"])
        self.until("the server has finished, and its pod stays", lambda _: (
            "this pod stays" in self.log(self.name + "-server-0")))

    def show(self):
        print(kubectl("get", "nodes,pods", "-o", "wide"))
        for pod in self.pods():
            print("---", pod, self.log(pod)[-3000:], sep="\n")


def run_to_its_end():
    with Job("plain", "steps=20") as job:
        job.complete()


def lose_a_node(folder):
    gate = os.path.join(folder, "gate")
    line = "step %d " % (HOLD - 1)
    with Job("lossy", "steps=%d" % STEPS, "hold=%d:%s" % (HOLD, gate)) as job:
        held = job.until("both trainers hold at step %d" % HOLD, lambda pods:
                         len(found := job.trainers(pods, line)) == 2 and found)
        pods = job.pods()
        node = {name: p["spec"]["nodeName"] for name, p in pods.items()}
        lost = [i for i, name in held.items()
                if node[name] != node["lossy-server-0"]]
        if not lost:
            sys.exit("k8s: all pods are on one node; the scene needs two")
        victim = held[lost[0]]
        print("k8s: lossy: node %s dies, with %s" % (node[victim], victim))
        subprocess.run([*CRASH, node[victim]], check=True)
        job.until("another pod of trainer %d runs" % lost[0], lambda pods: any(
            name.startswith("lossy-trainer-%d-" % lost[0]) and name != victim
            and p["status"]["phase"] == "Running" for name, p in pods.items()))
        with open(gate, "w"):
            pass
        job.complete()


if __name__ == "__main__":
    run_to_its_end()
    if CRASH:
        with tempfile.TemporaryDirectory() as folder:
            lose_a_node(folder)
    print("k8s: ok")
