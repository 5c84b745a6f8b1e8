# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.topology: what some layers need, as a Fluid program."""
import pickle

from . import config_base
from .config_base import Layer, as_list

__all__ = ["Topology"]


class ModelConfig:
    """What a topology says of itself: layers, parameters, inputs, outputs."""

    def __init__(self, topology):
        self.layers = topology.layers
        self.parameters = list(topology.configs.values())
        self.input_layer_names = [n for n, _ in topology.data_type()]
        self.output_layer_names = [x.name for x in topology.outputs]

    def __str__(self):
        lines = ["layer %s: %s(%s), size %d" % (
            x.name, x.layer_type, ", ".join(p.name for p in x.parents),
            x.size) for x in self.layers]
        lines += ["parameter %s: %s" % (c.name, list(c.shape))
                  for c in self.parameters]
        return "\n".join(lines + ["inputs " + " ".join(self.input_layer_names),
                                  "outputs "
                                  + " ".join(self.output_layer_names)])


def _reachable(layers):
    """Every layer that these need."""
    found, left = {}, list(layers)
    while left:
        one = left.pop()
        if one.name not in found:
            found[one.name] = one
            left += one.parents
    return found


class Topology:
    """The part of the graph that leads to some layers; extra_layers are kept
    beside them, so that evaluators over them count."""

    def __init__(self, layers, extra_layers=None):
        self.outputs = as_list(layers)
        extra = as_list(extra_layers) if extra_layers else []
        for one in self.outputs + extra:
            if not isinstance(one, Layer):
                raise ValueError("layer should have type "
                                 "paddle.v2.config_base.Layer, not %s"
                                 % type(one).__name__)
        graph = config_base.graph
        found = _reachable(self.outputs + extra)
        self.layers = [x for name, x in graph.layers.items() if name in found]
        self.evaluators = [e for e in graph.evaluators
                           if all(x.name in found for x in e.inputs)]
        wanted = [v.name for x in self.outputs + extra
                  for v in (x.var, x.values) if v is not None]
        wanted += [v.name for e in self.evaluators for v in e.fetches]
        self.program = graph.main.prune(wanted)
        used = self.program.global_block().vars
        self._persistable = [n for n, v in used.items() if v.persistable]
        self.startup = graph.startup
        self.configs = {n: c for n, c in graph.configs.items() if n in used}
        self.shapes = {n: graph.shapes[n] for n in self.configs}
        self.starts = {n: f for n, f in graph.starts.items() if n in used}

    def start_program(self, known):
        """The program that gives what is not `known` its first values."""
        return self.startup.prune(
            [n for n in self._persistable if n not in known])

    def proto(self):
        return ModelConfig(self)

    def get_layer(self, name):
        """The layer of this name."""
        for one in self.layers:
            if one.name == name:
                return one
        raise ValueError("topology: there is no layer %s" % name)

    def get_layer_proto(self, name):
        """The layer of this name, or None."""
        return next((x for x in self.layers if x.name == name), None)

    def data_layers(self):
        """The inputs by name."""
        return {x.name: x for x in self.layers if x.layer_type == "data"}

    def data_type(self):
        """(name, InputType) of the inputs, in the order they were made."""
        return [(x.name, x.type) for x in self.data_layers().values()]

    def use_sparse_updater(self):
        """Is a parameter updated row by row?"""
        return any(c.sparse_update for c in self.configs.values())

    def update_from_default(self):
        """A topology has all of its graph from the start: nothing to do."""

    def serialize_for_inference(self, stream):
        """Write what Inference(fileobj=stream) needs: a pickle of the Fluid
        program and of the inputs."""
        pickle.dump({
            "protobin": self.program.serialize_to_string(),
            "data_type": [(n, (t.dim, t.seq_type, t.type))
                          for n, t in self.data_type()],
            "shapes": self.shapes,
            "outputs": [x.var.name for x in self.outputs],
        }, stream, pickle.HIGHEST_PROTOCOL)
