# SPDX-License-Identifier: Apache-2.0
"""The AUC that trainers of a job show is that of all of them."""
import json

import numpy as np
import pytest

import auc_job
from cluster import Cluster


def area(counts):
    """Of positives and negatives by bucket."""
    pos, neg = (np.array(c[::-1], float) for c in counts)
    hits, misses = np.cumsum(pos), np.cumsum(neg)
    return (neg * (2 * hits - pos) / 2).sum() / hits[-1] / misses[-1]


def told(trainer):
    """Its own counts, and the last status."""
    lines = trainer.text().splitlines()
    counts, = (line[7:] for line in lines if line.startswith("counts "))
    last = [line for line in lines if line.startswith('{"epoch"')][-1]
    return json.loads(counts), json.loads(last)


def run(folder, mode, **env):
    with Cluster(folder, auc_job.__file__, 2, 2, argv=[mode],
                 env={"FLUID_LINGER": "0.1", "FLUID_STATUS": "json",
                      **env}) as job:
        job.start().finish()
        return zip(*(told(trainer) for trainer in job.trainer))


@pytest.mark.parametrize("mode", ["async", "sync"])
def test_the_auc_is_that_of_all_trainers(tmp_path, mode):
    counts, shown = run(tmp_path, mode)
    own = [area(c) for c in counts]
    joined = area(np.add(*counts))
    assert [np.sum(c) for c in counts] == [auc_job.LINES] * 2
    assert min(abs(joined - a) for a in own) > 0.01
    merged = [s["auc"] for s in shown if s["auc_trainers"] == 2]
    assert merged and any(abs(a - joined) < 1e-5 for a in merged)
    if mode == "async":  # trainer 0 was alone
        assert shown[0]["auc_trainers"] == 1
        assert abs(shown[0]["auc"] - own[0]) < 1e-5
        assert len(merged) == 1
