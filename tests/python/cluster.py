# SPDX-License-Identifier: Apache-2.0
"""Servers and trainers as real processes, for tests.

    with Cluster(tmp_path, SCRIPT, servers=2, trainers=2) as job:
        job.start()
        job.trainer[1].kill()
        job.finish(but=[job.trainer[1]])

The script is the text of a Python file, or a path. Each process has a role in
its environment, a log of its own and a time limit. Ports are the system's
choice, and held until the job ends, so that nobody else gets one. When `with`
ends, no process is left; when it ends with a failure, the logs are printed.

    python cluster.py [--servers N] [--trainers N] [--seconds S] script [word ...]

does the same from a shell: exit code 1 if a process ended badly.
"""
import argparse
import ctypes
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("FL_BUILD_DIR",
                                       os.path.join(ROOT, "build")))
# What the caller's own job may have set must not leak into this one.
FOREIGN = re.compile("PADDLE_|FLAGS_|TRAIN|PSERVER|POD_IP|SERVER_ENDPOINT|"
                     "CURRENT_ENDPOINT")
TAIL = 60  # lines of a log that are printed
LIMIT = 300  # seconds after which a process that goes on is one that hangs
PR_SET_PDEATHSIG = 1


class Failed(AssertionError):
    """A process did not do what the test expects of it."""


def end_with_parent(libc=ctypes.CDLL(None)):
    """A test that is killed takes its processes along."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Process:
    """A process of a job, leader of a group of its own."""

    def __init__(self, name, argv, folder, env, seconds=LIMIT):
        self.name, self.seconds = name, seconds
        self.log = os.path.join(folder, name + ".log")
        with open(self.log, "w") as log:
            self._child = subprocess.Popen(
                argv, cwd=folder, env=env, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=end_with_parent)
        self.pid = self._child.pid

    def text(self):
        """What it has said so far."""
        with open(self.log, errors="replace") as f:
            return f.read()

    def code(self):
        """Its exit code; -9 if signal 9 ended it; None while it runs."""
        return self._child.poll()

    def says(self, pattern, seconds=None):
        """Wait until it has said this; gives the match."""
        found = []

        def heard():
            found[:] = [m] if (m := re.search(pattern, self.text(), re.M)) \
                else []
            return found or self.code() is not None

        self._until(heard, seconds, "never said /%s/" % pattern)
        if not found:
            heard()  # its last words
        if not found:
            raise Failed("%s ended with %s and never said /%s/"
                         % (self.name, self.code(), pattern))
        return found[0]

    def end(self, code=0, seconds=None):
        """Wait until it has ended, and with this code; None: any."""
        self._until(lambda: self.code() is not None, seconds, "still runs")
        if code is not None and self.code() != code:
            raise Failed("%s ended with %d, expected %d"
                         % (self.name, self.code(), code))
        return self.code()

    def _until(self, done, seconds, what):
        seconds = self.seconds if seconds is None else seconds
        limit = time.monotonic() + seconds
        while not done():
            if time.monotonic() > limit:
                raise Failed("%s %s after %g s" % (self.name, what, seconds))
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.clear()

    # --- what may happen to it ---

    def send(self, number):
        """A signal, if it still runs."""
        if self.code() is None:
            os.kill(self.pid, number)

    def kill(self):
        """As kill -9, and wait for its end."""
        self.send(signal.SIGKILL)
        self.end(code=None)

    def terminate(self):
        self.send(signal.SIGTERM)

    def interrupt(self):
        self.send(signal.SIGINT)

    def stop(self):
        """Freeze it, and wait until it is."""
        self.send(signal.SIGSTOP)
        self.stopped()

    def stopped(self):
        """Wait until it has stopped, by a signal or at a failpoint."""
        self._until(lambda: self._state() in "TtXZ", None, "does not stop")

    def go_on(self):
        self.stopped()
        self.send(signal.SIGCONT)

    def _state(self):
        try:
            with open("/proc/%d/stat" % self.pid) as f:
                return f.read().rpartition(")")[2].split()[0]
        except OSError:
            return "X"

    def clear(self):
        """End it and its whole group."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._child.wait()


def hold_port(host, port=0):
    """A socket that holds a port of the host, one of the system's choice or a
    given one that nobody has. It does not listen. Only servers that know of
    it (FLUID_PORT_HELD=1) can bind the port besides, as with paddle launch."""
    s = socket.socket()
    try:
        s.bind((host, port))
    except OSError:
        s.close()
        raise
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return s


def own_addresses():
    """Two loopback addresses that no other test has: the number of this process
    is in them."""
    return ["127.%d.%d.%d" % (os.getpid() >> 16 & 63 | kind,
                              os.getpid() >> 8 & 255, os.getpid() & 255)
            for kind in (64, 192)]


_numbers = itertools.count()  # of the hosts that this process has made


class Hosts:
    """n hosts on a network of their own, made of network namespaces: the
    machine's own network does not change. For root, with iproute2."""

    def __init__(self, n):
        self._n = n
        self._name = "fluid%d.%d" % (os.getpid(), next(_numbers))
        self._ip("netns", "add", self._switch())
        self._ip("-n", self._switch(), "link", "add", "br0", "type", "bridge")
        self._ip("-n", self._switch(), "link", "set", "br0", "up")
        for i in range(n):
            self._add(i)

    @staticmethod
    def can_be():
        name = "fluid-probe%d" % os.getpid()
        return os.geteuid() == 0 and shutil.which("ip") and \
            not subprocess.run(["ip", "netns", "add", name],
                               capture_output=True).returncode and \
            not subprocess.run(["ip", "netns", "del", name],
                               capture_output=True).returncode

    def address(self, i):
        return "10.77.0.%d" % (i + 1)

    def enter(self, i):
        """Words in front of a command that runs on host i."""
        return ["ip", "netns", "exec", self._host(i)]

    def cut(self, i):
        """Host i hears nobody, and nobody is told."""
        self._ip("-n", self._switch(), "link", "set", "h%d" % i, "nomaster")

    def heal(self, i):
        self._ip("-n", self._switch(), "link", "set", "h%d" % i, "master",
                 "br0")

    def _switch(self):
        return self._name + "s"

    def _host(self, i):
        return "%sh%d" % (self._name, i)

    def _add(self, i):
        host = self._host(i)
        self._ip("netns", "add", host)
        self._ip("link", "add", "h%d" % i, "netns", self._switch(), "type",
                 "veth", "peer", "name", "eth0", "netns", host)
        self._ip("-n", self._switch(), "link", "set", "h%d" % i, "master",
                 "br0", "up")
        self._ip("-n", host, "link", "set", "lo", "up")
        self._ip("-n", host, "addr", "add", self.address(i) + "/24", "dev",
                 "eth0")
        self._ip("-n", host, "link", "set", "eth0", "up")

    @staticmethod
    def _ip(*words):
        subprocess.run(["ip", *words], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        for i in range(self._n):
            subprocess.run(["ip", "netns", "del", self._host(i)])
        subprocess.run(["ip", "netns", "del", self._switch()])


class Cluster:
    """A job. env: for all of its processes; argv: words after the script;
    hosts: where each runs, servers first (see Hosts); None: all on this one.
    """

    def __init__(self, folder, script, servers=1, trainers=1, env=None,
                 argv=(), seconds=LIMIT, host="127.0.0.1", hosts=None):
        self.folder = str(folder)
        self.servers, self.trainers = servers, trainers
        self.argv, self.seconds = argv, seconds
        self.env = {"FLUID_STATE_DIR": os.path.join(self.folder, "state"),
                    "FLUID_PORT_HELD": "0" if hosts else "1", **(env or {})}
        self._script = self._file(script)
        self._hosts = hosts
        self._held = [] if hosts else [hold_port(host)
                                       for _ in range(servers)]
        self.endpoints = ["%s:6174" % hosts.address(i)
                          for i in range(servers)] if hosts else \
            ["%s:%d" % s.getsockname() for s in self._held]
        self.server = [None] * servers  # the last that was started as such
        self.trainer = [None] * trainers
        self.started = []

    def _file(self, script):
        if "\n" not in str(script):
            return os.path.abspath(script)
        path = os.path.join(self.folder, "script.py")
        with open(path, "w") as f:
            f.write(script)
        return path

    def _environment(self, role, more):
        env = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
        env.update(
            PYTHONUNBUFFERED="1", PYTHONPATH=os.path.join(BUILD, "python"),
            PADDLE_TRAINING_ROLE=role, PADDLE_TRAINERS_NUM=str(self.trainers),
            PADDLE_PSERVER_ENDPOINTS=",".join(self.endpoints))
        if "PADDLE_DATA_HOME" in os.environ:
            env["PADDLE_DATA_HOME"] = os.environ["PADDLE_DATA_HOME"]
        for key, value in {**self.env, **more}.items():
            if value is None:
                env.pop(key, None)  # a variable that is not set
            else:
                env[key] = str(value)
        return env

    def _start(self, name, role, argv, more):
        at = int(name.strip("servtain")) + (role == "TRAINER") * self.servers
        enter = self._hosts.enter(at) if self._hosts else []
        again = sum(p.name.split("-")[0] == name for p in self.started)
        process = Process("%s-%d" % (name, again) if again else name,
                          [*enter, sys.executable, self._script,
                           *(self.argv if argv is None else argv)],
                          self.folder, self._environment(role, more),
                          self.seconds)
        self.started.append(process)
        return process

    def start_server(self, i, argv=None, **env):
        """Start server i, or start it again. A variable of None is unset."""
        self.server[i] = self._start("server%d" % i, "PSERVER", argv, {
            "PADDLE_CURRENT_ENDPOINT": self.endpoints[i], **env})
        return self.server[i]

    def start_trainer(self, i, argv=None, **env):
        """Start trainer i, or start it again; argv: words of its own."""
        self.trainer[i] = self._start("trainer%d" % i, "TRAINER", argv, {
            "PADDLE_TRAINER_ID": i, **env})
        return self.trainer[i]

    def start(self, trainers_first=False, **env):
        """Start every process, one kind after the other."""
        kinds = [(self.start_server, self.servers),
                 (self.start_trainer, self.trainers)]
        for start, n in reversed(kinds) if trainers_first else kinds:
            for i in range(n):
                start(i, **env)
        return self

    def finish(self, but=(), seconds=None):
        """Wait until all have ended well: trainers, then servers."""
        limit = time.monotonic() + (self.seconds if seconds is None
                                    else seconds)
        for process in self.trainer + self.server:
            if process is not None and process not in but:
                process.end(seconds=max(0.05, limit - time.monotonic()))

    # --- its end ---

    def logs(self):
        """The last lines of every process."""
        text = ""
        for p in self.started:
            lines = p.text().splitlines()[-TAIL:]
            text += "--- %s (%s) ---\n%s\n" % (
                p.name, "runs" if p.code() is None else
                "ended with %d" % p.code(), "\n".join(lines))
        return text

    def close(self):
        """End what still runs, and give the ports back."""
        for process in self.started:
            process.clear()
        for s in self._held:
            s.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            sys.stderr.write(self.logs())
        self.close()


class Ranks(Cluster):
    """A job without servers: its trainers are the ranks of a collective. On
    this host endpoints tell them so; on several hosts the four variables of
    the documents."""

    def __init__(self, folder, script, ranks, env=None, argv=(), hosts=None,
                 **more):
        super().__init__(folder, script, 0, ranks, env, argv, hosts=hosts,
                         **more)
        if hosts is None:
            self._held = [hold_port("127.0.0.1") for _ in range(ranks)]
            self.endpoints = ["%s:%d" % s.getsockname() for s in self._held]

    def _environment(self, role, more):
        rank = int(more["PADDLE_TRAINER_ID"])
        told = {"PADDLE_TRAINER_ENDPOINTS": ",".join(self.endpoints),
                "PADDLE_CURRENT_ENDPOINT": self.endpoints[rank]} \
            if self._hosts is None else \
            {"PADDLE_TRAINER_IPS": ",".join(self._hosts.address(i)
                                            for i in range(self.trainers)),
             "PADDLE_CURRENT_IP": self._hosts.address(rank),
             "PADDLE_PSERVER_PORT": "6175"}
        return super()._environment(role, {
            "PADDLE_TRAINING_ROLE": None, "PADDLE_TRAINERS_NUM": None,
            "PADDLE_PSERVER_ENDPOINTS": None, **told, **more})


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--servers", type=int, default=2)
    ap.add_argument("--trainers", type=int, default=2)
    ap.add_argument("--seconds", type=float, default=600)
    ap.add_argument("script")
    ap.add_argument("argv", nargs=argparse.REMAINDER)
    o = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            with Cluster(folder, o.script, o.servers, o.trainers, argv=o.argv,
                         seconds=o.seconds) as job:
                job.start().finish()
                sys.stdout.write(job.logs())
        except Failed as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
