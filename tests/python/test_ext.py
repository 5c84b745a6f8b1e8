# SPDX-License-Identifier: Apache-2.0
"""The raw extension, without the package over it.

Every test has a module of its own: nothing in it is shared, so programs,
names and classes start anew.
"""
import ast
import gc
import importlib.util
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest

from cluster import LIMIT
from conftest import BUILD, burned

FILE = os.path.join(BUILD, "python", "paddle", "fluid", "_fluid.abi3.so")


@pytest.fixture
def fl():
    spec = importlib.util.spec_from_file_location("_fluid", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def data(fl, name, *shape, dtype="float32"):
    return fl.layer("data", {"name": name, "shape": shape, "dtype": dtype})


class Line:
    """A line fitted to points: a net, its scope and an executor."""

    def __init__(self, fl):
        self.fl, self.scope, self.exe = fl, fl.Scope(), fl.Executor()
        x, y = data(fl, "x", 13), data(fl, "y", 1)
        self.predict = fl.layer("fc", {"input": x, "size": 1})
        cost = fl.layer("square_error_cost",
                        {"input": self.predict, "label": y})
        self.loss = fl.layer("mean", {"x": cost})
        self.points = np.random.RandomState(3).rand(20, 13).astype("float32")
        self.feed = {"x": self.points,
                     "y": self.points.sum(1, keepdims=True)}

    def train(self, optimizer="SGD", rate=0.01):
        opt = self.fl.Optimizer(optimizer, {"learning_rate": rate})
        self.ops, self.params_grads = opt.minimize(self.loss)
        self.start()
        return self

    def start(self):
        self.exe.run(self.fl.startup_program(), self.scope, {}, [])

    def step(self, fetch=None):
        return self.exe.run(self.fl.main_program(), self.scope, self.feed,
                            fetch or [self.loss.name])


# --- building and running ----------------------------------------------------

def test_a_line_is_learnt(fl):
    line = Line(fl).train()
    assert [op.type for op in line.ops] == ["sgd", "sgd"]
    assert [(p.name, g.name) for p, g in line.params_grads] == [
        ("fc_0.w_0", "fc_0.w_0@GRAD"), ("fc_0.b_0", "fc_0.b_0@GRAD")]
    losses = [float(np.asarray(line.step()[0])[0]) for _ in range(50)]
    assert losses[-1] < 0.1 * losses[0]


def test_layers_return_what_their_table_says(fl):
    x = data(fl, "x", 6)
    parts = fl.layer("split", {"input": x, "num_or_sections": 3, "dim": 1})
    assert isinstance(parts, list) and len(parts) == 3
    values, indices = fl.layer("topk", {"input": x, "k": 2})
    assert (values.shape, indices.dtype) == ((-1, 2), 3)
    assert isinstance(fl.layer("relu", {"x": x}), fl.Variable)


def test_arguments_are_converted_by_the_table(fl):
    x = data(fl, "x", 4)
    y = fl.layer("fc", {"input": [x, x], "size": np.int64(3), "act": "tanh",
                        "param_attr": ["w0", "w1"], "bias_attr": False})
    assert y.shape == (-1, 3)
    names = list(fl.main_program().block(0).vars)
    assert "w0" in names and "w1" in names and "fc_0.b_0" not in names
    one = fl.layer("fill_constant", {"shape": (2, 3), "value": 1,
                                     "dtype": np.float64})
    assert one.dtype == 6
    with pytest.raises(TypeError, match='fc: argument "size" must be an int'):
        fl.layer("fc", {"input": x, "size": "many"})


def test_gradients_and_arithmetic(fl):
    x = data(fl, "x", 2)
    x.stop_gradient = False
    y = fl.var_math("*", x, x)
    z = fl.var_math("-", y, 1.0, reversed=True)
    (dx,) = fl.gradients([z], [x])
    assert dx.name == "x@GRAD"
    got = fl.Executor().run(fl.main_program(), fl.Scope(),
                            {"x": np.array([[3, -2]], "float32")},
                            [z.name, dx.name])
    assert np.asarray(got[0]).tolist() == [[-8, -3]]
    assert np.asarray(got[1]).tolist() == [[-6, 4]]


def test_a_switch_takes_the_first_case_that_holds(fl):
    x = data(fl, "x", 1)
    out = fl.layer("fill_constant", {"shape": [1], "dtype": "float32",
                                     "value": 0.0})
    two = fl.layer("fill_constant", {"shape": [1], "dtype": "float32",
                                     "value": 2.0})
    switch = fl.Switch()
    for condition, value in ((fl.var_math("<", x, two), 5.0), (None, 7.0)):
        switch.case(condition)
        assert fl.main_program().current_block_idx > 0
        const = fl.layer("fill_constant", {"shape": [1], "dtype": "float32",
                                           "value": value})
        fl.layer("assign", {"input": const, "output": out})
        switch.end()
    assert fl.main_program().current_block_idx == 0
    exe, scope = fl.Executor(), fl.Scope()
    for given, want in ((1, 5), (3, 7)):
        (got,) = exe.run(fl.main_program(), scope,
                         {"x": np.array([[given]], "float32")}, [out.name])
        assert np.asarray(got)[0] == want


def test_tables_have_defaults_as_text(fl):
    fc = {s.name: s for s in fl.layer_table()}["fc"]
    assert [a.name for a in fc.arguments][:2] == ["input", "size"]
    assert {a.name: a.default for a in fc.arguments}["act"] == "None"
    scale = {o.type: o for o in fl.op_table()}["scale"]
    assert scale.differentiable
    assert [(a.name, a.default) for a in scale.attrs][0] == ("scale", 1.0)
    assert "Adam" in [s.name for s in fl.optimizer_table()]


# --- what users write themselves ---------------------------------------------

class Spec:
    def __init__(self, **spec):
        self._fluid_spec = lambda: spec


def test_specs_reach_the_program(fl):
    decay = Spec(what="regularizer", kind="l2", coeff=0.5)
    clip = Spec(what="clip", kind="value", max=1.0, min=-1.0)
    attr = Spec(what="param", name="w", regularizer=decay, gradient_clip=clip,
                initializer=Spec(what="init", kind="constant", a=2.0),
                learning_rate=0.5)
    fl.layer("fc", {"input": data(fl, "x", 3), "size": 1, "param_attr": attr})
    w = fl.main_program().block(0).find_var("w")
    assert w.is_parameter and w.learning_rate == 0.5
    assert w.regularizer is decay and w.gradient_clip is clip
    copy = fl.main_program().clone()
    assert copy.block(0).find_var("w").regularizer is decay
    w.regularizer = None
    assert w.regularizer is None
    op = fl.startup_program().block(0).find_var("w").op
    assert op.type == "fill_constant" and op.attr("value") == 2.0


def test_an_initializer_of_ones_own_is_called(fl):
    seen = []

    def init(var, block):
        seen.append((var.name, block.program is fl.startup_program()))
        block.insert_op(0, "fill_constant", outputs={"Out": var},
                        attrs={"shape": var.shape, "dtype": var.dtype,
                               "value": 4.0})

    fl.layer("fc", {"input": data(fl, "x", 3), "size": 1, "param_attr": init})
    assert seen == [("fc_0.w_0", True)]
    scope = fl.Scope()
    fl.Executor().run(fl.startup_program(), scope, {}, [])
    w = np.asarray(scope.find_var("fc_0.w_0").get_tensor())
    assert (w == 4).all()


def test_a_regularizer_of_ones_own_is_called(fl):
    def decay(param, grad, block):
        assert block.program.op_role == 2
        return fl.layer("scale", {"x": param, "scale": 3.0})

    attr = Spec(what="param", name="w", regularizer=decay)
    x = data(fl, "x", 3)
    y = fl.layer("fc", {"input": x, "size": 1, "param_attr": attr})
    fl.Optimizer("SGD", {"learning_rate": 0.1}).minimize(
        fl.layer("mean", {"x": y}))
    kinds = [op.type for op in fl.main_program().block(0).ops]
    assert kinds[-4:] == ["scale", "sum", "sgd", "sgd"]


def test_what_a_callback_raises_comes_through(fl):
    def init(var, block):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fl.layer("fc", {"input": data(fl, "x", 3), "size": 1,
                        "param_attr": init})


def test_an_optimizer_of_ones_own_updates(fl):
    class Own:
        def create_accumulators(self, block, params):
            self.params = [p.name for p in params]
            opt.accumulator("speed", params[0], 1.0)

        def append_op(self, block, param_and_grad):
            param, grad = param_and_grad
            block.append_op("sgd", {"Param": param, "Grad": grad,
                                    "LearningRate": opt.param_rate(param)},
                            {"ParamOut": param})

        def finish(self, block, params_grads):
            self.done = len(params_grads)

    own, line = Own(), Line(fl)
    opt = fl.Optimizer(None, {"learning_rate": 0.01}, own)
    ops, _ = opt.minimize(line.loss)
    assert own.params == ["fc_0.b_0", "fc_0.w_0"] and own.done == 2
    assert [op.type for op in ops] == ["sgd", "sgd"]
    assert ops[0].attr("op_role") == 2
    assert ops[0].attr("op_role_var") == ["fc_0.b_0", "fc_0.b_0@GRAD"]
    assert opt.rate.name == "learning_rate_0"
    b = fl.main_program().block(0).find_var("fc_0.b_0")
    assert opt.get_accumulator("speed", b).name == "fc_0.b_0_speed_0"
    line.start()
    first, last = (float(np.asarray(line.step()[0])[0]) for _ in range(2))
    assert last < first


# --- programs ----------------------------------------------------------------

def test_one_variable_is_one_object(fl):
    items = {"__getitem__": lambda self, i: self}  # no sequence for that
    fl.set_classes(variable=type("Variable", (fl.Variable,), items))
    x = data(fl, "x", 2)
    block = fl.main_program().block(0)
    x.note = "kept"
    gc.collect()
    assert block.find_var("x") is x and block.vars["x"].note == "kept"
    assert block is fl.main_program().block(0)
    block.append_op("relu", {"X": x}, {"Out": [block.create_var("y")]})
    assert block.ops[0] is block.ops[0]
    assert block.ops[0].output("Out") == block.ops[0].output_arg_names


def test_views_are_of_the_classes_that_were_set(fl):
    class Program(fl.Program):
        pass

    class Variable(fl.Variable):
        pass

    class Parameter(Variable):
        pass

    fl.set_classes(program=Program, variable=Variable, parameter=Parameter)
    fl.switch_main_program(Program())
    fl.layer("fc", {"input": data(fl, "x", 2), "size": 1})
    block = fl.main_program().block(0)
    assert type(block.find_var("x")) is Variable
    assert type(block.find_var("fc_0.w_0")) is Parameter
    assert type(fl.main_program().clone()) is Program
    with pytest.raises(TypeError, match="no subclass"):
        fl.set_classes(variable=int)


def test_views_keep_their_program_and_end_with_it(fl):
    class Program(fl.Program):
        pass

    program = Program()
    var = program.block(0).create_var("a", shape=[2, 3], dtype="int64")
    gone = weakref.ref(program)
    del program
    gc.collect()
    assert gone() is not None and var.shape == (2, 3)
    del var
    gc.collect()
    assert gone() is None


def test_blocks_ops_and_variables_are_edited(fl):
    p = fl.Program()
    b = p.block(0)
    x = b.create_var("x", shape=[-1, 2], dtype="float32")
    assert b.create_var("x") is x
    with pytest.raises(ValueError, match=r'"x" is f32\[-1,2\]'):
        b.create_var("x", shape=[-1, 3])
    assert b.create_var().name == "_generated_var_0"
    op = b.append_op("scale", {"X": x}, {"Out": ["y"]}, {"scale": 3})
    assert b.find_var("y").shape == (-1, 2) and b.find_var("y").op is op
    assert op.attr("scale") == 3.0 and op.attr_type("scale") == 1
    op.set_attr("scale", 4)
    assert op.all_attrs()["scale"] == 4.0
    first = b.insert_op(0, "relu", {"X": "x"}, {"Out": "z"})
    assert (first.idx, op.idx) == (0, 1)
    b.rename_var("y", "u")
    assert op.output("Out") == ["u"] and b.find_var("y") is None
    b.remove_op(0)
    assert (first.idx, b.num_ops) == (-1, 1)
    sub = p.create_block(0)
    assert (sub.idx, sub.parent_idx, sub.find_var_recursive("x")) == (1, 0, x)
    with pytest.raises(IndexError):
        p.block(2)
    with pytest.raises(IndexError):
        b.remove_op(7)
    with pytest.raises(ValueError, match="did you mean"):
        b.append_op("reluu", {"X": "x"}, {"Out": "q"})
    with pytest.raises(ValueError, match="the operator has no attribute colour"):
        b.append_op("relu", {"X": "x"}, {"Out": "q"}, {"colour": 1})


def test_a_program_is_bytes_and_text(fl):
    Line(fl)
    p = fl.main_program()
    again = fl.Program.parse_from_string(p.serialize_to_string())
    assert again.to_string() == p.to_string()
    assert 'type: "mul"' in p.to_string() and "mul(X=x" in p.to_text()
    with pytest.raises(fl.EnforceNotMet, match="broken"):
        fl.Program.parse_from_string(p.serialize_to_string()[:50], "broken")
    pruned = p.prune(["fc_0.tmp_1"])
    assert [op.type for op in pruned.block(0).ops] == ["mul",
                                                       "elementwise_add"]


def test_views_follow_a_program_that_is_replaced(fl):
    p, q = fl.Program(), fl.Program()
    a = p.block(0).create_var("a", shape=[1], dtype="float32")
    b = p.block(0).create_var("b", shape=[1], dtype="float32")
    op = p.block(0).append_op("relu", {"X": a}, {"Out": b})
    q.block(0).create_var("a", shape=[5], dtype="float32")
    p.take(q)
    gc.collect()
    assert a.shape == (5,) and p.block(0).find_var("a") is a
    assert q.block(0).vars == {}
    for gone in (lambda: b.shape, lambda: op.type):
        with pytest.raises(RuntimeError, match="gone"):
            gone()


def test_an_op_knows_the_line_that_made_it(fl):
    fl.layer("relu", {"x": data(fl, "x", 2)})  # this line
    where, line = fl.main_program().block(0).ops[0].attr("op_callstack")
    assert __file__ in where and "in test_an_op_knows" in where
    assert line.strip().endswith("# this line")


def test_switching_programs_names_and_scopes(fl):
    old = fl.main_program()
    mine, names = fl.Program(), fl.NameGenerator("a_")
    assert fl.switch_main_program(mine) is old
    before = fl.switch_names(names)
    assert fl.generate_name("fc") == "a_fc_0" and names("fc") == "a_fc_1"
    assert fl.switch_names(before) is names
    assert fl.switch_name_scope("/block/") == "/"
    fl.layer("relu", {"x": data(fl, "x", 2)})
    assert mine.block(0).ops[0].attr("op_namescope") == "/block/"
    assert old.block(0).num_ops == 0
    with pytest.raises(TypeError):
        fl.switch_main_program("main")


# --- values ------------------------------------------------------------------

@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64",
                                   "int32", "int16", "int8", "uint8", "bool"])
def test_arrays_cross_unchanged(fl, dtype):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    t = fl.LoDTensor()
    t.set(a, None)
    b = np.asarray(t)
    assert b.dtype == a.dtype and (a == b).all() and t.shape() == [2, 3]


def test_a_strided_array_is_copied_together(fl):
    a = np.arange(12, dtype="float32").reshape(3, 4)
    t = fl.LoDTensor()
    t.set(a[:, ::2])
    assert np.asarray(t).tolist() == a[:, ::2].tolist()
    with pytest.raises(TypeError, match="no array"):
        t.set([1, 2])
    with pytest.raises(TypeError, match="no numbers"):
        t.set(np.array(["a"]))


def test_level_of_detail(fl):
    t = fl.LoDTensor()
    t.set(np.zeros((5, 1), "float32"))
    t.set_recursive_sequence_lengths([[2, 1], [2, 2, 1]])
    assert t.lod() == [[0, 2, 3], [0, 2, 4, 5]]
    assert t.recursive_sequence_lengths() == [[2, 1], [2, 2, 1]]
    assert t.has_valid_recursive_sequence_lengths()
    with pytest.raises(ValueError):
        t.set_lod([[0, 2, 6]])
    assert t.lod() == [[0, 2, 3], [0, 2, 4, 5]]
    t.set_lod([])
    assert t.lod() == []


def test_empty_tensors_say_so(fl):
    t = fl.LoDTensor()
    assert not t._is_initialized()
    with pytest.raises(RuntimeError, match="holds nothing yet"):
        np.array(t)
    t._set_dims([2, 2])
    t._alloc("int64")
    t._set_element(3, 7)
    assert np.asarray(t).tolist() == [[0, 0], [0, 7]]
    assert t._get_element(3) == 7.0
    with pytest.raises(IndexError):
        t._get_element(4)
    t._clear()
    assert not t._is_initialized()


def test_dims_may_be_set_before_a_variable_is(fl):
    t = fl.Scope().var("x").get_tensor()
    t._set_dims([2, 2])
    with pytest.raises(RuntimeError, match="holds nothing yet"):
        np.array(t)
    t.set(np.ones((2, 2), "float32"))
    assert np.asarray(t).sum() == 4


@pytest.mark.parametrize("dims", [
    [-2, -2], [-1], [2**32, 2**32], [2**62, 2, 2]])
def test_dims_that_no_tensor_can_have_are_refused(fl, dims):
    for tensor in (fl.LoDTensor(), fl.Scope().var("x").get_tensor()):
        with pytest.raises(ValueError, match="cannot have these dims"):
            tensor._set_dims(dims)
        tensor.set(np.ones((2, 2), "float32"))
        with pytest.raises(ValueError):
            tensor._set_dims(dims)
        assert tensor.shape() == [2, 2]


def test_rows_without_values_are_none(fl):
    """Kernels trust the number of rows, so other dims of the values count."""
    block, scope = fl.main_program().block(0), fl.Scope()
    block.create_var("g", type=8, shape=[10, 2], persistable=True)
    block.create_var("out", type=8)
    block.append_op("merge_selected_rows", {"X": ["g"]}, {"Out": ["out"]}, {})
    rows = scope.var("g").get_selected_rows()
    rows.set_height(10)
    rows.set_rows([1, 4])
    rows.get_tensor().set(np.ones((2, 2), "float32"))
    rows.get_tensor()._set_dims([4, 1])
    out, = fl.Executor().run(fl.main_program(), scope, {}, ["out"])
    assert out.rows() == []
    rows.get_tensor().set(np.ones((2, 2), "float32"))
    rows.get_tensor()._clear()
    with pytest.raises(fl.EnforceNotMet):
        fl.Executor().run(fl.main_program(), scope, {}, ["out"])


def test_scopes_hold_values(fl):
    scope = fl.Scope()
    assert scope.find_var("w") is None
    scope.var("w").get_tensor().set(np.ones((2, 2), "float32"))
    kid = scope.new_scope()
    kid.var("own")
    seen = np.asarray(kid.find_var("w").get_tensor())
    scope.find_var("w").get_tensor().set(np.zeros((2, 2), "float32"))
    assert (seen == 1).all()  # a copy: the next run writes the original
    assert kid.local_var_names() == ["own"]
    scope.drop_kids()
    with pytest.raises(RuntimeError, match="gone"):
        kid.find_var("w")
    tensor = scope.find_var("w").get_tensor()
    scope.erase(["w"])
    with pytest.raises(fl.EnforceNotMet, match='"w" no longer'):
        tensor.shape()


def test_selected_rows(fl):
    rows = fl.SelectedRows([1, 4], 10)
    rows.get_tensor().set(np.ones((2, 3), "float32"))
    assert (rows.rows(), rows.height()) == ([1, 4], 10)
    scope = fl.Scope()
    held = scope.var("g").get_selected_rows()
    held.set_height(5)
    held.set_rows([3])
    held.get_tensor().set(np.ones((1, 2), "float32"))
    assert scope.find_var("g").get_selected_rows().rows() == [3]
    with pytest.raises(fl.EnforceNotMet):
        scope.find_var("g").get_tensor()


class Odd(dict):
    """A dict whose items() are what one says."""

    def __init__(self, items):
        super().__init__({"x": 1})
        self.odd = items

    def items(self):
        return self.odd


@pytest.mark.parametrize("items", [[1], [None], [("x",)], [("x", 1, 2)],
                                   [["x", 1]]])
def test_items_that_are_no_pairs_are_refused(fl, items):
    odd, refused = Odd(items), pytest.raises(TypeError, match="items.. of ")
    with refused:
        fl.Executor().run(fl.main_program(), fl.Scope(), odd, [])
    with refused:
        fl.layer("data", odd)
    block = fl.main_program().block(0)
    for parts in ((odd, {}, {}), ({}, odd, {}), ({}, {}, odd)):
        with refused:
            block.append_op("scale", *parts)


# --- memory and threads ------------------------------------------------------

class Held:
    """A run of `Out = 2 x` that stands still in a `load` until it is let go:
    what it loads is a pipe."""

    def __init__(self, fl, folder, scope, tensor):
        self.pipe = str(folder / "pipe")
        os.mkfifo(self.pipe)
        block, self.got = fl.main_program().block(0), []
        x = data(fl, "x", 3)
        for name in ("loaded", "out"):
            block.create_var(name, persistable=True)
        block.append_op("load", {}, {"Out": ["loaded"]},
                        {"file_path": self.pipe})
        block.append_op("scale", {"X": ["x"]}, {"Out": ["out"]},
                        {"scale": 2.0})
        some = fl.Scope()
        some.var("loaded").get_tensor().set(np.ones(2, "float32"))
        fl.save_vars(fl.main_program(), some, str(folder), None, ["loaded"])
        with open(folder / "loaded", "rb") as f:
            self.bytes = f.read()
        self.thread = threading.Thread(target=lambda: self.got.extend(
            fl.Executor().run(fl.main_program(), scope, {"x": tensor},
                              ["out"])))

    def __enter__(self):
        self.thread.start()
        self.file = open(self.pipe, "wb")  # waits until it is read
        return self

    def __exit__(self, *error):
        with self.file:
            self.file.write(self.bytes)
        self.thread.join()


@pytest.mark.parametrize("how", ["set", "share"])
def test_a_tensor_that_is_fed_may_be_set(fl, tmp_path, how):
    tensor = fl.LoDTensor()
    array = np.ones((200000, 3), "float32")
    getattr(tensor, how)(array)
    tensor.set_lod([[0, 100000, 200000]])
    del array
    with Held(fl, tmp_path, fl.Scope(), tensor) as run:
        tensor.set(np.zeros((300000, 3), "float32"))
        tensor.set_lod([[0] + [300000] * 50])
        gc.collect()
    out, = run.got
    assert out.shape() == [200000, 3] and (np.asarray(out) == 2).all()
    assert out.lod() == [[0, 100000, 200000]]


def test_a_scope_in_use_is_not_dropped(fl, tmp_path):
    scope = fl.Scope()
    kid, tensor = scope.new_scope().new_scope(), fl.LoDTensor()
    tensor.set(np.ones((2, 3), "float32"))
    with Held(fl, tmp_path, kid, tensor):
        with pytest.raises(RuntimeError, match="drop_kids: .* runs in a child"):
            scope.drop_kids()
        for s in (scope, kid):
            with pytest.raises(RuntimeError, match="erase: a program runs"):
                s.erase(["out"])
    kid.erase(["out"])
    scope.drop_kids()

def test_fetched_arrays_stay_as_they_were(fl):
    line = Line(fl).train()
    arrays = []
    for _ in range(3):
        (t,) = line.step([line.predict.name])
        arrays.append(np.asarray(t))
    copies = [a.copy() for a in arrays]
    del t
    for _ in range(20):
        line.step([line.predict.name])
    gc.collect()
    assert all((a == c).all() for a, c in zip(arrays, copies))
    assert not (arrays[0] == arrays[2]).all()
    arrays[0][:] = 0  # and they are the caller's to write


def test_an_array_outlives_its_tensor(fl):
    t = fl.LoDTensor()
    t.set(np.arange(1000, dtype="float32"))
    a = np.asarray(t)
    t.set(np.zeros(1000, "float32"))
    assert a[999] == 999
    del t
    gc.collect()
    assert a.sum() == 999 * 500


def test_shared_memory_is_not_copied(fl):
    a = np.ones((4, 13), "float32")
    t = fl.LoDTensor()
    t.share(a)
    refs = sys.getrefcount(a)
    line = Line(fl)
    line.start()
    line.feed["x"] = t
    line.feed["y"] = np.zeros((4, 1), "float32")
    (one,) = line.step([line.predict.name])
    a[:] = 2
    (two,) = line.step([line.predict.name])
    assert np.allclose(np.asarray(two), 2 * np.asarray(one))
    t._clear()
    assert sys.getrefcount(a) == refs - 1


def test_ten_thousand_runs_do_not_grow(fl):
    line = Line(fl).train()

    def run(n):
        for _ in range(n):
            np.asarray(line.step()[0])
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = run(2000)
    assert run(10000) - before < 1024  # KiB: a leak of 100 bytes a run


def test_building_does_not_leak_programs(fl):
    class Program(fl.Program):
        pass

    refs = []
    for _ in range(20):
        main, startup = Program(), Program()
        old = fl.switch_main_program(main), fl.switch_startup_program(startup)
        Line(fl).train("Adam")
        fl.switch_main_program(old[0])
        fl.switch_startup_program(old[1])
        refs.append(weakref.ref(main))
    del main, startup
    gc.collect()
    assert not any(r() for r in refs)


def test_another_thread_goes_on_during_a_run(fl, tmp_path):
    tensor = fl.LoDTensor()
    tensor.set(np.ones((1, 3), "float32"))
    with Held(fl, tmp_path, fl.Scope(), tensor) as run:
        assert run.thread.is_alive() and not run.got  # said by this thread
    assert len(run.got) == 1


def test_what_nothing_wrote_is_none(fl):
    fl.main_program().block(0).create_var("a", shape=[1], dtype="float32")
    assert fl.Executor().run(fl.main_program(), fl.Scope(), {},
                             ["a"]) == [None]


def test_threads_take_turns_on_one_executor(fl):
    line = Line(fl).train()
    errors = []

    def work():
        try:
            for _ in range(200):
                line.step()
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_ctrl_c_ends_a_run_within_a_second(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(textwrap.dedent("""
        import importlib.util, signal, sys, time
        signal.signal(signal.SIGINT, signal.default_int_handler)
        spec = importlib.util.spec_from_file_location("_fluid", sys.argv[1])
        fl = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(fl)
        x = fl.layer("fill_constant", {"shape": [512, 512],
                                       "dtype": "float32", "value": 1e-3})
        for _ in range(100):  # a run takes long, most of it in kernels
            x = fl.layer("matmul", {"x": x, "y": x})
        exe, scope = fl.Executor(no_fuse=True), fl.Scope()
        print("ready", flush=True)
        try:
            while True:
                exe.run(fl.main_program(), scope, {}, [x.name])
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """))
    child = subprocess.Popen([sys.executable, str(script), FILE],
                             stdout=subprocess.PIPE, text=True)
    limit = threading.Timer(LIMIT, child.kill)
    limit.start()
    try:
        assert child.stdout.readline() == "ready\n"
        burned(child.pid, 0.3)
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert child.wait(LIMIT) == 0
    finally:
        limit.cancel()
        child.kill()
        child.wait()
        child.stdout.close()


# --- errors, files, profile --------------------------------------------------

def test_errors_have_their_types_and_sentences(fl):
    line = Line(fl)
    with pytest.raises(ValueError, match='unknown layer "fcc"'):
        fl.layer("fcc", {})
    with pytest.raises(ValueError, match='unknown argument "siz"'):
        fl.layer("fc", {"input": line.predict, "siz": 1})
    with pytest.raises(ValueError, match='"input" is missing'):
        fl.layer("fc", {"size": 1})
    with pytest.raises(fl.EnforceNotMet, match="mul"):
        fl.main_program().block(0).append_op(
            "mul", {"X": "x", "Y": "fc_0.b_0"}, {"Out": "bad"})
    line.start()
    line.feed["x"] = np.zeros((2, 5), "float32")
    with pytest.raises(fl.EnforceNotMet, match=r'feed "x" is float32\[2,5\]'):
        line.step()
    assert issubclass(fl.EnforceNotMet, RuntimeError)
    with pytest.raises(TypeError):
        line.exe.run("program", line.scope, {}, [])


@pytest.mark.parametrize("no_fuse", [True, False])
def test_an_error_of_a_run_names_the_python_line(fl, no_fuse):
    line = Line(fl)
    exe = fl.Executor(no_fuse=no_fuse)
    with pytest.raises(fl.EnforceNotMet) as e:  # startup was not run
        exe.run(fl.main_program(), line.scope, line.feed, [line.loss.name])
    assert str(e.value).startswith('"fc_0.w_0" holds nothing yet: run the '
                                   'startup program first')
    assert 'op 0 "mul" in block 0' in str(e.value)
    assert os.path.basename(__file__) in str(e.value)
    assert 'self.predict = fl.layer("fc"' in str(e.value)
    assert "fused" not in str(e.value)


def test_a_fused_operator_speaks_as_the_one_the_user_wrote(fl):
    line = Line(fl)
    line.start()
    line.scope.find_var("fc_0.w_0").get_tensor().set(
        np.zeros((7, 1), "float32"))
    with pytest.raises(fl.EnforceNotMet, match="^mul: .*op 0 \"mul\"") as e:
        line.step()
    assert "fused" not in str(e.value)


def test_names_end_where_they_seem_to_end(fl):
    line = Line(fl)
    with pytest.raises(ValueError, match="code 0"):
        fl.layer("data", {"name": "a\0b", "shape": [1]})
    with pytest.raises(ValueError, match="code 0"):
        line.scope.var("a\0b")
    with pytest.raises(ValueError, match="code 0"):
        line.exe.run(fl.main_program(), line.scope, {"x\0": 1}, [])
    with pytest.raises(ValueError, match="code 0"):
        line.exe.run(fl.main_program(), line.scope, {}, ["x\0"])


def test_models_and_variables_go_to_disk_and_back(fl, tmp_path):
    line = Line(fl).train()
    (want,) = line.step([line.predict.name])
    (want,) = line.step([line.predict.name])
    main = fl.main_program()
    fl.save_vars(main, line.scope, str(tmp_path / "all"))
    assert sorted(os.listdir(tmp_path / "all")) == [
        "__manifest__", "fc_0.b_0", "fc_0.w_0", "learning_rate_0"]
    fl.save_vars(main, line.scope, str(tmp_path), "some",
                 ["fc_0.w_0", "fc_0.b_0"])
    scope = fl.Scope()
    fl.load_vars(main, scope, str(tmp_path), "some", ["fc_0.w_0", "fc_0.b_0"])
    assert scope.find_var("learning_rate_0") is None
    fl.save_inference_model(main, line.scope, str(tmp_path / "model"), ["x"],
                            [line.predict])
    program, feeds, fetches = fl.load_inference_model(
        scope, str(tmp_path / "model"))
    assert feeds == ["x"]
    (a,) = line.exe.run(program, scope, {"x": line.points}, fetches)
    clone = main.prune([line.predict.name])
    (b,) = line.exe.run(clone, line.scope, {"x": line.points},
                        [line.predict.name])
    assert (np.asarray(a) == np.asarray(b)).all()
    assert "tensor f32[13,1]" in fl.show(str(tmp_path / "model/fc_0.w_0"))
    assert "mul(X=x, Y=fc_0.w_0)" in fl.show(str(tmp_path / "model" / "__model__"))
    with pytest.raises(fl.EnforceNotMet, match="nowhere"):
        fl.load_inference_model(scope, str(tmp_path / "nowhere"))


def test_a_profile_has_rows_and_a_trace(fl):
    line = Line(fl).train()
    line.exe.profile(True)
    for _ in range(3):
        line.step()
    line.exe.profile(False)
    rows = line.exe.profile_rows()
    assert rows and all(r.calls % 3 == 0 for r in rows)
    assert [r.total_ns for r in rows] == sorted(
        (r.total_ns for r in rows), reverse=True)
    assert '"ph": "X"' in line.exe.profile_trace()


def stub():
    """(name, members) of what the stub declares; None: not a class."""
    path = os.path.join(os.path.dirname(FILE), "_fluid.pyi")
    with open(path) as f:
        tree = ast.parse(f.read())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, None
        elif isinstance(node, ast.ClassDef) and not any(
                getattr(b, "id", "") == "NamedTuple" for b in node.bases):
            yield node.name, [
                m.name if isinstance(m, ast.FunctionDef) else m.target.id
                for m in node.body
                if isinstance(m, (ast.FunctionDef, ast.AnnAssign))]


def test_the_stub_is_true(fl):
    declared = dict(stub())
    for name, members in declared.items():
        assert hasattr(fl, name), name
        for member in members or ():
            assert hasattr(getattr(fl, name), member), (name, member)
    public = {n for n in vars(fl) if not n.startswith("_")}
    assert public - {"Hook"} <= set(declared)
