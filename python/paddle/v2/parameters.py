# SPDX-License-Identifier: Apache-2.0
"""paddle.v2.parameters: the values of a network's parameters, by name.

Values live in a scope of Fluid, in which trainers and inferences run: what
they change is seen here, and what is set here they use.
"""
import io
import math
import struct
import tarfile

import numpy as np

from .. import fluid
from ._param_config import ParameterConfig
from .topology import Topology

__all__ = ["Parameters", "create"]

_HEAD = struct.Struct("<IIQ")  # version 0, bytes of a number, how many


def create(layers):
    """The parameters of what these layers need, with their first values."""
    topology = layers if isinstance(layers, Topology) else Topology(layers)
    made = Parameters()
    made.bind(topology, new=True)
    return made


class Parameters:
    """Names, shapes and values; parameters["name"] is an array."""

    def __init__(self):
        self._configs = {}
        self.scope = fluid.Scope()

    # --- names ---

    def keys(self):
        """All names, in the order they were made."""
        return list(self._configs)

    names = keys

    def has_key(self, key):
        return key in self._configs

    __contains__ = has_key

    def __iter__(self):
        return iter(self._configs)

    def __len__(self):
        return len(self._configs)

    def _config(self, key):
        if key not in self._configs:
            raise ValueError("No such parameter %s; there are %s" % (
                key, ", ".join(sorted(self._configs)) or "none"))
        return self._configs[key]

    def get_shape(self, key):
        """As the original has it: a row, where it records no dimensions."""
        return self._config(key).shape

    def get_config(self, key):
        """The ParameterConfig that is saved with it."""
        return self._config(key)

    # --- values ---

    def get(self, key):
        """A copy of the value."""
        shape = self.get_shape(key)
        value = self.scope.find_var(key).get_tensor()
        return np.array(value, "float32").reshape(shape)

    def set(self, key, value):
        """Another value, of get_shape(key)."""
        if not isinstance(value, np.ndarray):
            raise ValueError("Must return ndarray: the value of %s is %s"
                             % (key, type(value).__name__))
        shape = self.get_shape(key)
        if value.shape != shape:
            raise ValueError("Value shape mismatch, expect %s, should %s: "
                             "parameter %s" % (shape, value.shape, key))
        tensor = self.scope.var(key).get_tensor()
        known = tensor.shape() if tensor._is_initialized() else shape
        tensor.set(value.astype("float32").reshape(known))

    __getitem__, __setitem__ = get, set

    def get_grad(self, key):
        self._config(key)
        raise NotImplementedError(
            "parameters.get_grad: gradients are not kept in this version; "
            "fetch them with paddle.fluid")

    def append_gradient_machine(self, machine):
        raise NotImplementedError(
            "parameters.append_gradient_machine: gradient machines are objects "
            "of the original's engine, which this version does not have; "
            "trainer.SGD and inference.Inference bind parameters themselves")

    def update_param_conf(self, configs):
        """Other ParameterConfigs, by their names."""
        for config in configs:
            self._config(config.name)
            self._configs[config.name] = config

    # --- for trainers and inferences ---

    def bind(self, topology, new=False):
        """Make the scope fit to run a topology. Its parameters must be here;
        `new` ones are made."""
        missing = [n for n in topology.configs if n not in self._configs]
        if missing and not new:
            raise ValueError(
                "the parameters have no %s, which the network needs; they "
                "are %s" % (", ".join(missing), ", ".join(self._configs)))
        known = set(self.scope.local_var_names())
        fluid.Executor().run(topology.start_program(known), scope=self.scope)
        for name in missing:
            config = ParameterConfig.parse(topology.configs[name].serialize())
            self._configs[name] = config
            if name in topology.starts:
                start = np.asarray(topology.starts[name](name), "float32")
                self.set(name, start.reshape(config.shape))
        for name, shape in topology.shapes.items():
            self._reshape(name, shape)

    def _reshape(self, name, shape):
        """The value in the shape that Fluid wants."""
        tensor = self.scope.find_var(name).get_tensor()
        if tuple(tensor.shape()) == tuple(shape):
            return
        value = np.array(tensor)
        if value.size != math.prod(shape):
            raise ValueError(
                "parameter %s has %d numbers, but the network needs %s"
                % (name, value.size, " x ".join(map(str, shape))))
        tensor.set(value.reshape(shape))

    # --- files ---

    def serialize(self, name, f):
        """Write a value: 16 bytes of head, then float32."""
        value = self.get(name)
        f.write(_HEAD.pack(0, 4, value.size))
        f.write(value.astype("<f4").tobytes())

    def deserialize(self, name, f):
        """Read a value that serialize wrote."""
        config = self._config(name)
        head = f.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise ValueError("parameter %s: its file has %d bytes, expected a head "
                         "of %d" % (name, len(head), _HEAD.size))
        version, width, count = _HEAD.unpack(head)
        if (version, width, count) != (0, 4, config.size):
            raise ValueError(
                "parameter %s: its file has version %d, %d bytes a number and "
                "%d numbers; expected 0, 4 and %d" % (
                    name, version, width, count, config.size))
        body = f.read(4 * count)
        if len(body) != 4 * count:
            raise ValueError("parameter %s: its file ends after %d of %d "
                             "numbers" % (name, len(body) // 4, count))
        self.set(name, np.frombuffer(body, "<f4").reshape(config.shape))

    def to_tar(self, f):
        """Write a tar as version 0.10 did: each value, then its config. Like
        there, no empty blocks follow the last one."""
        for name in self.keys():
            value = io.BytesIO()
            self.serialize(name, value)
            _add_member(f, name, value.getvalue())
            _add_member(f, name + ".protobuf",
                        self._configs[name].serialize())

    @staticmethod
    def from_tar(f):
        """New parameters, of all that a tar has."""
        made = Parameters()
        configs, values = _read_tar(f)
        for name, config in configs.items():
            made._configs[name] = config
            if name not in values:
                raise ValueError("the tar has %s.protobuf, but no %s"
                                 % (name, name))
            made.deserialize(name, io.BytesIO(values[name]))
        return made

    def init_from_tar(self, f, exclude_params=()):
        """Take the values of those that both have."""
        other = Parameters.from_tar(f)
        for name in other:
            if name in self and name not in exclude_params:
                self.set(name, other.get(name))


def _add_member(f, name, data):
    """A member as Python 2 wrote it: mode 0644, owner and time 0, and the
    device numbers, which later versions leave empty, 0."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), 0o644
    *before, head = _blocks(info.tobuf(tarfile.GNU_FORMAT))
    head = bytearray(head)
    head[329:345] = b"0000000\0" * 2
    head[148:156] = b" " * 8  # as the checksum counts itself
    head[148:155] = b"%06o\0" % sum(head)
    f.write(b"".join(before) + head + data
            + bytes(-len(data) % tarfile.BLOCKSIZE))


def _blocks(data):
    return [data[i:i + tarfile.BLOCKSIZE]
            for i in range(0, len(data), tarfile.BLOCKSIZE)]


def _read_tar(f):
    """Configs and values of a tar, by name, in its order."""
    configs, values = {}, {}
    try:
        with tarfile.open(fileobj=f, mode="r:") as tar:
            for member in tar:
                if not member.isfile():
                    continue
                data = tar.extractfile(member).read()
                if member.name.endswith(".protobuf"):
                    config = _parse_config(member.name, data)
                    configs[config.name] = config
                else:
                    values[member.name] = data
    except tarfile.TarError as e:
        raise ValueError("this is not a tar of parameters: %s" % e) from None
    return configs, values


def _parse_config(name, data):
    try:
        config = ParameterConfig.parse(data)
        if config.name is None or config.size is None:
            raise ValueError("it has no name or no size")
        if config.dims and math.prod(config.dims) != config.size:
            raise ValueError("its size is %d, its dims are %s"
                             % (config.size, config.dims))
    except (ValueError, UnicodeDecodeError) as e:
        raise ValueError("%s is not a ParameterConfig: %s" % (name, e)) from None
    return config
