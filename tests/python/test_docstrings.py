"""Every layer and optimizer says what it is for, what its arguments mean and
what it returns."""
import os

import pytest

import paddle.fluid as fluid
from conftest import ROOT
from paddle.fluid import _fluid


def rows():
    return list(_fluid.layer_table()) + list(_fluid.optimizer_table())


@pytest.mark.parametrize("spec", rows(), ids=[s.name for s in rows()])
def test_a_row_of_the_tables_has_a_purpose_and_meanings(spec):
    assert spec.doc.endswith(".") and len(spec.doc) > 10, spec.doc
    for a in spec.arguments:
        assert a.doc and not a.doc.endswith("."), a


def test_help_and_the_page_say_what_an_argument_means():
    doc = fluid.layers.fc.__doc__
    assert "num_flatten_dims (int, default 1): the number of leading" in doc
    assert "Returns:\n    A Variable." in doc
    assert fluid.optimizer.SGD.__doc__.startswith("Stochastic gradient desc")
    assert "transposed convolution" in fluid.layers.conv2d_transpose.__doc__
    with open(os.path.join(ROOT, "docs", "layers.md")) as f:
        page = f.read()
    assert "- `size` (int, `.i`): the number of outputs of each row" in page
