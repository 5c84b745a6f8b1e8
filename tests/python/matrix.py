# SPDX-License-Identifier: Apache-2.0
"""The scenes of the kill matrix, several at a time.

    python matrix.py BUILD [WORKERS [word ...]]

(`make kill-matrix WORKERS=4 T=table`) starts pytest WORKERS times, by default
twice for each core: the scenes wait more than they compute. With words, only
scenes are run whose name contains one of them. Every pytest finds the same
scenes and runs those that no other one has claimed; this file is its plugin for
that. A scene has its own folder, ports and state, a worker its own TMPDIR.

The workers share a folder: the empty file N is the claim of the Nth scene, and
N.json has its result. Each worker begins at another place of the list, so that
the undisturbed jobs, with which scenes are compared, are seldom run twice.
"""
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from cluster import ROOT, end_with_parent

FILES = ["tests/python/test_%s.py" % name for name in (
    "recovery", "positions", "kills", "snapshots", "host", "state",
    "v2_recovery")]
QUIET = 60  # seconds without a result after which the running scenes are named


# --- a worker: pytest with this file as a plugin -----------------------------

class Worker:
    """Hooks of pytest; place: the worker's number and how many there are."""

    def __init__(self, folder, place):
        self._folder, self._place = folder, place
        self._seen = collections.defaultdict(list)  # reports of a scene

    def _write(self, name, what):
        """A file that is never seen in part."""
        path = os.path.join(self._folder, "%s.%d" % (name, self._place[0]))
        with open(path, "w") as f:
            json.dump(what, f)
        os.rename(path, os.path.join(self._folder, name))

    def _claim(self, number):
        try:
            os.close(os.open(os.path.join(self._folder, str(number)),
                             os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def pytest_runtestloop(self, session):
        """In place of pytest's own loop over all tests. One scene is claimed
        ahead: pytest must know it to keep what both use."""
        scenes = session.items
        self._names = [scene.nodeid for scene in scenes]
        self._write("names", self._names)
        first = len(scenes) * self._place[0] // self._place[1]
        order = [*range(first, len(scenes)), *range(first)]
        mine = (scenes[i] for i in order if self._claim(i))
        scene = next(mine, None)
        while scene:
            ahead = next(mine, None)
            scene.config.hook.pytest_runtest_protocol(item=scene,
                                                      nextitem=ahead)
            scene = ahead
        return True

    def pytest_runtest_logreport(self, report):
        seen = self._seen[report.nodeid]
        seen.append(report)
        if report.when != "teardown":
            return
        bad = [r for r in seen if r.failed]
        skipped = [r.longrepr[2] for r in seen if r.skipped]
        self._write("%d.json" % self._names.index(report.nodeid), {
            "name": report.nodeid,
            "how": "FAIL" if bad else "skip" if skipped else "ok",
            "seconds": sum(r.duration for r in seen),
            "text": "\n".join([r.longreprtext + "\n" + r.capstdout + r.capstderr
                               for r in bad] or skipped)})
        del self._seen[report.nodeid]


def pytest_configure(config):
    if "FLUID_MATRIX" in os.environ:
        folder, number, workers = os.environ["FLUID_MATRIX"].split(":")
        config.pluginmanager.register(
            Worker(folder, (int(number), int(workers))))


# --- what starts the workers -------------------------------------------------

def start_worker(build, folder, number, workers, words):
    own = os.path.join(folder, "worker%d" % number)
    os.mkdir(own)
    env = {**os.environ, "FLUID_KILL_MATRIX": "1", "FL_BUILD_DIR": build,
           "FLUID_MATRIX": "%s:%d:%d" % (folder, number, workers),
           "TMPDIR": own, "PYTHONPATH": os.pathsep.join(
               [os.path.join(ROOT, "tests/python"),
                *filter(None, [os.environ.get("PYTHONPATH")])])}
    with open(own + ".log", "w") as log:
        return subprocess.Popen(
            ["tests/python/run", "-p", "matrix", *FILES,
             *(["-k", " or ".join(words)] if words else [])],
            cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, preexec_fn=end_with_parent)


def read(folder, name, otherwise=None):
    try:
        with open(os.path.join(folder, name)) as f:
            return json.load(f)
    except FileNotFoundError:
        return otherwise


def repeat(build, name):
    """The command that runs one scene alone."""
    return "FLUID_KILL_MATRIX=1 FL_BUILD_DIR=%s tests/python/run '%s'" % (
        os.path.relpath(build, ROOT), name)


def show(result, build, place):
    print("%-4s %s %6.1f s  %s" % (
        result["how"], place, result["seconds"],
        result["name"].removeprefix("tests/python/test_")))
    if result["how"] == "FAIL":
        print(re.sub(r"^", "    ", result["text"].rstrip(), flags=re.M))
        print("    repeat it with: " + repeat(build, result["name"]))
    elif result["how"] == "skip":
        print("     skipped: " + result["text"])
    sys.stdout.flush()


def running(folder, names, done):
    """Scenes that were begun, or are the next of their worker."""
    return [(time.time() - os.stat(os.path.join(folder, str(i))).st_mtime, name)
            for i, name in enumerate(names) if name not in done
            and os.path.exists(os.path.join(folder, str(i)))]


def follow(build, folder, workers):
    """Show each result as it comes until all workers have ended."""
    done, heard = {}, time.monotonic()
    names, ended = [], False
    while not ended:
        ended = all(w.poll() is not None for w in workers)
        names = names or read(folder, "names", [])
        for i, name in enumerate(names):
            result = None if name in done else read(folder, "%d.json" % i)
            if result:
                done[name] = result
                show(result, build, "%4d of %d" % (len(done), len(names)))
                heard = time.monotonic()
        if time.monotonic() > heard + QUIET:
            heard = time.monotonic()
            for seconds, name in running(folder, names, done):
                print("     %d s since it was claimed: %s" % (seconds, name))
            sys.stdout.flush()
        time.sleep(0 if ended else 0.5)
    return names, done


def lost(folder, names, workers):
    """A line for what no worker has reported, which is a failure, too."""
    for i, worker in enumerate(workers):
        if worker.returncode not in (0, 1) or not names:
            with open(os.path.join(folder, "worker%d.log" % i)) as f:
                yield "worker %d ended with %d:\n%s" % (i, worker.returncode,
                                                        f.read())


def main(build, workers=None, *words):
    build = os.path.abspath(build)
    n = int(workers or 2 * os.cpu_count())
    folder = tempfile.mkdtemp(prefix="fluid-matrix")
    started = [start_worker(build, folder, i, n, words) for i in range(n)]
    names, done = follow(build, folder, started)
    for text in lost(folder, names, started):
        print(text)
    failed = [name for name in names
              if done.get(name, {"how": "FAIL"})["how"] == "FAIL"]
    for name in failed:
        print("%s: %s" % ("failed" if name in done else "no result",
                          repeat(build, name)))
    how = [result["how"] for result in done.values()]
    bad = failed or not names
    if bad:
        print("what the scenes have left is in " + folder)
    else:
        shutil.rmtree(folder)
    print("%d passed, %d failed" % (how.count("ok"),
                                    len(failed) if names else 1) +
          (", %d skipped" % how.count("skip") if "skip" in how else ""))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
