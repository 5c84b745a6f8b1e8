# SPDX-License-Identifier: Apache-2.0
"""fluid.io: variables and models on disk, in the original's layout."""
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import time

import numpy as np
import pytest

from cluster import LIMIT
import paddle.fluid as fluid
from paddle.fluid.executor import _fetch_var

X = np.random.RandomState(0).rand(20, 13).astype("float32")
W, B = "fc_0.w_0", "fc_0.b_0"
MANIFEST = "__manifest__"


def saved(folder):
    """What a save has written, without the list of it."""
    names = sorted(os.listdir(folder))
    assert MANIFEST in names
    assert not [n for n in names if n.startswith(".save-")]
    return [n for n in names if n != MANIFEST]


def predict(exe, program, feed_name, target):
    return exe.run(program, feed={feed_name: X}, fetch_list=[target])[0]


def wipe():
    for name in (W, B):
        tensor = fluid.global_scope().find_var(name).get_tensor()
        tensor.set(np.zeros(tensor.shape(), "float32"), None)


def test_each_variable_has_a_file(line, exe, tmp_path):
    fluid.io.save_persistables(exe, str(tmp_path))
    assert saved(tmp_path) == [B, W, "learning_rate_0"]
    value = _fetch_var(W)
    head = bytes.fromhex("00000000" "0000000000000000" "00000000" "06000000"
                         "0805" "100d" "1001")
    assert (tmp_path / W).read_bytes() == head + value.tobytes()
    wipe()
    fluid.io.load_persistables(exe, str(tmp_path))
    assert np.array_equal(_fetch_var(W), value)


def test_parameters_are_fewer_than_persistables(line, exe, tmp_path):
    fluid.io.save_params(exe, str(tmp_path))
    assert saved(tmp_path) == [B, W]
    wipe()
    fluid.io.load_params(exe, str(tmp_path))
    assert _fetch_var(W).any()


def test_all_go_into_one_file_by_name(line, exe, tmp_path):
    fluid.io.save_persistables(exe, str(tmp_path), filename="all")
    assert saved(tmp_path) == ["all"]
    data = (tmp_path / "all").read_bytes()
    bias = 4 + 8 + 4 + 4 + 4 + 4  # fc_0.b_0 comes first: one float
    assert data[bias - 4:bias] == _fetch_var(B).tobytes()
    weight = _fetch_var(W)
    wipe()
    fluid.io.load_persistables(exe, str(tmp_path), filename="all")
    assert np.array_equal(_fetch_var(W), weight)


def test_variables_are_picked(line, exe, tmp_path, programs):
    fluid.io.save_vars(exe, str(tmp_path), programs[0],
                       predicate=lambda v: v.name.endswith("w_0"))
    assert saved(tmp_path) == [W]
    block = programs[0].global_block()
    fluid.io.save_vars(exe, str(tmp_path), vars=[block.var(B)])
    assert saved(tmp_path) == [B, W]
    weight = _fetch_var(W)
    wipe()
    fluid.io.load_vars(exe, str(tmp_path), vars=[block.var(W)])
    assert np.array_equal(_fetch_var(W), weight)
    assert not _fetch_var(B).any()


def test_a_missing_file_is_named(line, exe, tmp_path):
    with pytest.raises(Exception, match="fc_0"):
        fluid.io.load_persistables(exe, str(tmp_path))
    with pytest.raises(TypeError, match="main_program must be a Program"):
        fluid.io.save_persistables(exe, str(tmp_path), main_program=1)


@pytest.mark.parametrize("model,params,files", [
    (None, None, ["__model__", B, W]),
    ("net", None, [B, W, "net"]),
    (None, "values", ["__model__", "values"]),
    ("net", "values", ["net", "values"])])
def test_a_model_is_saved_and_loaded(line, exe, tmp_path, programs, model,
                                     params, files):
    folder = str(tmp_path / "model")
    names = fluid.io.save_inference_model(
        folder, ["x"], [line[1]], exe, model_filename=model,
        params_filename=params)
    assert names == ["save_infer_model/scale_0"]
    assert saved(folder) == files
    pruned = programs[0]._prune([line[1]])
    want = predict(exe, pruned, "x", line[1])
    with fluid.scope_guard(fluid.Scope()):
        program, feeds, fetches = fluid.io.load_inference_model(
            folder, exe, model_filename=model, params_filename=params)
        assert feeds == ["x"]
        assert [f.name for f in fetches] == names
        got = predict(exe, program, feeds[0], fetches[0])
    assert np.array_equal(got, want)
    types = [op.type for op in program.global_block().ops]
    assert types[0] == "feed" and types[-2:] == ["scale", "fetch"]
    assert "sgd" not in types


def test_a_program_alone_is_saved(line, exe, tmp_path):
    with pytest.warns(UserWarning, match="program_only"):
        fluid.io.save_inference_model(str(tmp_path), "x", line[1], exe,
                                      program_only=True)
    assert saved(tmp_path) == ["__model__"]


def test_the_whole_program_is_saved(line, exe, tmp_path, programs):
    fluid.io.save_inference_model(str(tmp_path), ["x"], [line[1]], exe,
                                  export_for_deployment=False)
    data = (tmp_path / "__model__.main_program").read_bytes()
    again = fluid.Program.parse_from_string(data)
    assert "sgd" in [op.type for op in again.global_block().ops]


@pytest.mark.parametrize("feeds,targets,sentence", [
    ([1], None, "feeded_var_names"), (["x"], ["x"], "target_vars"),
    (["x"], [], "target_vars"), (["nobody"], None, "nobody")])
def test_wrong_models_are_refused(line, exe, tmp_path, feeds, targets,
                                  sentence):
    with pytest.raises((ValueError, fluid.core.EnforceNotMet),
                       match=sentence):
        fluid.io.save_inference_model(
            str(tmp_path), feeds, [line[1]] if targets is None else targets,
            exe)


def test_a_wrong_feed_of_a_model_is_named(line, exe, tmp_path):
    """The labels are data of the program, but not of the model."""
    for feeds, sentence in (
            (["xx"], 'save: feed "xx": the program has no such variable'),
            (["x", "y"], 'save: feed "y": the targets do not depend on it; '
             "leave it out")):
        with pytest.raises(fluid.core.EnforceNotMet, match=sentence):
            fluid.io.save_inference_model(str(tmp_path), feeds, [line[1]],
                                          exe)


def test_a_folder_that_cannot_be_one_is_named(line, exe, tmp_path):
    with pytest.raises(TypeError, match="save_vars: dirname is None, expected "
                       "the path of a folder"):
        fluid.io.save_params(exe, None)
    with pytest.raises(fluid.core.EnforceNotMet, match="^/no/such does not exist, "
                       "expected a saved folder$"):
        fluid.io.load_params(exe, "/no/such")
    fluid.io.save_params(exe, tmp_path)  # a path that is no str
    fluid.io.load_params(exe, tmp_path)


def test_a_server_says_that_a_folder_is_not_there(line, exe, tmp_path):
    ep = "127.0.0.1:6174"
    t = fluid.DistributeTranspiler()
    t.transpile(0, pservers=ep, trainers=1)
    served = t.get_pserver_program(ep)
    with pytest.raises(fluid.core.EnforceNotMet,
                       match="no/such does not exist, expected a saved folder$"):
        fluid.io.load_persistables(exe, "/no/such", served)
    with pytest.raises(fluid.core.EnforceNotMet,
                       match=r"has no variable that server 0 \(.*\) keeps$"):
        fluid.io.load_persistables(exe, str(tmp_path), served)


def test_a_model_that_is_not_there_is_named(exe, tmp_path):
    with pytest.raises(ValueError, match="no directory named '.*nowhere'"):
        fluid.io.load_inference_model(str(tmp_path / "nowhere"), exe)


def test_an_old_script_gets_a_program_for_tests(line, exe, programs):
    """fluid.io.get_inference_program, of Fluid before 1.0."""
    loss, predicted = line
    ops = [op.type for op in fluid.io.get_inference_program(
        predicted, programs[0]).global_block().ops]
    assert ops == ["mul", "elementwise_add"]
    with fluid.program_guard(programs[0].clone()):
        test = fluid.io.get_inference_program([loss])
    before = _fetch_var(W)
    got, = exe.run(test, feed={"x": X, "y": X[:, :1]}, fetch_list=[loss])
    assert got.shape == (1,) and np.array_equal(_fetch_var(W), before)


def test_a_target_that_is_no_variable_is_named(line, programs):
    with pytest.raises(TypeError, match="has variables and evaluators, not str"):
        fluid.io.get_inference_program("price", programs[0])


def test_an_evaluator_stands_for_its_states_and_metrics(programs):
    label = fluid.layers.data("label", [1], dtype="int64")
    guess = fluid.layers.fc(fluid.layers.data("x", [13]), 3, act="softmax")
    judge = fluid.evaluator.Accuracy(input=guess, label=label)
    ops = [op.type for op in fluid.io.get_inference_program(
        judge).global_block().ops]
    assert "accuracy" in ops and "sum" in ops


def test_parameters_are_read_by_name(line, exe, programs):
    param = programs[0].global_block().var(W)
    value = fluid.io.get_parameter_value(param, exe)
    assert value.shape == (13, 1)
    assert np.array_equal(
        fluid.io.get_parameter_value_by_name(W, exe, programs[0]), value)
    with pytest.raises(AssertionError, match="is not a parameter"):
        fluid.io.get_parameter_value(line[1], exe)


def housing(folder):
    """Features and prices as the original prepares them."""
    with open(os.path.join(folder, "uci_housing", "housing.data")) as file:
        data = np.array(file.read().split(), "float64").reshape(-1, 14)
    x = data[:, :13]
    x = (x - x.mean(0)) / (x.max(0) - x.min(0))
    return x.astype("float32"), data[:, 13:]


def test_a_model_of_the_original_scores_as_there(shared, exe, tmp_path):
    with tarfile.open(os.path.join(shared, "paddle_models",
                                   "fit_a_line.fluid.tar")) as tar:
        tar.extractall(tmp_path)
    folder = next(d for d, _, files in os.walk(tmp_path)
                  if "__model__" in files)
    program, feeds, fetches = fluid.io.load_inference_model(folder, exe)
    x, y = housing(shared)
    for rows, score in ((slice(0, 404), 83.9350), (slice(404, 506), 23.1420)):
        got, = exe.run(program, feed={feeds[0]: x[rows]}, fetch_list=fetches)
        assert abs(((got - y[rows])**2).mean() - score) < 5e-5
    back = tmp_path / "back"
    fluid.io.save_persistables(exe, str(back), program)
    for name in saved(back):
        with open(os.path.join(folder, name), "rb") as file:
            assert (back / name).read_bytes() == file.read()
    assert saved(back) == [B, W]


def test_a_file_with_a_false_size_is_refused(line, exe, tmp_path):
    fluid.io.save_persistables(exe, str(tmp_path))
    desc = b"\x08\x05\x10" + b"\x80" * 8 + b"\x10"
    (tmp_path / W).write_bytes(struct.pack("<IQIi", 0, 0, 0, len(desc))
                               + desc)
    (tmp_path / MANIFEST).unlink()
    with pytest.raises(Exception, match=W):
        fluid.io.load_persistables(exe, str(tmp_path))


def flip(path, at):
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_flipped_bit_is_named_with_both_checksums(line, exe, tmp_path):
    fluid.io.save_inference_model(str(tmp_path), ["x"], [line[1]], exe)
    good = {n: (tmp_path / n).read_bytes() for n in os.listdir(tmp_path)}
    for name in sorted(good):
        for at in (0, len(good[name]) // 2, len(good[name]) - 1):
            flip(tmp_path / name, at)
            with pytest.raises(RuntimeError, match="CRC-32C is|"
                               "%s has the CRC-32C [0-9a-f]{8}, but .*"
                               "__manifest__ says [0-9a-f]{8}" % name):
                fluid.io.load_inference_model(str(tmp_path), exe)
            (tmp_path / name).write_bytes(good[name])
    fluid.io.load_inference_model(str(tmp_path), exe)


def test_every_flipped_byte_of_a_small_checkpoint_is_named(line, exe,
                                                           tmp_path):
    """By a load each; the command, a process each, is asked for every eighth."""
    fluid.io.save_persistables(exe, str(tmp_path))
    verify = ["paddle", "ckpt", "verify", str(tmp_path)]
    for name in sorted(os.listdir(tmp_path)):
        good = (tmp_path / name).read_bytes()
        for at in range(len(good)):
            flip(tmp_path / name, at)
            with pytest.raises(RuntimeError, match=re.escape(name)):
                fluid.io.load_persistables(exe, str(tmp_path))
            if at % 8 == 0:
                told = subprocess.run(verify, text=True, capture_output=True)
                assert told.returncode == 1 and \
                    name in told.stdout + told.stderr, \
                    "byte %d of %s" % (at, name)
            (tmp_path / name).write_bytes(good)
    subprocess.run(verify, check=True)


def test_a_file_put_there_by_hand_needs_a_word(line, exe, tmp_path):
    """The sentence tells what to do, and that helps."""
    fluid.io.save_params(exe, str(tmp_path / "one"))
    tensor = fluid.global_scope().find_var(B).get_tensor()
    tensor.set(np.full(tensor.shape(), 7, "float32"), None)
    fluid.io.save_params(exe, str(tmp_path / "two"))
    shutil.copy(tmp_path / "two" / B, tmp_path / "one" / B)
    with pytest.raises(RuntimeError, match="remove .*one/__manifest__ to load "
                       "the files as they are"):
        fluid.io.load_params(exe, str(tmp_path / "one"))
    (tmp_path / "one" / MANIFEST).unlink()
    fluid.io.load_params(exe, str(tmp_path / "one"))
    assert (_fetch_var(B) == 7).all()
    (tmp_path / "two" / W).unlink()
    with pytest.raises(Exception, match="two/%s is missing: .*two/"
                       "__manifest__ lists it" % W):
        fluid.io.load_params(exe, str(tmp_path / "two"))


def test_a_later_save_keeps_what_it_does_not_write(line, exe, tmp_path):
    (tmp_path / "notes").write_text("mine")
    fluid.io.save_persistables(exe, str(tmp_path))
    fluid.io.save_inference_model(str(tmp_path), ["x"], [line[1]], exe)
    assert saved(tmp_path) == ["__model__", B, W, "learning_rate_0", "notes"]
    listed = [row.split(" ", 3)[3] for row in
              (tmp_path / MANIFEST).read_text().splitlines()
              if row.startswith("file ")]
    assert listed == ["__model__", B, W, "learning_rate_0"]
    fluid.io.load_persistables(exe, str(tmp_path))
    fluid.io.load_inference_model(str(tmp_path), exe)


def test_names_with_folders_in_them_stay_below(exe, tmp_path, programs):
    x = fluid.layers.data("x", [2])
    fluid.layers.fc(x, 1, bias_attr=False, param_attr="tower/deep/w")
    exe.run(programs[1])
    fluid.io.save_params(exe, str(tmp_path))
    assert (tmp_path / "tower" / "deep" / "w").exists()
    fluid.io.load_params(exe, str(tmp_path))


@pytest.mark.parametrize("name", ["../w", "/tmp/w", "a/../../w", "a//w"])
def test_names_that_lead_out_are_refused(exe, tmp_path, programs, name):
    x = fluid.layers.data("x", [2])
    fluid.layers.fc(x, 1, bias_attr=False, param_attr=name)
    exe.run(programs[1])
    folder = tmp_path / "model"
    for action in fluid.io.save_params, fluid.io.load_params:
        with pytest.raises(Exception, match='"%s" cannot be the name' % name):
            action(exe, str(folder))
    assert os.listdir(tmp_path) == ["model"] and not os.listdir(folder)


def test_a_combined_file_may_be_named_by_a_path(line, exe, tmp_path):
    fluid.io.save_params(exe, str(tmp_path / "a"), filename="../b/all")
    assert saved(tmp_path / "b") == ["all"]
    fluid.io.load_params(exe, str(tmp_path), filename="b/all")


def test_a_whole_program_needs_no_targets(line, exe, tmp_path, programs):
    names = fluid.io.save_inference_model(str(tmp_path), [], [], exe,
                                          export_for_deployment=False)
    assert names == []
    assert saved(tmp_path) == ["__model__.main_program", B, W,
                               "learning_rate_0"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_loses_nothing(line, exe, tmp_path,
                                                        monkeypatch):
    check_fallback(exe, tmp_path, monkeypatch, read_only(tmp_path / "dead"))


def read_only(folder):
    folder.mkdir(mode=0o500)
    return folder


def check_fallback(exe, tmp_path, monkeypatch, folder):
    """The model is saved somewhere else, and the error says where."""
    monkeypatch.chdir(tmp_path)
    weight = _fetch_var(W)
    with pytest.raises(Exception, match="; it was saved to /.* instead") as e:
        fluid.io.save_persistables(exe, str(folder))
    other = re.search("saved to (/.*) instead", str(e.value)).group(1)
    wipe()
    fluid.io.load_persistables(exe, other)
    assert np.array_equal(_fetch_var(W), weight)
    return other


def test_a_file_in_the_place_of_the_folder_loses_nothing(line, exe, tmp_path,
                                                         monkeypatch):
    (tmp_path / "dead").write_text("a file")
    other = check_fallback(exe, tmp_path, monkeypatch, tmp_path / "dead" / "m")
    assert os.path.dirname(other) == str(tmp_path)
    (tmp_path / os.path.basename(other)).rename(tmp_path / "aside")
    (tmp_path / os.path.basename(other)).write_text("in the way, too")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "aside"))
    other = check_fallback(exe, tmp_path, monkeypatch, tmp_path / "dead" / "m")
    assert os.path.dirname(other) == str(tmp_path / "aside")
    assert os.stat(other).st_mode & 0o777 == 0o700
    assert check_fallback(exe, tmp_path, monkeypatch,
                          tmp_path / "dead" / "m") != other


def test_a_model_that_can_go_nowhere_says_so(line, exe, tmp_path,
                                             monkeypatch):
    (tmp_path / "dead").write_text("a file")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "dead"))
    (tmp_path / "fluid-saved-dead-m").write_text("in the way")
    with pytest.raises(Exception, match="^dead/m: .*; it could not be saved "
                       "elsewhere either .*dead"):
        fluid.io.save_persistables(exe, "dead/m")


def with_save(line, exe, folder, path):
    """A model whose program has a save operator of its own."""
    fluid.io.save_inference_model(str(folder), ["x"], [line[1]], exe)
    program, _, _ = fluid.io.load_inference_model(str(folder), exe)
    program.global_block().append_op(type="save", inputs={"X": ["x"]},
                                     outputs={},
                                     attrs={"file_path": str(path)})
    return program


def test_a_model_from_elsewhere_writes_no_files(line, exe, tmp_path,
                                                monkeypatch):
    path = tmp_path / "precious"
    program = with_save(line, exe, tmp_path / "model", path)
    again = fluid.Program.parse_from_string(program.serialize_to_string())
    for foreign in again, again.clone(for_test=True):
        with pytest.raises(Exception, match="save: this program was read.*%s.*"
                           "FLUID_TRUST_PROGRAMS=1" % path):
            exe.run(foreign, feed={"x": X})
    assert not path.exists()
    exe.run(program, feed={"x": X})  # the script's own operator
    assert path.exists()
    path.unlink()
    monkeypatch.setenv("FLUID_TRUST_PROGRAMS", "1")
    fluid.Executor(fluid.CPUPlace()).run(again, feed={"x": X})
    assert path.exists()


WRITER = """
import sys
import numpy as np
import paddle.fluid as fluid
ps = [fluid.layers.create_parameter([2], "float32", name="p%02d" % i)
      for i in range(20)]
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
ts = [fluid.global_scope().find_var(p.name).get_tensor() for p in ps]


def values():
    return {v for t in ts for v in np.array(t)}


if sys.argv[1] == "load":
    fluid.io.load_persistables(exe, "model")
    print(len(values()))
    sys.exit()
print("begins", flush=True)
for k in range(int(sys.argv[2])):
    for t in ts:
        t.set(np.full(2, 1000 * int(sys.argv[1]) + k, "float32"), None)
    fluid.io.save_persistables(exe, "model")
    fluid.io.load_persistables(exe, "model")
    assert len(values()) == 1, values()
"""


def start(folder, *words):
    return subprocess.Popen([sys.executable, "-c", WRITER, *map(str, words)],
                            cwd=folder, stdout=subprocess.PIPE)


def test_processes_save_into_one_folder_at_once(tmp_path):
    """Each reads what one of them has saved, whole."""
    writers = [start(tmp_path, i, 15) for i in range(3)]
    assert [w.wait(timeout=LIMIT) for w in writers] == [0, 0, 0]
    for w in writers:
        w.stdout.close()
    assert saved(tmp_path / "model") == ["p%02d" % i for i in range(20)]


def test_a_killed_save_leaves_one_model(tmp_path):
    for i in range(3):
        writer = start(tmp_path, i, 100000)
        assert writer.stdout.readline() == b"begins\n"
        deadline = time.monotonic() + 0.05 + 0.03 * i
        while time.monotonic() < deadline or \
                not (tmp_path / "model" / MANIFEST).exists():
            time.sleep(0.001)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        loader = start(tmp_path, "load")
        assert loader.communicate(timeout=LIMIT)[0] == b"1\n"
    writer = start(tmp_path, 1, 1)
    assert writer.wait(timeout=LIMIT) == 0
    writer.stdout.close()
    assert saved(tmp_path / "model") == ["p%02d" % i for i in range(20)]
