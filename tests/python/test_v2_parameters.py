# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.parameters: values by name, and the tar of version 0.10."""
import hashlib
import io
import os
import struct
import tarfile

import numpy as np
import pytest

import paddle.v2 as paddle
from paddle.v2 import activation, attr, config_base, data_type, layer
from paddle.v2._param_config import ParameterConfig


@pytest.fixture(autouse=True)
def graph():
    config_base.reset()
    yield
    config_base.reset()


def line(size=3):
    x = layer.data(name="x", type=data_type.dense_vector(size))
    return layer.fc(input=x, size=1, act=activation.Linear())


W, B = "___fc_layer_0__.w0", "___fc_layer_0__.wbias"


# --- values ------------------------------------------------------------------

def test_names_shapes_and_values():
    p = paddle.parameters.create(line())
    assert p.keys() == p.names() == list(p) == [W, B] and len(p) == 2
    assert p.has_key(W) and W in p and "other" not in p
    assert p.get_shape(W) == (3, 1) and p.get_shape(B) == (1, 1)
    p[W] = np.array([[1], [2], [3]])
    assert p.get(W).dtype == np.float32
    assert p[W].tolist() == [[1], [2], [3]]


def test_what_get_gives_is_a_copy():
    p = paddle.parameters.create(line())
    before = p[W].copy()
    p[W][:] = 9
    np.testing.assert_array_equal(p[W], before)


def test_wrong_names_and_shapes_are_refused():
    p = paddle.parameters.create(line())
    with pytest.raises(ValueError, match="No such parameter nobody; there "):
        p.get("nobody")
    with pytest.raises(ValueError, match="Value shape mismatch, expect .3, 1"):
        p[W] = np.zeros(3)
    with pytest.raises(ValueError, match="Must return ndarray"):
        p[W] = [1, 2, 3]


def test_start_values_are_as_wide_as_the_input_says():
    x = layer.data(name="x", type=data_type.dense_vector(400))
    out = layer.fc(input=x, size=300)
    value = paddle.parameters.create(out)[W]
    assert abs(value.std() - 1 / 20) < 0.001 and abs(value.mean()) < 0.001


def test_start_values_are_those_that_were_asked_for():
    x = layer.data(name="x", type=data_type.dense_vector(100))
    for name, more in (("n", dict(initial_mean=3, initial_std=0.5)),
                       ("u", dict(initial_min=2, initial_max=4)),
                       ("c", dict(initial_mean=1, initial_std=0)),
                       ("f", dict(initializer=lambda n: np.full(
                           (100, 90), len(n), "float32")))):
        layer.fc(input=x, size=90, name=name, bias_attr=False,
                 param_attr=attr.Param(name=name, **more))
    p = paddle.parameters.create([layer.get_layer(n) for n in "nucf"])
    assert abs(p["n"].mean() - 3) < 0.03 and abs(p["n"].std() - 0.5) < 0.03
    assert p["u"].min() >= 2 and p["u"].max() <= 4 and p["u"].std() > 0.5
    assert (p["c"] == 1).all() and (p["f"] == 1).all()


def test_a_script_starts_alike_in_every_run():
    first = paddle.parameters.create(line())[W]
    config_base.reset()
    np.testing.assert_array_equal(paddle.parameters.create(line())[W], first)


# --- the tar -----------------------------------------------------------------

def member(name, data):
    """A member by the layout of GNU tar: mode 0644, owner and time 0."""
    head = name.encode().ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2
    head += b"%011o\0" % len(data) + b"00000000000\0" + b" " * 8 + b"0"
    head += bytes(100) + b"ustar  \0" + bytes(64) + b"0000000\0" * 2
    head = head.ljust(512, b"\0")
    check = b"%06o\0 " % sum(head)
    head = head[:148] + check + head[156:]
    return head + data + bytes(-len(data) % 512)


def double(number):
    return struct.pack("<d", number)


def config(name, size, std, dims, smart):
    """A ParameterConfig, byte by byte."""
    return (b"\x0a" + bytes([len(name)]) + name.encode() + b"\x10"
            + bytes([size]) + b"\x29" + double(0) + b"\x31" + double(std)
            + b"".join(b"\x48" + bytes([d]) for d in dims) + b"\x58\x00\x60"
            + bytes([smart]))


def value(*numbers):
    return struct.pack("<IIQ", 0, 4, len(numbers)) + struct.pack(
        "<%df" % len(numbers), *numbers)


def by_hand():
    """The tar of a network of three inputs and one output."""
    return b"".join(member(n, d) for n, d in (
        (W, value(0.5, -1.25, 3)),
        (W + ".protobuf", config(W, 3, 3 ** -0.5, (3, 1), 1)),
        (B, value(7)),
        (B + ".protobuf", config(B, 1, 0, (1, 1), 0))))


def to_bytes(parameters):
    f = io.BytesIO()
    parameters.to_tar(f)
    return f.getvalue()


def test_a_tar_written_by_hand_is_read():
    p = paddle.parameters.Parameters.from_tar(io.BytesIO(by_hand()))
    assert p.keys() == [W, B] and p.get_shape(W) == (3, 1)
    assert p[W].ravel().tolist() == [0.5, -1.25, 3] and p[B].item() == 7
    got = paddle.infer(output_layer=line(), parameters=p,
                       input=[([1, 2, 3],), ([0, 0, 1],)])
    assert got.ravel().tolist() == [14, 10]


def test_what_is_read_is_written_byte_for_byte():
    p = paddle.parameters.Parameters.from_tar(io.BytesIO(by_hand()))
    assert to_bytes(p) == by_hand()


def test_a_network_writes_the_bytes_of_the_layout():
    p = paddle.parameters.create(line())
    p[W] = np.array([[0.5], [-1.25], [3]])
    p[B] = np.array([[7]])
    assert to_bytes(p) == by_hand()


def test_a_tar_may_end_with_empty_blocks():
    p = paddle.parameters.Parameters.from_tar(
        io.BytesIO(by_hand() + bytes(10240)))
    assert p.keys() == [W, B]


def test_fields_that_nobody_knows_are_kept():
    more = config(W, 3, 1, (3, 1), 1) + b"\x68\x05\xf5\x3f1234\xfa\x3f\x02hi"
    tar = member(W, value(1, 2, 3)) + member(W + ".protobuf", more)
    p = paddle.parameters.Parameters.from_tar(io.BytesIO(tar))
    assert to_bytes(p) == tar


def test_the_original_model_is_read_and_written_back(shared):
    with open(os.path.join(shared, "paddle_models", "fit_a_line.tar"),
              "rb") as f:
        tar = f.read()
    assert hashlib.md5(tar).hexdigest() == "52fc3da8ef3937822fcdd87ee05c0c9b"
    p = paddle.parameters.Parameters.from_tar(io.BytesIO(tar))
    assert to_bytes(p) == tar
    assert paddle.infer(output_layer=line(13), parameters=p, input=[
        (np.zeros(13),)]).item() == p[B].item()


def test_a_conv_has_no_dims_in_its_config():
    x = layer.data(name="x", type=data_type.dense_vector(64))
    out = layer.img_conv(input=x, filter_size=3, num_filters=2,
                         num_channels=1, name="c", param_attr=attr.Param(
                             learning_rate=2.0, l2_rate=0.5, momentum=0.9))
    p = paddle.parameters.create(out)
    saved = ParameterConfig.parse(p.get_config("_c.w0").serialize())
    assert (saved.dims, saved.size, saved.shape) == ((), 18, (1, 18))
    assert abs(saved.initial_std - (2 / 9) ** 0.5) < 1e-12
    assert (saved.learning_rate, saved.decay_rate, saved.momentum) == (
        2.0, 0.5, 0.9)
    assert p.get_config("_c.wbias").dims == (2, 1)


def test_sparse_and_static_parameters_say_so():
    i = layer.data(name="i", type=data_type.integer_value(9))
    out = layer.embedding(input=i, size=4, param_attr=attr.Param(
        name="t", sparse_update=True, is_static=True, l2_rate=3))
    c = paddle.parameters.create(out).get_config("t")
    assert (c.sparse_update, c.sparse_remote_update, c.is_static) == (1, 1, 1)
    assert c.decay_rate is None and c.dims == (9, 4)


def test_init_from_tar_takes_what_both_have():
    p = paddle.parameters.create(line())
    p[B] = np.array([[1]])
    p.init_from_tar(io.BytesIO(by_hand()), exclude_params=[B])
    assert p[W].ravel().tolist() == [0.5, -1.25, 3] and p[B].item() == 1


@pytest.mark.parametrize("tar,words", [
    (b"no tar at all" * 100, "not a tar of parameters"),
    (member(W, value(1, 2)) + member(W + ".protobuf", config(
        W, 3, 1, (3, 1), 1)), "2 numbers; expected 0, 4 and 3"),
    (member(W, value(1, 2, 3)[:-2]) + member(W + ".protobuf", config(
        W, 3, 1, (3, 1), 1)), "ends after 2 of 3 numbers"),
    (member(W, b"xx") + member(W + ".protobuf", config(W, 3, 1, (3, 1), 1)),
     "2 bytes, expected a head of 16"),
    (member(W + ".protobuf", config(W, 3, 1, (3, 1), 1)),
     "has ___fc_layer_0__.w0.protobuf, but no ___fc_layer_0__.w0"),
    (member(W + ".protobuf", b"\x0a\x50abc"), "ends in the middle of a field"),
    (member(W + ".protobuf", b"\x0f"), "unknown wire type 7"),
    (member(W + ".protobuf", b"\x0a\x01\xff\x10\x01"),
     "is not a ParameterConfig"),
    (member(W + ".protobuf", b"\x10" + b"\xff" * 12), "has no end"),
    (member(W + ".protobuf", config(W, 3, 1, (3, 2), 1)),
     "its size is 3, its dims are .3, 2"),
])
def test_bytes_that_are_no_parameters_are_refused(tar, words):
    with pytest.raises(ValueError, match=words):
        paddle.parameters.Parameters.from_tar(io.BytesIO(tar))


def test_a_network_says_which_parameters_it_lacks():
    p = paddle.parameters.Parameters.from_tar(io.BytesIO(by_hand()))
    x = layer.data(name="x", type=data_type.dense_vector(3))
    out = layer.fc(input=x, size=1, name="other")
    with pytest.raises(ValueError, match="no _other.w0, _other.wbias, which "):
        paddle.infer(output_layer=out, parameters=p, input=[([1, 2, 3],)])


def test_a_network_says_which_parameter_has_another_size():
    p = paddle.parameters.Parameters.from_tar(io.BytesIO(by_hand()))
    with pytest.raises(ValueError, match="w0 has 3 numbers, but the network "
                                         "needs 5 x 1"):
        paddle.infer(output_layer=line(5), parameters=p,
                     input=[([1, 2, 3, 4, 5],)])


def test_python_reads_the_tar():
    f = io.BytesIO(to_bytes(paddle.parameters.create(line())))
    with tarfile.open(fileobj=f, mode="r:") as tar:
        assert [(m.name, m.mode, m.mtime, m.uid) for m in tar] == [
            (n, 0o644, 0, 0) for n in (W, W + ".protobuf", B,
                                       B + ".protobuf")]
