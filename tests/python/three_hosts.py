# SPDX-License-Identifier: Apache-2.0
"""Two synchronous jobs of three servers and three trainers, for every way to
start jobs on three hosts: word2vec of the v2 API, and the click job of Fleet.
Wherever they run they leave the same bits.

    job = JOBS["word2vec"](tmp_path)     # makes job.package, a workspace
    job.known                            # what a job of one machine leaves
    job.check(workspace, logs)           # of host 0, and of all trainers
"""
import os
import re
import shutil
import subprocess
import sys

from cluster import BUILD, FOREIGN, ROOT, Process

PADDLE = os.path.join(BUILD, "bin", "paddle")
ENV = {**{k: v for k, v in os.environ.items() if not FOREIGN.match(k)},
       "PATH": os.path.dirname(PADDLE) + ":" + os.path.dirname(sys.executable)
       + ":" + os.environ["PATH"],
       "PYTHONPATH": os.path.join(BUILD, "python"),
       "PYTHONDONTWRITEBYTECODE": "1", "FLUID_LINGER": "0.2"}
HOSTS = 3
EXAMPLES = os.path.join(ROOT, "examples")


def changed(path, *changes):
    """The text of an example with a few words changed."""
    with open(path) as f:
        text = f.read()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def bits(path):
    """A file, or the parameters of a saved folder by name: its program knows
    the path of the script."""
    if path.is_dir():
        return {p.name: p.read_bytes() for p in path.iterdir()
                if p.name not in ("__model__", "__manifest__")}
    return path.read_bytes()


class Job:
    """A package in a folder, and what its job leaves on one machine."""

    def __init__(self, folder):
        self.package = folder / "package"
        self.package.mkdir(parents=True)
        self.make()
        work = folder / "known"
        shutil.copytree(self.package, work)
        with Process("launch", [
                PADDLE, "launch", "--server_num", str(HOSTS), "--worker_num",
                str(HOSTS), "--python", sys.executable, *self.words],
                str(work), ENV) as job:
            job.end()
        self.known = bits(work / self.model)
        self.costs = self.costs_of(work / "logs")

    def python(self, *words):
        subprocess.run([sys.executable, *words], cwd=self.package, env=ENV,
                       check=True)

    def costs_of(self, logs):
        """What each trainer said of its cost on test."""
        return [re.findall("cost on test .*", (
            logs / ("workerlog.%d" % i)).read_text()) for i in range(HOSTS)]

    def check(self, workspace, logs):
        assert bits(workspace / self.model) == self.known
        assert self.costs_of(logs) == self.costs and self.costs[0]


class Word2vec(Job):
    words, model = ["train.py"], "output/pass-00000.tar"
    folder = os.path.join(EXAMPLES, "word2vec")

    def make(self):
        (self.package / "text").write_text(
            "the quick dog sees the old cat today.\n" * 40
            + "a small bird likes a red tree again.\n" * 40)
        # The scripts are the document's, which gives them no flags.
        (self.package / "prepare.py").write_text(changed(
            os.path.join(self.folder, "prepare.py"),
            ('"--text", help', '"--text", default="text", help'),
            ("default=30", "default=2")))
        (self.package / "train.py").write_text(changed(
            os.path.join(self.folder, "train.py"),
            ('("drop", 0.5,', '("drop", 0.0,')))
        self.python("prepare.py")


TEST = """
    test(folder)


def test(folder):
    with fluid.scope_guard(fluid.Scope()):
        exe = fluid.Executor(fluid.CPUPlace())
        program, names, targets = fluid.io.load_inference_model(
            os.path.join(folder, "model"), exe)
        with open(parts(folder)[1][0]) as f:
            rows = np.array([line.split()[1::2] for line in f], "int64")
        predict, = exe.run(program, feed={
            name: fluid.create_lod_tensor(rows[:, i:i + 1], [[1] * len(rows)],
                                          fluid.CPUPlace())
            for i, name in enumerate(names)}, fetch_list=targets)
    right = predict[np.arange(len(rows)), rows[:, -1]]
    print("cost on test", (-np.log(right)).mean().tobytes().hex())
"""


class Clicks(Job):
    """Trainer 0 tests the model that it has saved."""
    words, model = ["train.py", "train", "data"], "data/model"

    def make(self):
        saved = '        print("the model is in %s" % model)\n'
        (self.package / "train.py").write_text(changed(
            os.path.join(EXAMPLES, "clicks.py"),
            ("sync_mode = False", "sync_mode = True"),
            ("    feeds, predict, loss, auc = network()\n",
             "    fluid.default_startup_program().random_seed = 1\n"
             "    feeds, predict, loss, auc = network()\n"),
            (saved, saved + "    " + TEST[1:])))
        self.python("train.py", "make", "data", "200")


JOBS = {"word2vec": Word2vec, "clicks": Clicks}
