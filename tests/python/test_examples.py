"""Every example trains, saves, loads and infers, if only for two batches."""
import os
import subprocess
import sys

import pytest

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
    assert scripts - {"common", "clicks"} == {e.split()[0] for e, _ in EXAMPLES}


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
