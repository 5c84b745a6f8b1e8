# SPDX-License-Identifier: Apache-2.0
"""fluid.evaluator: figures that a program adds up."""
import numpy as np
import pytest

import paddle.fluid as fluid
from fresh import fresh
from paddle.fluid import layers


def test_accuracy_adds_up_until_reset():
    with fresh() as net:
        guess = layers.data("guess", [2])
        label = layers.data("label", [1], dtype="int64")
        accuracy = fluid.evaluator.Accuracy(input=guess, label=label)
        batch, = accuracy.metrics
        rows = np.array([[0.9, 0.1], [0.2, 0.8]], "float32")

        def run(*labels):
            feed = {"guess": rows, "label": np.array(labels).reshape(2, 1)}
            return net.run([batch], feed=feed)[0].item()

        assert run(0, 0) == 0.5
        accuracy.reset(net.exe)
        assert (run(0, 1), run(1, 1)) == (1.0, 0.5)
        assert accuracy.eval(net.exe).tolist() == [0.75]
        accuracy.reset(net.exe)
        assert accuracy.eval(net.exe).tolist() == [0.0]


def test_evaluators_of_later_layers_name_them():
    with fresh():
        x = layers.data("x", [1], dtype="int64", lod_level=1)
        with pytest.raises(AttributeError, match="chunk_eval is not in this "
                           "version yet"):
            fluid.evaluator.ChunkEvaluator(x, x, "IOB", 3)
        with pytest.raises(AttributeError, match="edit_distance is not in"):
            fluid.evaluator.EditDistance(x, x)
