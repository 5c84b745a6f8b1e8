#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands of the Dockerfiles, tried without Docker: FROM makes a system
with debootstrap, RUN is run in it by chroot, COPY copies. Then jobs run in what
has come of it: that of paddle k8s trains, and that of the demo clusters answers
ssh and runs mpirun.

    make image [IMAGE_BASE=DIR]

It needs root, debootstrap and a mirror of Debian. IMAGE_BASE keeps the system
that debootstrap made, for the next time. Nothing is left mounted, and all
processes end, since all of it runs in namespaces of its own.
"""
import glob
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

from cluster import BUILD, ROOT

INSIDE = ["unshare", "--mount", "--uts", "--pid", "--net", "--fork",
          "--kill-child", "sh", "-ec",
          'mount --make-rprivate /; mount -t proc proc "$0/proc"; '
          'mount --bind /dev "$0/dev"; '
          'mount -t devpts pts "$0/dev/pts"; mount -t tmpfs shm "$0/dev/shm"; '
          'ip link set lo up; exec chroot "$0" sh -ec "$1"']
OUTSIDE = ["unshare", "--mount", "sh", "-ec",  # apt needs the network
           'mount --make-rprivate /; mount -t proc proc "$0/proc"; '
           'mount --bind /dev "$0/dev"; mount --bind /dev/pts "$0/dev/pts"; '
           'cp /etc/resolv.conf "$0/etc"; exec chroot "$0" sh -ec "$1"']


def run(*words, **more):
    print("+", " ".join(shlex.quote(w) for w in words[-1:])[:100], flush=True)
    return subprocess.run(words, check=True, **more)


def instructions(path):
    """(name, text) of a Dockerfile."""
    with open(path) as f:
        lines = [line for line in f if not line.startswith("#")]
    for line in "".join(lines).replace("\\\n", " ").splitlines():
        if line.strip():
            name, _, text = line.partition(" ")
            yield name, text.strip()


class Image:
    """A system in a folder, made as a Dockerfile says."""

    def __init__(self, base, dockerfile, context):
        self.context, self.stages = context, {}
        for name, text in instructions(dockerfile):
            print(name, text[:100], flush=True)
            getattr(self, name.lower())(base, text)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for root in self.stages.values():
            shutil.rmtree(root)

    def path(self, inside):
        return os.path.join(self.root, os.path.join(self.folder,
                                                    inside).lstrip("/"))

    def copy(self, _, text):
        *sources, to = text.split()
        context = self.context
        if sources[0].startswith("--from="):
            context = self.stages[sources.pop(0).partition("=")[2]]
        os.makedirs(self.path(to), exist_ok=True)
        for source in sources:
            found = glob.glob(os.path.join(context, source.lstrip("/")))
            assert found, source
            for path in found:
                subprocess.run(["cp", "-a", path + "/." if os.path.isdir(path)
                                else path, self.path(to)], check=True)

    def workdir(self, _, text):
        self.folder = text
        os.makedirs(self.path("."), exist_ok=True)

    def run(self, _, text):
        run(*OUTSIDE, self.root, "cd %s; %s" % (self.folder, text),
            stdout=subprocess.DEVNULL)

    def try_in(self, command):
        """Run a command as a container would, without a network."""
        return run(*INSIDE, self.root, "cd %s; %s" % (self.folder, command))


def begin_stage(self, base, text):
    self.root, self.folder = tempfile.mkdtemp(prefix="image-"), "/"
    self.stages[text.partition(" AS ")[2]] = self.root
    subprocess.run(["cp", "-a", base + "/.", self.root], check=True)


setattr(Image, "from", begin_stage)  # "from" is a word of Python

TRAIN = """
import os
import numpy as np
import paddle.fluid as fluid
x, y = fluid.layers.data("x", [13]), fluid.layers.data("y", [1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(
    fluid.layers.fc(x, 1), y))
fluid.optimizer.SGD(0.01).minimize(loss)
t = fluid.DistributeTranspiler()
at = os.environ.get
t.transpile(int(at("PADDLE_TRAINER_ID", 0)), pservers=at(
    "PADDLE_PSERVER_ENDPOINTS"), trainers=int(at("PADDLE_TRAINERS")))
exe = fluid.Executor(fluid.CPUPlace())
if at("TRAINING_ROLE") == "PSERVER":
    me = at("PADDLE_CURRENT_ENDPOINT")
    program = t.get_pserver_program(me)
    exe.run(t.get_startup_program(me, program))
    exe.run(program)
else:
    exe.run(fluid.default_startup_program())
    for _ in range(5):
        got, = exe.run(t.get_trainer_program(), fetch_list=[loss], feed={
            "x": np.ones((4, 13), "float32"), "y": np.ones((4, 1), "float32")})
    exe.close()
    print("loss", got)
"""

# A Secret as Kubernetes mounts it: files of root and of the group of fsGroup,
# in a folder that everybody may write to.
SSH = """
mkdir -p /etc/ssh/keys; chmod 1777 /etc/ssh/keys
ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/keys/id_ed25519
mv /etc/ssh/keys/id_ed25519.pub /etc/ssh/keys/authorized_keys
chown root:1000 /etc/ssh/keys/*; chmod 440 /etc/ssh/keys/*
/usr/sbin/sshd -e
cat >/home/tutorial/train.py </tmp/train.py
cp /tmp/start_mpi_train.sh /home/tutorial; echo 127.0.0.1 slots=3 >/home/tutorial/machines
chown -R tutorial: /home/tutorial
su tutorial -c 'ssh 127.0.0.1 "paddle version && cd /home/tutorial && \
mpirun -hostfile machines -n 3 --oversubscribe /home/tutorial/start_mpi_train.sh && cat logs/workerlog.*"'
"""


def main():
    if os.geteuid() or not shutil.which("debootstrap"):
        sys.exit("image: needs root and debootstrap: scripts/deps cluster")
    wheel = os.path.join(BUILD, "dist")
    base = os.environ.get("IMAGE_BASE") or tempfile.mkdtemp(prefix="base-")
    if not os.path.exists(os.path.join(base, "etc", "debian_version")):
        run("debootstrap", "--variant=minbase", "bookworm", base,
            stdout=subprocess.DEVNULL)
    os.chmod(base, 0o755)  # it is / of users that are not root
    with tempfile.TemporaryDirectory() as context:
        for path in glob.glob(os.path.join(wheel, "*.whl")):
            shutil.copy(path, context)
        with open(os.path.join(context, "train.py"), "w") as f:
            f.write(TRAIN)
        subprocess.run([os.path.join(BUILD, "bin", "paddle"), "k8s",
                        "train.py"], cwd=context, check=True)
        with Image(base, os.path.join(context, "k8s", "Dockerfile"),
                   context) as image:
            image.try_in("paddle version; paddle launch --server_num 1 "
                         "--worker_num 2 --log_dir /tmp/logs train.py; "
                         "ls k8s/job.yaml; ! grep -r 'PRIVATE KEY' .")
        scripts = os.path.join(ROOT, "scripts", "cluster_train_v2")
        with Image(base, os.path.join(scripts, "Dockerfile"), wheel) as image:
            shutil.copy(os.path.join(context, "train.py"), image.path("/tmp"))
            shutil.copy(os.path.join(scripts, "openmpi",
                                     "start_mpi_train.sh"), image.path("/tmp"))
            image.try_in(SSH)
    if not os.environ.get("IMAGE_BASE"):
        shutil.rmtree(base)
    print("image: ok")


if __name__ == "__main__":
    main()
