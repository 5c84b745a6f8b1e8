# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.inference: what a network says of new data."""
import pickle

import numpy as np

from .. import fluid
from .config_base import as_list
from .data_feeder import DataFeeder
from .data_type import InputType
from .topology import Topology

__all__ = ["infer", "Inference"]

_FIELDS = ("value", "id", "prob")


class _Stored:
    """A topology that serialize_for_inference wrote."""
    starts = {}

    def __init__(self, stream):
        stored = _read(stream)
        self.program = fluid.Program.parse_from_string(stored["protobin"])
        self.shapes = stored["shapes"]
        self.configs = dict.fromkeys(self.shapes)
        self._types = [(n, InputType(*t)) for n, t in stored["data_type"]]
        self.names = stored["outputs"]

    def data_type(self):
        return self._types

    def start_program(self, known):
        return fluid.Program()


class _PlainUnpickler(pickle.Unpickler):
    """Reads numbers, texts and lists, and nothing that could run."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError("it holds %s.%s" % (module, name))


def _read(stream):
    try:
        stored = _PlainUnpickler(stream).load()
        return {k: stored[k] for k in ("protobin", "data_type", "shapes",
                                       "outputs")}
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError) as e:
        raise ValueError("this was not written by "
                         "Topology.serialize_for_inference: %s" % e) from None


class Inference:
    """A network with parameters, ready to be asked. It is that of
    output_layer (or of several), or one that serialize_for_inference
    wrote."""

    def __init__(self, parameters, output_layer=None, fileobj=None):
        if (output_layer is None) == (fileobj is None):
            raise ValueError("Inference: give output_layer or fileobj, one of "
                             "the two")
        if fileobj is not None:
            self._topology = _Stored(fileobj)
            outputs = [(n, None) for n in self._topology.names]
        else:
            self._topology = Topology(output_layer)
            outputs = [(x.var.name, x.values.name if x.values is not None
                        else None) for x in as_list(output_layer)]
        self._outputs = outputs
        self._parameters = parameters
        parameters.bind(self._topology)
        self._program = self._topology.program.clone(for_test=True)
        self._exe = fluid.Executor(fluid.CPUPlace())

    def _fetch(self, feed):
        """Arrays of each output: {"value": ..., "id": ..., "prob": ...}."""
        names = [n for pair in self._outputs for n in pair if n]
        got = dict(zip(names, self._exe.run(
            self._program, feed=feed, fetch_list=names,
            scope=self._parameters.scope, return_numpy=False)))
        for name, beside in self._outputs:
            array = np.array(got[name])
            if array.dtype.kind in "iu":  # ids, with their values beside
                yield {"id": array.ravel(), "value": beside and np.array(
                    got[beside])}
            else:
                yield {"value": array.reshape(len(array), -1)}

    def iter_infer(self, input, feeding=None):
        """For each batch a dict of arrays for each output."""
        feeder = DataFeeder(self._topology.data_type(), feeding,
                            self._program)
        for batch in input():
            yield list(self._fetch(feeder(batch)))

    def iter_infer_field(self, field, **kwargs):
        """For each batch and each field the arrays of all outputs."""
        fields = as_list(field)
        for one in fields:
            if one not in _FIELDS:
                raise ValueError("infer: field is %r, expected one of %s"
                                 % (one, ", ".join(_FIELDS)))
        for results in self.iter_infer(**kwargs):
            yield [[r.get(f) for r in results] for f in fields]

    def infer(self, input, field="value", flatten_result=True, **kwargs):
        """Arrays over all batches of the reader `input`: one, or one for each
        field. Those of several outputs follow each other."""
        columns = None
        for row in self.iter_infer_field(field=field, input=input, **kwargs):
            if columns is None:
                columns = [[] for _ in row]
            for column, values in zip(columns, row):
                column.extend(values)
        if columns is None:
            return []
        if flatten_result:
            columns = [None if any(v is None for v in c)
                       else np.concatenate(c) for c in columns]
        return columns[0] if len(columns) == 1 else columns


def infer(output_layer, parameters, input, feeding=None, field="value"):
    """What output_layer is for a list of samples, all in one batch."""
    input = list(input)
    asked = Inference(parameters, output_layer)
    return asked.infer(input=lambda: iter([input] if input else []),
                       field=field, feeding=feeding)
