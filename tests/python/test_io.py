"""fluid.io: variables and models on disk, in the original's layout."""
import os
import struct
import tarfile

import numpy as np
import pytest

import paddle.fluid as fluid
from paddle.fluid.executor import _fetch_var

X = np.random.RandomState(0).rand(20, 13).astype("float32")
W, B = "fc_0.w_0", "fc_0.b_0"


def predict(exe, program, feed_name, target):
    return exe.run(program, feed={feed_name: X}, fetch_list=[target])[0]


def wipe():
    for name in (W, B):
        tensor = fluid.global_scope().find_var(name).get_tensor()
        tensor.set(np.zeros(tensor.shape(), "float32"), None)


def test_each_variable_has_a_file(line, exe, tmp_path):
    fluid.io.save_persistables(exe, str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == [B, W, "learning_rate_0"]
    value = _fetch_var(W)
    head = bytes.fromhex("00000000" "0000000000000000" "00000000" "06000000"
                         "0805" "100d" "1001")
    assert (tmp_path / W).read_bytes() == head + value.tobytes()
    wipe()
    fluid.io.load_persistables(exe, str(tmp_path))
    assert np.array_equal(_fetch_var(W), value)


def test_parameters_are_fewer_than_persistables(line, exe, tmp_path):
    fluid.io.save_params(exe, str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == [B, W]
    wipe()
    fluid.io.load_params(exe, str(tmp_path))
    assert _fetch_var(W).any()


def test_all_go_into_one_file_by_name(line, exe, tmp_path):
    fluid.io.save_persistables(exe, str(tmp_path), filename="all")
    assert os.listdir(tmp_path) == ["all"]
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
    assert os.listdir(tmp_path) == [W]
    block = programs[0].global_block()
    fluid.io.save_vars(exe, str(tmp_path), vars=[block.var(B)])
    assert sorted(os.listdir(tmp_path)) == [B, W]
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
    assert sorted(os.listdir(folder)) == files
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
    assert os.listdir(tmp_path) == ["__model__"]


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


def test_a_model_that_is_not_there_is_named(exe, tmp_path):
    with pytest.raises(ValueError, match="no directory named '.*nowhere'"):
        fluid.io.load_inference_model(str(tmp_path / "nowhere"), exe)


def test_parameters_are_read_by_name(line, exe, programs):
    param = programs[0].global_block().var(W)
    value = fluid.io.get_parameter_value(param, exe)
    assert value.shape == (13, 1)
    assert np.array_equal(
        fluid.io.get_parameter_value_by_name(W, exe, programs[0]), value)
    with pytest.raises(AssertionError, match="no parameter"):
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
    for name in os.listdir(back):
        with open(os.path.join(folder, name), "rb") as file:
            assert (back / name).read_bytes() == file.read()
    assert sorted(os.listdir(back)) == [B, W]


def test_a_file_with_a_false_size_is_refused(line, exe, tmp_path):
    fluid.io.save_persistables(exe, str(tmp_path))
    desc = b"\x08\x05\x10" + b"\x80" * 8 + b"\x10"
    (tmp_path / W).write_bytes(struct.pack("<IQIi", 0, 0, 0, len(desc))
                               + desc)
    with pytest.raises(Exception, match=W):
        fluid.io.load_persistables(exe, str(tmp_path))
