# SPDX-License-Identifier: Apache-2.0
"""Every example trains, saves, loads and infers, if only for two batches."""
import os
import signal
import subprocess
import sys

import pytest

from cluster import LIMIT, Cluster
from conftest import ROOT

EXAMPLES = [("fit_a_line", "uci_housing"),
            ("recognize_digits mlp", "mnist"),
            ("recognize_digits conv", "mnist"),
            ("image_classification vgg", "cifar10"),
            ("image_classification resnet", "cifar10"),
            ("word2vec", "imikolov"),
            ("recommender", None)]


def test_all_examples_are_run():
    scripts = {f.removesuffix(".py") for f in os.listdir(
        os.path.join(ROOT, "examples")) if f.endswith(".py")}
    apart = {"common", "clicks", "dist_fit_a_line", "trainer"}
    assert scripts - apart == {e.split()[0] for e, _ in EXAMPLES}


def environment(needs, folder):
    """Data of the shared folder, or what set-up and the user have; an
    example that needs none finds none, nor a network."""
    from paddle.dataset import common
    env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    if not needs:
        nowhere = "http://127.0.0.1:9"  # the port that discards
        return dict(env, PADDLE_DATA_HOME=folder, HOME=folder,
                    http_proxy=nowhere, https_proxy=nowhere)
    shared = os.path.join(os.environ.get(
        "FLUID_SHARED", os.path.join(ROOT, "../shared")), "data")
    homes = [p for p in (shared, *common.places())
             if os.path.isdir(os.path.join(p, needs))]
    if not homes:
        pytest.skip("no data for %s" % needs)
    return dict(env, PADDLE_DATA_HOME=homes[0])


@pytest.mark.parametrize("example,needs", EXAMPLES,
                         ids=[e.replace(" ", "_") for e, _ in EXAMPLES])
def test_example(example, needs, tmp_path):
    script, *kind = example.split()
    model = tmp_path / "model"
    run = subprocess.run(
        [sys.executable, os.path.join(ROOT, "examples", script + ".py"),
         *kind, "--passes", "1", "--batches", "2", "--model", str(model)],
        env=environment(needs, str(tmp_path)), text=True, capture_output=True)
    assert run.returncode == 0, run.stderr
    assert "the bar is" in run.stdout.splitlines()[-1]
    assert (model / "__model__").is_file()
    if not needs:
        assert "the ratings are made up" in run.stderr


# --- one script for servers and trainers -------------------------------------

CLUSTER = os.path.join(ROOT, "examples", "dist_fit_a_line.py")
QUICK = {"FLUID_LINGER": "0.2"}  # servers need not wait for late questions


def parameters(folder):
    return {name: (folder / name).read_bytes()
            for name in ("fc_0.w_0", "fc_0.b_0")}


def test_the_cluster_example_understands_the_documents(tmp_path):
    """Endpoints, then hosts and a port; both train the same model."""
    home = environment("uci_housing", str(tmp_path))["PADDLE_DATA_HOME"]
    for model in "endpoints", "hosts":
        with Cluster(tmp_path, CLUSTER, 1, 2, {
                **QUICK, "PADDLE_DATA_HOME": home, "PADDLE_TRAINERS": 2},
                ["--passes", "2", "--model", model]) as job:
            host, port = job.endpoints[0].split(":")
            job.start(**{} if model == "endpoints" else dict(
                PADDLE_PSERVER_ENDPOINTS=None, PADDLE_CURRENT_ENDPOINT=None,
                PADDLE_PSERVER_IPS=host, PADDLE_PSERVER_PORT=port,
                PADDLE_CURRENT_IP=host))
            job.finish()
            assert "the model is in " + model in job.trainer[0].text()
            assert "the model is in" not in job.trainer[1].text()
    assert parameters(tmp_path / "endpoints") == parameters(tmp_path / "hosts")


def test_the_cluster_example_trains_alone(tmp_path):
    env = environment("uci_housing", str(tmp_path))
    run = subprocess.run(
        [sys.executable, CLUSTER, "--passes", "1", "--model", "alone"],
        env=env, cwd=tmp_path, text=True, capture_output=True)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "alone" / "__model__").is_file()


def test_the_cluster_example_saves_after_ctrl_c(tmp_path):
    """Under the launcher; trainers end well, so the job does."""
    job = subprocess.Popen(
        ["paddle", "launch", "--server_num", "1", "--worker_num", "2", CLUSTER,
         "--passes", "1000000"], cwd=tmp_path, text=True,
        env={**environment("uci_housing", str(tmp_path)), **QUICK},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    said = ""
    while "pass 21," not in said:
        said += job.stderr.readline() or pytest.fail(said)
    job.send_signal(signal.SIGINT)
    said += job.communicate(timeout=LIMIT)[1]
    assert job.returncode == 0, said
    assert "interrupted; the model is saved as it is" in said
    assert (tmp_path / "dist_fit_a_line.model" / "__model__").is_file()


# --- one script for every kind of job ----------------------------------------

TRAINER = os.path.join(ROOT, "examples", "trainer.py")


def trained(folder, command):
    """The error that a job of the example ends with."""
    job = subprocess.run(
        [*command, TRAINER, "--passes", "3", "--model", str(folder / "m")],
        env={**environment("uci_housing", str(folder)), **QUICK}, cwd=folder,
        text=True, capture_output=True, timeout=LIMIT)
    assert job.returncode == 0, job.stderr
    assert (folder / "m" / "params" / "fc_0.w_0").is_file()
    assert not os.listdir(folder / "m" / "checkpoints")
    said = job.stdout + job.stderr
    return float(said.split("mean squared error ")[1].split()[0])


def test_the_trainer_example_learns_the_same_in_every_kind_of_job(tmp_path):
    kinds = {"alone": [sys.executable],
             "servers": ["paddle", "launch", "--server_num", "2",
                         "--worker_num", "2"],
             "ranks": [sys.executable, "-m", "paddle.distributed.launch",
                       "--nproc_per_node", "2"]}
    found = {}
    for kind, command in kinds.items():
        (tmp_path / kind).mkdir()
        found[kind] = trained(tmp_path / kind, command)
    assert found["alone"] < 500
    for kind in kinds:
        assert found[kind] == pytest.approx(found["alone"], rel=1e-4), found
