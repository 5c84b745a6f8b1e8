# SPDX-License-Identifier: Apache-2.0
"""Jobs of counted_job.py whose processes are killed, and started again by the
same command until the job has ended. The model must be that of a job that
nobody disturbed.

    python kills.py MINUTES [SEED]

kills and stops processes at random for so many minutes, one job after the other
(make random-kills MINUTES=10).
"""
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import counted_job
from cluster import Cluster

KINDS = ["sync", "async", "sync-table", "async-table", "async-groups",
         "async-groups-table"]
ENV = {"FLUID_LINGER": "0.1", "FLUID_REJOIN": "300", "FLUID_LEASE": "4",
       "FLUID_DURABILITY": "process", "FLUID_RESTART": "300"}
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
                         seconds=600, env=ENV,
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

    def is_decided(self):
        """Whether some server has said that all trainers have completed."""
        return any("the job ends with code 0" in p.text()
                   for p in self.started if p.name[0] == "s")

    def states(self):
        """Folders that are the state of a server."""
        folder = os.path.join(self.folder, "state")
        return [name for name in os.listdir(folder)
                if os.path.exists(os.path.join(folder, name, "head"))]

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
        return subprocess.run(
            ["paddle", "digest", os.path.join(self.folder, "model")],
            check=True, text=True, stdout=subprocess.PIPE).stdout.split()[0]


class Disturbance:
    """Kills and stops processes of a job at random times, so often that the job
    still ends on a slow machine."""

    def __init__(self, dice, pause):
        self._dice, self._pause, self._due = dice, pause, 0
        self._stopped, self._left = [], 0
        self.counts = {"kill": 0, "stop": 0, "all": 0}

    def __call__(self, job):
        now = time.monotonic()
        for until, p in [s for s in self._stopped if s[0] <= now]:
            p.go_on()
            self._stopped.remove((until, p))
        running = [p for p in job.roles().values() if p.code() is None]
        if now < self._due or not self._left or not running:
            return
        self._left -= 1
        self._due = now + self._dice.uniform(*self._pause)
        what = self._dice.choices(["kill", "stop", "all"], [10, 3, 1])[0]
        self.counts[what] += 1
        if what == "stop":
            p = self._dice.choice(running)
            p.send(signal.SIGSTOP)
            self._stopped.append((now + self._dice.uniform(0.1, 6), p))
            return
        for p in running if what == "all" else [self._dice.choice(running)]:
            p.send(signal.SIGKILL)

    def begin(self):
        """With the next job."""
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


def random_kills(seconds, seed, kinds=KINDS, pause=(0.2, 2.5), **size):
    """One job after the other; gives what was done, in words."""
    dice, calm, jobs, kills = random.Random(seed), {}, 0, 0
    disturb = Disturbance(dice, pause)
    end = time.monotonic() + seconds
    while jobs < 1 or time.monotonic() < end:
        kind = kinds[jobs % len(kinds)]
        calm.setdefault(kind, calm_digest(kind, **size))
        folder = tempfile.mkdtemp()
        with Job(folder, kind, **size) as job:
            disturb.begin()
            try:
                got = job.play(disturb)
            finally:
                disturb.end()
            kills += job.kills()
        assert got == calm[kind], "%s, seed %d, job %d: another model; %s" % (
            kind, seed, jobs, folder)
        shutil.rmtree(folder)
        jobs += 1
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    return ("seed %d: %d jobs, %d processes killed (%d times all at once), %d "
            "stopped; all models equal, no state left; the largest process "
            "had %d MB" % (seed, jobs, kills, disturb.counts["all"],
                           disturb.counts["stop"], most))


if __name__ == "__main__":
    print(random_kills(60 * float(sys.argv[1]),
                       int(sys.argv[2]) if sys.argv[2:] else
                       random.SystemRandom().randrange(10**6)))
