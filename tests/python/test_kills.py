# SPDX-License-Identifier: Apache-2.0
"""Every failpoint, in every kind of process, in every kind of job: the model is
that of a job that nobody disturbed (kills.py names one exception). All of it is
`make kill-matrix`; otherwise a sample that depends on FLUID_KILL_SEED."""
import glob
import os
import random
import re

import pytest

import kills
import matrix
from cluster import ROOT

STAGED = ["stage.bytes", "stage.entry", "stage.count", "round.version",
          "round.dropped"]  # synchronous only
WINDOWS = ["owner.window", "owner.marked"]  # asynchronous only
TABLES = ["table.row", "table.count", "table.shelf", "table.redo",
          "table.dir"]  # with a table only
SERVER = ["image.written", "image.selected", "owner.task", "owner.begin",
          "owner.undo", "owner.live", "owner.applied", "owner.next", "owner.done",
          "end.over", "end.removed", *STAGED, *WINDOWS, *TABLES]
TRAINER = ["join.granted", "step.begin", "step.push", "step.sent", "step.end"]
GROUPS = ["join.granted", "push.sent", "push.applied", "push.commit",
          "push.end"]  # of trainers with a communicator
RECOVERY = ["recover.undo", "recover.sweep"]
# Passed once: at the end, by the first row of a table, by a trainer that joins.
ONCE = ["end.over", "end.removed", "table.shelf", "table.redo", "table.dir",
        "join.granted"]


def passes(kind, point):
    """Whether a process of such a job passes the failpoint."""
    return not (point in STAGED and "async" in kind or
                point in WINDOWS and "async" not in kind or
                point in [*TABLES, "recover.sweep"] and "table" not in kind)


def passes_often(kind, point, who):
    """Whether it does so at least 9 times. In an asynchronous job server 1
    saves an image only when a trainer joins or leaves."""
    return point not in ONCE and not (
        "async" in kind and who == "server1" and point.startswith("image."))


def scenes():
    for kind in kills.KINDS:
        for point in SERVER:
            if not passes(kind, point):
                continue
            first = 1 if point in ONCE else 3
            for who in ["server0", "server1"]:
                yield kind, {who: ["%s:%d" % (point, first)]}
                often = passes_often(kind, point, who)
                if often:
                    yield kind, {who: ["%s:9" % point]}
                if point not in ONCE:  # the next process must pass it, too
                    yield kind, {who: ["%s:%d" % (point, 4 if often else 2),
                                       "%s:1" % point]}
            yield kind, {who: ["%s:%d" % (point, first)]
                         for who in ["server0", "server1"]}
        for point in GROUPS if "groups" in kind else TRAINER:
            at = [1, 1, 1] if point in ONCE else [5, 4, 3]
            yield kind, {"trainer1": ["%s:%d" % (point, at[0])]}
            yield kind, {"trainer0": ["%s:%d" % (point, at[1]), "%s:1" % point]}
            yield kind, {"trainer1": ["%s:%d" % (point, at[2])],
                         "server0": ["owner.live:6"]}
        for point in [p for p in RECOVERY if passes(kind, p)]:
            yield kind, {"server1": ["owner.live:5", "%s:1" % point]}
        if "table" in kind:
            yield kind, {"server0": ["table.shelf:1", "table.shelf:1"]}
            yield kind, {"server1": ["table.redo:1", "recover.sweep:1"]}


SCENES = list(scenes())
if "FLUID_KILL_MATRIX" not in os.environ:
    SEED = int(os.environ.get("FLUID_KILL_SEED", "1"))
    SCENES = random.Random(SEED).sample(SCENES, 4)


@pytest.fixture(scope="module")
def calm():
    made = {}

    def digest(kind):
        if kind not in made:
            made[kind] = kills.calm_digest(kind)
        return made[kind]

    return digest


@pytest.mark.parametrize("kind, killed", SCENES, ids=kills.scene_word)
def test_kills_change_no_model(tmp_path, calm, kind, killed):
    with kills.Job(tmp_path, kind, killed) as job:
        model = job.play()
        together = {who[0] for who in killed} == {"s", "t"}
        assert model == calm(kind) or \
            together and kills.has_part_of_push(job, kind)
        assert job.kills() == sum(map(len, killed.values()))


def test_random_kills_change_no_model():
    """Of a job that the test starts again, and of one that a launcher does."""
    told = kills.random_kills(0, seed=7, kinds=["sync"], jobs=2)
    assert "2 jobs" in told and "all models equal" in told


def failpoints():
    """Names of all failpoints of the library, and where they are passed."""
    found = {}
    for path in glob.glob(os.path.join(ROOT, "src", "*", "*.c")):
        if not path.endswith("_test.c"):
            for name in re.findall(r'fl_failpoint_hit\("([^"]+)"\)',
                                   kills.read_text(path)):
                found[name] = os.path.relpath(path, ROOT)
    return found


def test_every_failpoint_has_a_scene():
    scenes = "".join(kills.read_text(os.path.join(ROOT, path))
                     for path in matrix.FILES)
    document = kills.read_text(os.path.join(ROOT, "docs", "protocol.md"))
    assert "owner.live" in failpoints()
    for name, path in failpoints().items():
        assert re.search(r'"%s[":]' % re.escape(name), scenes), \
            "no scene kills at %s of %s" % (name, path)
        assert "`%s`" % name in document, \
            "docs/protocol.md does not name %s of %s" % (name, path)
