# SPDX-License-Identifier: Apache-2.0
"""Jobs without servers: ranks average gradients and end alike."""
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from cluster import BUILD, FOREIGN, LIMIT, Hosts, Ranks

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.path.join(HERE, "rank_job.py")
TRAINER = os.path.join(HERE, "trainer_job.py")
ENV = {"FLUID_NO_FUSE": "1"}
needs_hosts = pytest.mark.skipif(not Hosts.can_be(),
                                 reason="needs root and iproute2")


def alone(script, *argv, cwd=None):
    env = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
    env.update(ENV, PYTHONPATH=os.path.join(BUILD, "python"))
    return subprocess.run([sys.executable, script, *argv], env=env, text=True,
                          check=True, capture_output=True, timeout=LIMIT,
                          cwd=cwd).stdout


def losses(text):
    return np.array([float(line.split()[-1]) for line in
                     re.findall(r"^step .*$", text, re.M)])


def params(text):
    found = re.findall(r"^(?:param|saved) .*$", text, re.M)
    assert len(found) >= 4
    return found


def texts(folder, script, ranks, *argv, **env):
    with Ranks(folder, script, ranks, {**ENV, **env}, argv) as job:
        job.start().finish()
        return [t.text() for t in job.trainer]


@pytest.mark.parametrize("kind,ranks,more", [
    ("compiled", 2, []), ("compiled", 3, ["net=words"]), ("executor", 4, []),
    ("program", 2, ["net=words"]), ("executor", 2, ["net=clicks"]),
    ("program", 3, ["net=clicks"]), ("program", 3, ["net=calls"]),
    ("fleet", 2, ["test=1"])],
    ids=lambda x: "".join(x) if isinstance(x, list) else str(x))
def test_ranks_learn_what_one_process_learns(tmp_path, kind, ranks, more):
    # The loss of clicks is a sum over its rows: ranks have the mean of sums.
    by, of = (ranks, 1 / ranks) if more == ["net=clicks"] else (1, 1)
    whole = of * losses(alone(JOB, "alone", "by=%d" % by, *more))
    said = texts(tmp_path, JOB, ranks, kind, *more)
    mean = np.mean([losses(t) for t in said], axis=0)
    assert np.allclose(mean, whole, atol=1e-5), (mean, whole)
    assert whole[-1] < whole[0]
    for t in said:
        assert params(t) == params(said[0])


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_normalise_batches_as_places_do(tmp_path, ranks):
    """Each rank, and each place, takes means over its own rows."""
    places = texts(tmp_path, JOB, 1, "places", "net=lenet",
                   CPU_NUM=str(ranks))[0]
    said = texts(tmp_path, JOB, ranks, "compiled", "net=lenet")
    mean = np.mean([losses(t) for t in said], axis=0)
    assert np.allclose(mean, losses(places), atol=1e-5)
    for t in said:
        assert params(t) == params(said[0])


@pytest.mark.parametrize("kind,net", [
    ("compiled", "words"), ("program", "clicks"), ("compiled", "lenet")])
def test_two_runs_give_the_same_bits(tmp_path, kind, net):
    first, again = [texts(tmp_path, JOB, 3, kind, "net=" + net)
                    for _ in range(2)]
    assert [losses(t).tolist() for t in first] == [
        losses(t).tolist() for t in again]
    assert params(first[0]) == params(again[0])


@needs_hosts
@pytest.mark.parametrize("ranks,net", [(2, "clicks"), (3, "words"),
                                       (4, "wide")])
def test_hosts_give_the_bits_of_one(tmp_path, ranks, net):
    local = texts(tmp_path, JOB, ranks, "program", "net=" + net)
    with Hosts(ranks) as hosts:
        where = ",".join("%s:6175" % hosts.address(i) for i in range(ranks))
        with Ranks(tmp_path, JOB, ranks, {
                **ENV, "PADDLE_TRAINER_ENDPOINTS": where},
                ["program", "net=" + net], hosts=hosts) as job:
            for i in reversed(range(ranks)):
                job.start_trainer(i)
            job.finish()
            said = [t.text() for t in job.trainer]
    for mine, known in zip(said, local):
        assert losses(mine).tolist() == losses(known).tolist()
        assert params(mine) == params(known)


def test_one_rank_and_a_fleet_without_ranks_train_alone(tmp_path):
    whole = alone(JOB, "alone")
    assert losses(alone(JOB, "fleet")).tolist() == losses(whole).tolist()
    for kind in "fleet", "compiled", "program":
        text, = texts(tmp_path, JOB, 1, kind)
        assert np.allclose(losses(text), losses(whole), atol=1e-6)


def test_ranks_may_have_several_places(tmp_path):
    whole = losses(alone(JOB, "alone"))
    said = texts(tmp_path, JOB, 2, "compiled", CPU_NUM="3")
    mean = np.mean([losses(t) for t in said], axis=0)
    assert np.allclose(mean, whole, atol=1e-5)
    assert params(said[0]) == params(said[1])


@pytest.mark.parametrize("kind", ["local_sgd", "fleet_sgd"])
def test_local_updates_are_averaged(tmp_path, kind):
    said = texts(tmp_path, JOB, 2, kind, "steps=12")
    assert params(said[0]) == params(said[1])
    assert losses(said[0])[0] != losses(said[1])[0]  # rows of their own


def test_the_exception_of_a_rank_is_told_to_the_others(tmp_path):
    with Ranks(tmp_path, JOB, 3, ENV, ["compiled", "fail=2:3",
                                       "steps=1000000"]) as job:
        job.start()
        for t in job.trainer:
            t.end(code=1)
        for t in job.trainer[:2]:
            assert re.search(r"rank 2.*the numbers of rank 2", t.text(),
                             re.S), t.text()


# --- fluid.Trainer -----------------------------------------------------------

@pytest.mark.parametrize("more", [[], ["sparse=1"], ["parallel=1"]],
                         ids="".join)
def test_trainers_learn_what_one_learns(tmp_path, more):
    whole = losses(alone(TRAINER, str(tmp_path / "alone"),
                         *[m for m in more if m != "parallel=1"]))
    said = texts(tmp_path, TRAINER, 2, str(tmp_path), *more, CPU_NUM="2")
    mean = np.mean([losses(t) for t in said], axis=0)
    assert np.allclose(mean, whole, atol=1e-5)
    assert params(said[0]) == params(said[1])


@needs_hosts
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_trainers_on_hosts_start_in_any_order(tmp_path, ranks):
    whole = losses(alone(TRAINER, str(tmp_path / "alone")))
    last = ranks - 1
    with Hosts(ranks) as hosts, Ranks(tmp_path, TRAINER, ranks, ENV,
                                      [str(tmp_path)], hosts=hosts) as job:
        job.start_trainer(last)
        if ranks == 2:  # it is told after 5 s
            job.trainer[last].says("rank %d has waited .* for rank 0" % last)
        for i in range(last):
            job.start_trainer(i)
        job.finish()
        said = [t.text() for t in job.trainer]
    mean = np.mean([losses(t) for t in said], axis=0)
    assert np.allclose(mean, whole, atol=1e-5)
    for t in said:
        assert params(t) == params(said[0])


def test_trainers_go_on_from_the_checkpoint_of_rank_0(tmp_path):
    whole = texts(tmp_path, TRAINER, 2, str(tmp_path / "whole"))
    with Ranks(tmp_path, TRAINER, 2, ENV, [str(tmp_path / "cut"),
                                           "hold=1:3"]) as job:
        job.start()
        for t in job.trainer:
            t.says("^step 1 3 ")
        for t in job.trainer:
            t.kill()
    with Ranks(tmp_path, TRAINER, 2, ENV) as job:
        job.start_trainer(0, argv=[str(tmp_path / "cut")])
        job.start_trainer(1, argv=[str(tmp_path / "elsewhere")])
        job.finish()
        for t, before in zip(job.trainer, whole):
            assert "goes on from checkpoint" in t.text()
            assert np.array_equal(losses(t.text()), losses(before)[9:])
            assert params(t.text()) == params(before)
