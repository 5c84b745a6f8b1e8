# SPDX-License-Identifier: Apache-2.0
"""Jobs of counted_job.py whose processes are killed, and started again by the
same command until the job has ended. The model must be that of a job that
nobody disturbed, with one exception (docs/recovery.md): if a server and the
trainer of an unacknowledged push die together, a part of the push may be in the
model of an asynchronous job. The server's log then says so.

    python kills.py MINUTES [SEED]

kills and stops processes at random for so many minutes, one job after the other
(make random-kills MINUTES=10). Processes of every second job of a kind are
started again by `paddle launch`, which is killed as well, with all of them.
"""
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import counted_job
from cluster import Cluster, Process, own_addresses

KINDS = ["sync", "async", "sync-table", "async-table", "async-groups",
         "async-groups-table"]
SECONDS = 600  # for a job; waits that only their limit would end take longer
ENV = {"FLUID_LINGER": "0.1", "FLUID_REJOIN": "1000", "FLUID_LEASE": "4",
       "FLUID_DURABILITY": "process", "FLUID_RESTART": "1000"}
SERVERS = TRAINERS = 2


def scene_word(value):
    """A part of a scene in the name of its test: {"server0": ["owner.live:4",
    "owner.live:1"]} becomes server0@owner.live:4+owner.live:1."""
    if isinstance(value, dict):
        return ",".join("%s@%s" % (key, scene_word(x))
                        for key, x in value.items()) or "-"
    return "+".join(value) if isinstance(value, list) else str(value)


class Job(Cluster):
    """A job whose killed processes are started again. killed: failpoints of
    the processes of each role, in the order of their starts, by name."""

    def __init__(self, folder, kind, killed=None, passes=2, lines=18):
        files = counted_job.write_files(folder, 6, lines)
        super().__init__(folder, counted_job.__file__, SERVERS, TRAINERS,
                         seconds=SECONDS, env=ENV,
                         argv=[kind, str(passes), *files])
        self._killed = {name: list(at) for name, at in (killed or {}).items()}

    def start_role(self, name):
        """Start it, or start it again."""
        at = self._killed.get(name)
        env = {"FLUID_FAILPOINT": at.pop(0) if at else None}
        start = self.start_server if name[0] == "s" else self.start_trainer
        return start(int(name[-1]), **env)

    def roles(self):
        """The present process of each role."""
        return {**{"server%d" % i: p for i, p in enumerate(self.server)},
                **{"trainer%d" % i: p for i, p in enumerate(self.trainer)}}

    def running(self):
        return [p for p in self.roles().values() if p.code() is None]

    def kills(self):
        return sum(p.code() == -signal.SIGKILL for p in self.started)

    def has_ended(self, p):
        """Whether it has ended well, or had nothing left to do when it was
        killed: a trainer had completed, a server had removed its state."""
        if p.name[0] == "s":
            mine = p.name.split("-")[0].replace("server", "server-")
            return p.code() == 0 or (
                p.code() == -signal.SIGKILL and self.is_decided()
                and not any(name.endswith(mine) for name in self.states()))
        return p.code() == 0 or self.is_over() or (
            p.code() == 1 and "has completed: its id" in p.text())

    def said(self):
        """What all servers have said."""
        return "".join(p.text() for p in self.started if p.name[0] == "s")

    def is_decided(self):
        """Whether some server has said that all trainers have completed."""
        return "the job ends with code 0" in self.said()

    def states(self):
        """Folders that are the state of a server."""
        folder = os.path.join(self.folder, "state")
        return [name for name in os.listdir(folder)
                if os.path.exists(os.path.join(folder, name, "head"))]

    def rests(self):
        """Folders of servers that were killed while they removed their state,
        and were not started again."""
        killed = [p.name.split("-")[0].replace("server", "server-")
                  for p in self.server if p.code() == -signal.SIGKILL]
        return [path for path in glob.glob(
            os.path.join(self.folder, "state", "*"))
            if any(path.endswith(name) for name in killed)
            and not os.path.exists(os.path.join(path, "head"))]

    def is_over(self):
        """Whether all servers have ended, which they do when every trainer has
        completed. One that was killed after that, and started again, waits for
        servers in vain; it is ended with the cluster."""
        return all(map(self.has_ended, self.server))

    def play(self, disturb=lambda job: None):
        """Until all have ended well; gives the digest of the model."""
        for name in self.roles():
            self.start_role(name)
        limit = time.monotonic() + self.seconds
        while not all(map(self.has_ended, self.roles().values())):
            assert time.monotonic() < limit, "the job does not end"
            for name, p in self.roles().items():
                if p.code() is None or self.has_ended(p):
                    continue  # in this order: it may end between the two
                assert p.code() == -signal.SIGKILL, "%s ended with %s" % (
                    p.name, p.code())
                self.start_role(name)
            disturb(self)
            time.sleep(0.01)
        assert not self.states()
        return model_digest(self.folder)


def has_part_of_push(job, kind):
    """Whether a server has said that a push is in the model in part."""
    return "async" in kind and "its trainer and this server died together" in \
        job.said()


def model_digest(folder):
    return subprocess.run(
        ["paddle", "digest", os.path.join(folder, "model")], check=True,
        text=True, stdout=subprocess.PIPE).stdout.split()[0]


class Child:
    """A process that somebody else has started, and starts again."""

    def __init__(self, pid):
        self.pid = pid

    def send(self, number):
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass

    def go_on(self):
        self.send(signal.SIGCONT)


class LaunchedJob:
    """A job whose killed processes the launcher starts again. If the launcher
    is killed with all of them, the same command is given again."""

    def __init__(self, folder, kind, passes=2, lines=18):
        self.folder, self._launches, self._kills = str(folder), [], 0
        files = counted_job.write_files(folder, 6, lines)
        here = own_addresses()[0]  # the same ports each time, and nobody else's
        self._argv = [
            "paddle", "launch", "--endpoints", ",".join(
                "%s:%d" % (here, 6170 + i) for i in range(SERVERS)),
            "--worker_num", str(TRAINERS), "--max_restarts", "1000",
            counted_job.__file__, kind, str(passes), *files]
        self._env = {**os.environ, **ENV, "FLUID_STATE_DIR": self._state()}

    def _state(self):
        return os.path.join(self.folder, "state")

    def _launch(self):
        self.launcher = Process("launch-%d" % len(self._launches), self._argv,
                                self.folder, self._env, SECONDS)
        self._launches.append(self.launcher)

    def _children(self):
        """Processes that the launcher has started: {id: whether it has a role}.
        Servers and trainers have one, once they run their program; the guard
        has none."""
        found = {}
        for path in glob.glob("/proc/[0-9]*"):
            try:
                with open(path + "/stat") as f:
                    state, parent = f.read().rpartition(")")[2].split()[:2]
                with open(path + "/environ", "rb") as f:
                    role = b"TRAINING_ROLE=" in f.read()
            except OSError:
                continue  # it has ended
            if int(parent) == self.launcher.pid and state != "Z":
                found[int(os.path.basename(path))] = role
        return found

    def running(self):
        """Servers and trainers."""
        return [Child(pid) for pid, role in self._children().items() if role]

    def kill_launcher(self):
        """With all its processes, so that it starts none of them again, and
        nothing tells them to end."""
        self.launcher.stop()
        while list(self._children().values()).count(False) > 1:
            time.sleep(0.01)  # one has just been started
        for p in self.running():
            p.send(signal.SIGKILL)
            self._kills += 1
        self.launcher.kill()

    def kills(self):
        """Processes that were killed, launchers too."""
        said = "".join(p.text() for p in self._launches)
        return self._kills + len(re.findall("signal 9 .*started again", said)) \
            + sum(p.code() == -signal.SIGKILL for p in self._launches)

    def rests(self):
        """Folders of servers that were killed while they removed their state,
        or whose launcher was killed with them."""
        found = glob.glob(os.path.join(self._state(), "*"))
        if self.launcher.code() == -signal.SIGKILL:
            return found
        said = "".join(p.text() for p in self._launches)
        return [path for path in found
                if "killed when its job had ended" in said
                and not os.path.exists(os.path.join(path, "head"))]

    def said(self):
        """What all servers have said."""
        logs = glob.glob(os.path.join(self.folder, "logs", "**", "serverlog.*"),
                         recursive=True)
        return "".join(map(read_text, logs))

    def is_decided(self):
        """Whether some server has said that all trainers have completed."""
        return "the job ends with code 0" in self.said()

    def play(self, disturb=lambda job: None):
        """Until the job has ended well; gives the digest of the model."""
        limit = time.monotonic() + SECONDS
        self._launch()
        while self.launcher.code() != 0:
            assert time.monotonic() < limit, "the job does not end"
            if self.launcher.code() is not None and self.is_decided():
                # A trainer that is killed now is not started again.
                assert self.launcher.code() in (-signal.SIGKILL,
                                                128 + signal.SIGKILL)
                return model_digest(self.folder)
            if self.launcher.code() is not None:
                self.launcher.end(code=-signal.SIGKILL)
                self._launch()
            disturb(self)
            time.sleep(0.01)
        assert len(os.listdir(self._state())) == len(self.rests())
        return model_digest(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        for p in self._launches:
            if kind is not None:
                sys.stderr.write(p.text())
            p.terminate()  # it ends its processes
            p.end(code=None)


def peak_of(process):
    """MB of memory that it has had at most; 0: it has ended."""
    try:
        status = read_text("/proc/%d/status" % process.pid)
    except OSError:
        return 0
    most = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(most.group(1)) // 1024 if most else 0


def read_text(path):
    with open(path, errors="replace") as f:
        return f.read()


class Disturbance:
    """Kills and stops processes of a job at random times, so often that the job
    still ends on a slow machine."""

    WEIGHTS = {"kill": 10, "stop": 3, "all": 1}
    LAUNCHED = {"kill": 5, "stop": 3, "all": 2, "launcher": 2}

    def __init__(self, dice, pause):
        self._dice, self._pause, self._due = dice, pause, 0
        self._stopped, self._left = [], 0
        self._measured = 0
        self.peak = 0  # MB of the largest process of the job
        self.counts = dict.fromkeys(self.LAUNCHED, 0)

    def __call__(self, job):
        now = time.monotonic()
        if now > self._measured + 0.3:
            self._measured = now
            self.peak = max(self.peak, *map(peak_of, job.running()), 0)
        for until, p in [s for s in self._stopped if s[0] <= now]:
            p.go_on()
            self._stopped.remove((until, p))
        if now < self._due or not self._left:
            return
        running = job.running()
        if not running:
            return
        self._left -= 1
        self._due = now + self._dice.uniform(*self._pause)
        weights = self.LAUNCHED if hasattr(job, "launcher") else self.WEIGHTS
        what = self._dice.choices([*weights], weights.values())[0]
        p = self._dice.choice(running)
        if what == "stop" and p.pid in [s.pid for _, s in self._stopped]:
            what = "kill"  # it is stopped already
        self.counts[what] += 1
        if what == "launcher":
            return job.kill_launcher()
        if what == "stop":
            p.send(signal.SIGSTOP)
            self._stopped.append((now + self._dice.uniform(0.1, 6), p))
            return
        for p in running if what == "all" else [p]:
            p.send(signal.SIGKILL)

    def begin(self):
        """With the next job."""
        self.peak = 0
        self._left = self._dice.randint(2, 7)

    def end(self):
        for _, p in self._stopped:
            p.go_on()
        self._stopped.clear()


def calm_digest(kind, **size):
    folder = tempfile.mkdtemp()
    try:
        with Job(folder, kind, **size) as job:
            return job.play()
    finally:
        shutil.rmtree(folder)


def files_left(folder, rests=()):
    """What neither the script nor the logs nor the model account for. rests:
    folders that are left by right."""
    known = re.compile(r"data-\d+\.txt|trained-\d+|\S+\.log|logs|model")
    return [os.path.join(path, name)
            for path, folders, names in os.walk(folder)
            for name in (names if path != folder else folders + names)
            if not known.fullmatch(name) and "model" not in path
            and "logs" not in path and name != "state"
            and not {path, os.path.join(path, name)} & set(rests)]


class RandomKills:
    """Jobs one after the other, each disturbed at random times."""

    def __init__(self, seed, kinds, pause, size):
        self._seed, self._kinds, self._size = seed, kinds, size
        self._disturb = Disturbance(random.Random(seed), pause)
        self._calm, self._kills = {}, 0
        self._splits = 0  # jobs whose model has a part of a push
        self.peaks = []  # MB of the largest process of each job

    def play_one(self):
        """Play a job; gives what was done to it, in words."""
        number, began = len(self.peaks), time.monotonic()
        kind = self._kinds[number % len(self._kinds)]
        if kind not in self._calm:
            self._calm[kind] = calm_digest(kind, **self._size)
        make = LaunchedJob if number // len(self._kinds) % 2 else Job
        folder = tempfile.mkdtemp()
        with make(folder, kind, **self._size) as job:
            self._disturb.begin()
            try:
                got = job.play(self._disturb)
            finally:
                self._disturb.end()
            killed, split = job.kills(), has_part_of_push(job, kind)
            left = files_left(folder, job.rests())
        where = "%s of %s, seed %d, job %d: %%s; %s" % (
            make.__name__, kind, self._seed, number, folder)
        assert split or got == self._calm[kind], where % "another model"
        self._splits += split
        assert not left, where % left
        shutil.rmtree(folder)
        self._kills += killed
        self.peaks.append(self._disturb.peak)
        return "job %d: %s of %s, %d processes killed, %.1f s" % (
            number, make.__name__, kind, killed, time.monotonic() - began)

    def told(self):
        count, half = self._disturb.counts, (len(self.peaks) + 1) // 2
        return ("seed %d: %d jobs, %d processes killed (%d times all at once, "
                "%d times with the launcher), %d stopped; all models equal%s, no "
                "file left; the largest process had %d MB in the first half of "
                "the jobs, %d MB in the second" % (
                    self._seed, len(self.peaks), self._kills, count["all"],
                    count["launcher"], count["stop"],
                    " but %d with a part of a push, as their servers said" %
                    self._splits if self._splits else "",
                    max(self.peaks[:half]),
                    max(self.peaks[half:], default=0)))


def random_kills(seconds, seed, kinds=KINDS, pause=(0.2, 2.5), jobs=1,
                 say=lambda line: None, **size):
    """So many seconds and jobs at least; gives what was done, in words."""
    played = RandomKills(seed, kinds, pause, size)
    end = time.monotonic() + seconds
    while len(played.peaks) < jobs or time.monotonic() < end:
        say(played.play_one())
    return played.told()


if __name__ == "__main__":
    print(random_kills(60 * float(sys.argv[1]),
                       int(sys.argv[2]) if sys.argv[2:] else
                       random.SystemRandom().randrange(10**6),
                       say=lambda line: print(line, flush=True)))
