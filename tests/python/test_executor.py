# SPDX-License-Identifier: Apache-2.0
"""fluid.Executor: what may be fed and fetched, and what a run costs."""
import gc
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from cluster import LIMIT
import paddle.fluid as fluid
from paddle.fluid import core, executor
from conftest import ROOT, burned

X = np.random.RandomState(0).rand(20, 13).astype("float32")
Y = X.sum(1, keepdims=True)


def test_training_lowers_the_loss(line, exe):
    losses = [exe.run(feed={"x": X, "y": Y}, fetch_list=[line[0]])[0]
              for _ in range(50)]
    assert losses[0].shape == (1,) and losses[0].dtype == np.float32
    assert losses[-1] < losses[0] / 10


def test_fetches_come_in_order_and_by_name(line, exe, programs):
    loss, predicted = line
    test = programs[0].clone(for_test=True)._prune([loss])
    got = exe.run(test, feed={"x": X, "y": Y},
                  fetch_list=[predicted, loss.name])
    assert [g.shape for g in got] == [(20, 1), (1,)]
    assert exe.run(test, feed={"x": X, "y": Y}) == []
    one = exe.run(test, feed={"x": X, "y": Y}, fetch_list=loss)
    assert one[0] == got[1]
    with pytest.raises(TypeError, match="fetch_list .* int"):
        exe.run(test, feed={"x": X, "y": Y}, fetch_list=[1])


def test_fetched_arrays_stay(line, exe):
    feed = {"x": X, "y": Y}
    first = exe.run(feed=feed, fetch_list=["fc_0.w_0", line[1]])
    kept = [a.copy() for a in first]
    for _ in range(10):
        exe.run(feed=feed, fetch_list=["fc_0.w_0", line[1]])
    gc.collect()
    assert all(np.array_equal(a, b) for a, b in zip(first, kept))
    assert not np.array_equal(executor._fetch_var("fc_0.w_0"), kept[0])


@pytest.mark.parametrize("make", [
    lambda a: np.asfortranarray(a), lambda a: np.repeat(a, 2, 0)[::2],
    lambda a: [dict(x=a)]], ids=["fortran", "strided", "list of one"])
def test_feeds_of_all_shapes_in_memory(programs, exe, make):
    x = fluid.layers.data("x", [13])
    out = fluid.layers.scale(x, 2.0)
    fed = make(X)
    got, = exe.run(feed=fed if isinstance(fed, list) else {"x": fed},
                   fetch_list=[out])
    assert np.array_equal(got, X * 2)


def test_a_fed_tensor_keeps_its_lengths(programs, exe):
    x = fluid.layers.data("x", [1], lod_level=1)
    out = fluid.layers.scale(x, 2.0)
    fed = fluid.create_lod_tensor(np.ones((5, 1), "float32"), [[2, 3]],
                                  fluid.CPUPlace())
    with pytest.raises(RuntimeError, match="return_numpy"):
        exe.run(feed={"x": fed}, fetch_list=[out])
    got, = exe.run(feed={"x": fed}, fetch_list=[out], return_numpy=False)
    assert isinstance(got, fluid.LoDTensor)
    assert got.recursive_sequence_lengths() == [[2, 3]]
    assert np.asarray(got).tolist() == [[2.0]] * 5


@pytest.mark.parametrize("feed,error,sentence", [
    ({"x": [1, 2]}, RuntimeError, "feed.'x'. is a list"),
    ([{}, {}], ValueError, "one dict, not a list of 2"),
    ("x", TypeError, "feed must be a dict"),
    ({"x": np.array(["a"])}, TypeError, "not numbers"),
    ({"x": X.astype("float64")}, Exception, 
     r'feed "x" is float64\[20,13\], expected float32\[-1,13\]'
     r"; convert it: x.astype\('float32'\)"),
    ({}, Exception, r'"x" is read, but nothing writes it: feed it \(fed: '
     r'nothing\) \(op 0 "scale" .*out = fluid.layers.scale'),
    ({"nobody": X, "x": X}, Exception,
     'feed "nobody": the program has no such variable$'),
    ({"xx": X}, Exception,
     'feed "xx": the program has no such variable; did you mean "x"[?]$')])
def test_wrong_feeds_are_named(programs, exe, feed, error, sentence):
    out = fluid.layers.scale(fluid.layers.data("x", [13]), 2.0)
    with pytest.raises(error, match=sentence):
        exe.run(feed=feed, fetch_list=[out])


def test_a_feed_without_its_sequences_is_named(programs, exe):
    ids = fluid.layers.data("ids", [1], lod_level=1)
    other = fluid.layers.data("other", [1])
    out = fluid.layers.sequence_pool(ids, "sum")
    feed = {"other": X[:, :1], "ids": X[:, :1]}
    with pytest.raises(core.EnforceNotMet, match=(
            r'X has no sequences \(LoD\) .*; "ids" has lod_level=1, but is fed '
            r'without lengths: feed fluid.create_lod_tensor\(data, lengths, '
            r'place\)$')):
        exe.run(feed=feed, fetch_list=[out, other])
    feed["ids"] = fluid.create_lod_tensor(X[:, :1], [[15, 5]], None)
    assert exe.run(feed=feed, fetch_list=[out])[0].shape == (2, 1)


def test_a_feed_of_another_shape_runs_where_no_operator_minds(programs, exe):
    x = fluid.layers.data("x", [10, 10])
    out = fluid.layers.scale(x, 2.0)
    assert x.shape == (-1, 10, 10)
    got, = exe.run(feed={"x": np.ones((10, 10), "float32")},
                   fetch_list=[out])
    assert got.shape == (10, 10) and got.max() == 2.0


def test_a_feed_of_a_shape_that_an_operator_refuses_is_named(programs, exe):
    out = fluid.layers.fc(fluid.layers.data("x", [13]), 1)
    exe.run(fluid.default_startup_program())
    with pytest.raises(fluid.core.EnforceNotMet, match=r'^mul: .*\(op 0 "mul"'
                       r'.*feed "x" is float32\[20,12\], expected '
                       r"float32\[-1,13\]"):
        exe.run(feed={"x": X[:, :12]}, fetch_list=[out])


def test_a_wrong_fetch_is_named(line, exe):
    with pytest.raises((ValueError, core.EnforceNotMet), match="nobody"):
        exe.run(feed={"x": X, "y": Y}, fetch_list=["nobody"])


def test_what_nothing_wrote_is_none(programs, exe):
    programs[0].global_block().create_var(name="a", shape=[1],
                                          dtype="float32")
    assert exe.run(fetch_list=["a"]) == [None]


def test_a_sparse_gradient_is_fetched(programs, exe):
    ids = fluid.layers.data("ids", [1], dtype="int64")
    rows = fluid.layers.embedding(ids, [5, 2], is_sparse=True)
    fluid.backward.append_backward(fluid.layers.reduce_sum(rows))
    exe.run(programs[1])
    feed, name = {"ids": np.array([[3], [1], [3]])}, "embedding_0.w_0@GRAD"
    got, = exe.run(feed=feed, fetch_list=[name], return_numpy=False)
    assert isinstance(got, core.SelectedRows)
    assert got.rows() == [3, 1, 3] and got.height() == 5
    assert np.asarray(got.get_tensor()).tolist() == [[1, 1]] * 3
    assert "rows: [3, 1, 3]" in str(got)
    dense, = exe.run(feed=feed, fetch_list=[name])
    assert dense.tolist() == [[0, 0], [1, 1], [0, 0], [2, 2], [0, 0]]


def test_only_a_scope_is_made_the_global_one():
    with pytest.raises(TypeError, match="takes a Scope, not str"):
        with fluid.scope_guard("here"):
            pass
    assert isinstance(fluid.global_scope(), core.Scope)


def test_only_programs_are_run(exe):
    with pytest.raises(TypeError, match="takes a Program .* not int"):
        exe.run(1)


def test_a_closed_executor_runs_no_more(exe):
    exe.close()
    exe.close()
    with pytest.raises(RuntimeError, match="closed Executor"):
        exe.run()



def test_scopes_hold_what_programs_keep(line, exe, programs):
    outer = fluid.global_scope()
    assert outer.find_var("fc_0.w_0").get_tensor().shape() == [13, 1]
    assert outer.find_var("fc_0.tmp_0") is None
    other = fluid.Scope()
    with fluid.scope_guard(other):
        assert fluid.global_scope() is other
        exe.run(programs[1])
        exe.run(feed={"x": X, "y": Y})
    assert fluid.global_scope() is outer
    assert not np.array_equal(executor._fetch_var("fc_0.w_0", other),
                              executor._fetch_var("fc_0.w_0"))
    with pytest.raises(AssertionError, match="Cannot find nobody"):
        executor._fetch_var("nobody")


def test_what_is_set_in_a_scope_is_used(line, exe):
    tensor = fluid.global_scope().find_var("fc_0.w_0").get_tensor()
    tensor.set(np.ones((13, 1), "float32"), fluid.CPUPlace())
    fluid.global_scope().find_var("fc_0.b_0").get_tensor().set(
        np.zeros(1, "float32"), fluid.CPUPlace())
    got, = exe.run(feed={"x": X, "y": Y}, fetch_list=[line[1]])
    assert np.allclose(got, Y, rtol=1e-5)
    with pytest.raises(RuntimeError, match="no GPU kernels"):
        core.check_place(fluid.CUDAPlace(0))


def test_a_run_may_follow_a_change_of_the_program(programs, exe):
    x = fluid.layers.data("x", [2])
    a = fluid.layers.scale(x, 2.0)
    one = np.ones((1, 2), "float32")
    assert exe.run(feed={"x": one}, fetch_list=[a])[0].max() == 2.0
    a.op._set_attr("scale", 5.0)
    b = fluid.layers.scale(a, 3.0)
    assert exe.run(feed={"x": one}, fetch_list=[b])[0].max() == 15.0


def test_errors_name_the_line_that_made_the_operator(programs, exe):
    x = fluid.layers.data("x", [3, 4], append_batch_size=False)
    ids = fluid.layers.data("ids", [1], dtype="int64")
    bad = fluid.layers.gather(x, ids)  # this line
    with open(__file__) as file:
        line = 1 + next(i for i, text in enumerate(file)
                        if "# this line" in text)
    with pytest.raises(core.EnforceNotMet) as error:
        exe.run(feed={"x": np.zeros((3, 4), "float32"),
                      "ids": np.array([[7]])}, fetch_list=[bad])
    assert "gather" in str(error.value)
    assert "test_executor.py" in str(error.value)
    assert str(line) in str(error.value)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_many_runs_do_not_grow_memory(line, exe, programs):
    feed, fetch = {"x": X, "y": Y}, [line[0], line[1]]
    for _ in range(2000):
        exe.run(feed=feed, fetch_list=fetch)
    before = resident()
    for _ in range(100000):
        exe.run(feed=feed, fetch_list=fetch)
    assert resident() - before < 2 << 20


# Minutes of matrix products in one run. Ctrl-C may be ignored where the
# tests run in the background: the script listens to it all the same.
SLOW = """
import signal, sys
import numpy as np, paddle.fluid as fluid
signal.signal(signal.SIGINT, signal.default_int_handler)
x = fluid.layers.data('x', [1500, 1500], append_batch_size=False)
y = x
for _ in range(1000):
    y = fluid.layers.matmul(x, y)
exe = fluid.Executor(fluid.CPUPlace())
print('ready', file=sys.stderr, flush=True)
exe.run(feed={'x': np.zeros((1500, 1500), 'float32')}, fetch_list=[y])
"""


def test_ctrl_c_stops_a_long_run():
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW], stderr=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert "ready" in child.stderr.readline()
    burned(child.pid, 0.3)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=LIMIT)
    assert "KeyboardInterrupt" in err and out == ""
    assert child.returncode != 0


def test_tensors_have_their_methods():
    tensor = fluid.LoDTensor()
    assert not tensor._is_initialized()
    tensor.set(np.arange(6, dtype="float32").reshape(6, 1), fluid.CPUPlace())
    assert tensor.shape() == [6, 1] and tensor._dtype() == 5
    tensor.set_lod([[0, 2, 6]])
    assert tensor.lod() == [[0, 2, 6]]
    assert tensor.recursive_sequence_lengths() == [[2, 4]]
    assert tensor.has_valid_recursive_sequence_lengths()
    for wrong in ([[2, 3]], [[1, 1], [2, 3]]):
        with pytest.raises(ValueError):
            tensor.set_recursive_sequence_lengths(wrong)
    assert tensor[1:3].tolist() == [[1.0], [2.0]]
    assert "shape: [6, 1]" in str(tensor)
    tensor._set_float_element(2, 9.0)
    assert tensor._get_float_element(2) == 9.0


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32",
                                   "int64", "int16", "uint8", "int8",
                                   "bool"])
def test_tensors_keep_every_dtype(dtype):
    tensor = fluid.LoDTensor()
    array = np.array([[0, 1], [1, 0]], dtype)
    tensor.set(array, fluid.CPUPlace())
    assert np.asarray(tensor).dtype == array.dtype
    assert np.array_equal(np.asarray(tensor), array)
    assert tensor._dtype() == core.dtype_from_numpy(dtype)


def test_tensors_take_arrays_of_any_layout():
    tensor = fluid.LoDTensor()
    array = np.arange(6, dtype="float32").reshape(2, 3).T
    tensor.set(array, fluid.CPUPlace())
    assert np.array_equal(np.asarray(tensor), array)
    tensor.set(np.array([0x3c00], "uint16"), fluid.CPUPlace())
    assert np.asarray(tensor).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="CUDAPlace.0. needs a GPU"):
        tensor.set(array, fluid.CUDAPlace(0))
    with pytest.raises(TypeError):
        tensor.set(np.ones(2, "complex64"), fluid.CPUPlace())


def test_scopes_hold_single_numbers():
    scope = core.Scope()
    scope.var("i").set_int(3)
    scope.var("f").set_float(0.5)
    assert scope.find_var("i").get_int() == 3
    assert scope.find_var("f").get_float() == 0.5


def test_selected_rows_have_their_methods():
    rows = core.SelectedRows([0, 4], 10)
    assert rows.rows() == [0, 4] and rows.height() == 10
    rows.set_rows([1, 2])
    rows.set_height(5)
    rows.get_tensor().set(np.ones((2, 3), "float32"), fluid.CPUPlace())
    assert rows.rows() == [1, 2] and rows.height() == 5
    assert rows.get_tensor().shape() == [2, 3] and rows.numel() == 6


def test_scopes_nest():
    scope = core.Scope()
    assert scope.find_var("a") is None
    scope.var("a").get_tensor().set(np.ones(1, "float32"), None)
    inner = scope.new_scope()
    assert inner.find_var("a").get_tensor().shape() == [1]
    inner.var("b")
    assert scope.find_var("b") is None
    scope.drop_kids()
