# SPDX-License-Identifier: Apache-2.0
"""The v2 chapters and word2vec train, save a tar, load it and infer."""
import os
import pickle
import random
import re
import subprocess
import sys

import pytest

from conftest import ROOT
from test_examples import environment
from paddle.v2.parameters import Parameters
from test_v2_servers import Job, mean, near

CHAPTERS = [("fit_a_line", "uci_housing"),
            ("recognize_digits softmax", "mnist"),
            ("recognize_digits mlp", "mnist"),
            ("recognize_digits conv", "mnist"),
            ("image_classification vgg", "cifar10"),
            ("image_classification resnet", "cifar10"),
            ("recommender_system", None)]


def run(script, *args, folder=None, env=None):
    return subprocess.run(
        [sys.executable, os.path.join(ROOT, "examples", script), *args],
        cwd=folder, env=env, text=True, capture_output=True)


def test_all_chapters_are_run():
    scripts = {f.removesuffix(".py") for f in os.listdir(
        os.path.join(ROOT, "examples", "v2")) if f.endswith(".py")}
    assert scripts - {"book"} == {c.split()[0] for c, _ in CHAPTERS}


@pytest.mark.parametrize("chapter,needs", CHAPTERS,
                         ids=[c.replace(" ", "_") for c, _ in CHAPTERS])
def test_chapter(chapter, needs, tmp_path):
    script, *kind = chapter.split()
    done = run("v2/%s.py" % script, *kind, "--passes", "1", "--batches", "2",
               "--model", "model.tar", folder=tmp_path,
               env=environment(needs, str(tmp_path)))
    assert done.returncode == 0, done.stderr
    assert "the bar is" in done.stdout.splitlines()[-1]
    assert (tmp_path / "model.tar").stat().st_size > 1000


def test_a_line_is_fitted(tmp_path):
    done = run("v2/fit_a_line.py", folder=tmp_path,
               env=environment("uci_housing", str(tmp_path)))
    assert done.returncode == 0, done.stdout + done.stderr


# --- word2vec ----------------------------------------------------------------

@pytest.fixture
def prepared(tmp_path):
    """A folder with what prepare.py makes of a small text."""
    text = tmp_path / "text"
    text.write_text("the quick dog sees the old cat today.\n" * 60
                    + "a small bird likes a red tree again.\n" * 60)
    done = run("word2vec/prepare.py", "--text", str(text), "--least", "2",
               folder=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path


def lines(path):
    return path.read_text().splitlines()


def test_prepare_splits_into_files_with_numbers(prepared):
    for part in ("train.txt", "test.txt"):
        pieces = [prepared / ("%s-%05d" % (part, i)) for i in range(3)]
        whole = lines(prepared / part)
        assert sum((lines(p) for p in pieces), []) == whole
        assert all(p.stat().st_size for p in pieces)
        assert not (prepared / (part + "-00003")).exists()
        assert all(len(line.split(",")) == 5 for line in whole)
    with open(prepared / "word_dict.pickle", "rb") as f:
        words = pickle.load(f)
    assert words["<s>"] < 2 and words["<unk>"] == len(words) - 1
    assert {"dog", "cat", "bird", "tree", "<e>"} <= set(words)


def test_prepare_makes_a_text_up_where_there_is_none(tmp_path):
    env = environment(None, str(tmp_path))
    env.pop("FLUID_SHARED", None)
    done = run("word2vec/prepare.py", "--split", "2", "--least", "1",
               folder=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("text: ")
    assert (tmp_path / "train.txt-00001").exists()


def test_word2vec_learns_and_saves_every_pass(prepared):
    done = run("word2vec/train.py", "--passes", "4", "--rate", "0.05",
               "--drop", "0", "--decay", "0", folder=prepared)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) < 0.3, done.stdout
    assert (prepared / "output" / "pass-00003.tar").is_file()


def cluster(me, trainers):
    return dict(os.environ, PADDLE_CLUSTER_TRAIN="True",
                PADDLE_INIT_TRAINER_ID=str(me),
                PADDLE_INIT_NUM_GRADIENT_SERVERS=str(trainers))


def test_word2vec_says_what_a_cluster_needs(prepared):
    env = cluster(0, 2)
    del env["PADDLE_INIT_NUM_GRADIENT_SERVERS"]
    done = run("word2vec/train.py", folder=prepared, env=env)
    assert done.returncode == 1 and "set PADDLE_INIT_TRAINER_ID" in done.stderr


def test_word2vec_trains_in_a_cluster(prepared):
    flags = ("--passes", "3", "--rate", "0.05", "--drop", "0", "--decay", "0")
    with Job(prepared, 1, 2) as job:
        job.env["PADDLE_CLUSTER_TRAIN"] = "True"
        server = job.server()
        script = os.path.join(ROOT, "examples", "word2vec", "train.py")
        trainers = [job.trainer(i, argv=[sys.executable, script, *flags])
                    for i in range(2)]
        for process in [*trainers, server]:
            process.end()
        for trainer in trainers:
            assert float(trainer.text().split()[-1]) < 1.0
    assert (prepared / "output" / "pass-00002.tar").is_file()


def joined(folder, batch, batches):
    """Files of two trainers, and in `whole` those of one process, whose
    batches are theirs together. Words of 2000, so that the table is cut."""
    draw = random.Random(3)
    rows = [",".join(str(draw.randrange(2000)) for _ in range(5)) + "\n"
            for _ in range(2 * batch * batches)]
    (folder / "whole").mkdir()
    for part in ("train.txt", "test.txt"):
        (folder / "whole" / (part + "-00000")).write_text("".join(rows))
        for me in range(2):
            (folder / ("%s-%05d" % (part, me))).write_text("".join(
                row for i, row in enumerate(rows) if i // batch % 2 == me))
    with open(folder / "word_dict.pickle", "wb") as f:
        pickle.dump({"w%d" % i: i for i in range(2000)}, f)


def costs_of(text):
    return [float(x) for x in re.findall(r"Batch \d+, Cost (\S+),", text)] + [
        float(x) for x in re.findall(r"Testing cost (\S+),", text)]


def values_of(path):
    with open(path, "rb") as f:
        tar = Parameters.from_tar(f)
    return {name: tar[name] for name in tar.keys()}


@pytest.mark.parametrize("servers,ports,sparse", [(1, 1, 1), (2, 2, 2)])
def test_word2vec_has_the_costs_of_one_process(tmp_path, servers, ports,
                                               sparse):
    joined(tmp_path, 16, 6)
    flags = ["--passes", "2", "--drop", "0", "--period", "1", "--rate", "0.01"]
    done = run("word2vec/train.py", "--train", "whole", "--test", "whole",
               "--batch", "32", "--output", "one", *flags, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    want = costs_of(done.stdout)
    assert len(want) == 14
    with Job(tmp_path, servers, 2, ports, sparse) as job:
        job.env["PADDLE_CLUSTER_TRAIN"] = "True"
        started = [job.server(i) for i in range(servers)]
        script = os.path.join(ROOT, "examples", "word2vec", "train.py")
        trainers = [job.trainer(i, argv=[
            sys.executable, script, "--batch", "16", *flags])
            for i in range(2)]
        for process in trainers + started:
            process.end()
        got = mean([costs_of(t.text()) for t in trainers])
    near(got, want)
    one = values_of(tmp_path / "one" / "pass-00001.tar")
    both = values_of(tmp_path / "output" / "pass-00001.tar")
    assert one.keys() == both.keys()
    for name in one:
        assert abs(one[name] - both[name]).max() < 1e-5, name


@pytest.mark.parametrize("me,want", [(0, [0, 2]), (1, [1])])
def test_files_are_dealt_by_mod(prepared, me, want):
    sys.path.insert(0, os.path.join(ROOT, "examples", "word2vec"))
    try:
        import train
    finally:
        del sys.path[0]
    assert train.files(str(prepared), "train.txt", me, 2) == [
        str(prepared / ("train.txt-%05d" % i)) for i in want]
    with pytest.raises(SystemExit, match="for trainer 5 of 6; run prepare"):
        train.files(str(prepared), "train.txt", 5, 6)
