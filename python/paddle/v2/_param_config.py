# SPDX-License-Identifier: Apache-2.0
"""paddle.ParameterConfig: what a saved parameter says of itself.

A message of protobuf (proto2). Fields are kept as they were read, also those
that nobody here knows, so that a file that is read is written back byte for
byte.
"""
import struct

# name: (number, kind); those that are written by this package or read by it
FIELDS = {
    "name": (1, "text"), "size": (2, "int"), "learning_rate": (3, "double"),
    "momentum": (4, "double"), "initial_mean": (5, "double"),
    "initial_std": (6, "double"), "decay_rate": (7, "double"),
    "decay_rate_l1": (8, "double"), "dims": (9, "ints"),
    "device": (10, "int"), "initial_strategy": (11, "int"),
    "initial_smart": (12, "int"), "sparse_remote_update": (16, "int"),
    "gradient_clipping_threshold": (17, "double"), "is_static": (18, "int"),
    "update_hooks": (20, "bytes"), "sparse_update": (22, "int"),
    "is_shared": (23, "int"),
}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIRE = {"int": _VARINT, "ints": _VARINT, "double": _FIXED64, "text": _BYTES,
         "bytes": _BYTES}


def _varint(number):
    out = bytearray()
    number &= (1 << 64) - 1  # negative numbers have ten bytes
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _take(data, at, count):
    if at + count > len(data):
        raise ValueError("it ends in the middle of a field")
    return data[at:at + count], at + count


def _take_varint(data, at):
    number = 0
    for shift in range(0, 70, 7):
        byte, at = _take(data, at, 1)
        number |= (byte[0] & 0x7f) << shift
        if byte[0] < 0x80:
            return number, at
    raise ValueError("a number in it has no end")


def _take_field(data, at):
    """(number, wire type, value as it stands), and where the next begins."""
    key, at = _take_varint(data, at)
    number, wire = key >> 3, key & 7
    if wire == _VARINT:
        value, at = _take_varint(data, at)
    elif wire == _FIXED64:
        value, at = _take(data, at, 8)
    elif wire == _FIXED32:
        value, at = _take(data, at, 4)
    elif wire == _BYTES:
        length, at = _take_varint(data, at)
        value, at = _take(data, at, length)
    else:
        raise ValueError("field %d has the unknown wire type %d"
                         % (number, wire))
    return (number, wire, value), at


def _pack(number, wire, value):
    head = _varint(number << 3 | wire)
    if wire == _VARINT:
        return head + _varint(value)
    if wire == _BYTES:
        return head + _varint(len(value)) + value
    return head + value


class ParameterConfig:
    """Fields by name: config.size; one that is not set is None, and dims are
    () then. Setting one to None takes it away."""

    def __init__(self, **fields):
        object.__setattr__(self, "_fields", [])
        for name, value in fields.items():
            setattr(self, name, value)

    @classmethod
    def parse(cls, data):
        """The message in these bytes; ValueError says what is wrong."""
        config, at = cls(), 0
        while at < len(data):
            field, at = _take_field(data, at)
            config._fields.append(field)
        return config

    def serialize(self):
        """Its bytes: fields by number, as protobuf writes them."""
        return b"".join(_pack(*f) for f in
                        sorted(self._fields, key=lambda f: f[0]))

    SerializeToString = serialize

    def __getattr__(self, name):
        if name not in FIELDS:
            raise AttributeError("ParameterConfig has no field %s" % name)
        number, kind = FIELDS[name]
        found = [value for n, wire, value in self._fields
                 if n == number and wire == _WIRE[kind]]
        if kind == "ints":
            return tuple(found)
        if not found:
            return None
        if kind == "double":
            return struct.unpack("<d", found[-1])[0]
        return found[-1].decode() if kind == "text" else found[-1]

    def __setattr__(self, name, value):
        number, kind = FIELDS[name]
        kept = [f for f in self._fields if f[0] != number]
        if value is not None:
            values = value if kind == "ints" else [value]
            pack = {"double": lambda v: struct.pack("<d", v),
                    "text": str.encode, "bytes": bytes}.get(kind, int)
            kept += [(number, _WIRE[kind], pack(v)) for v in values]
        object.__setattr__(self, "_fields", kept)

    @property
    def shape(self):
        """As the original shows it: dims, or one row."""
        return self.dims or (1, self.size)

    def __repr__(self):
        return "ParameterConfig(%s)" % ", ".join(
            "%s=%r" % (name, getattr(self, name)) for name in FIELDS
            if getattr(self, name) not in (None, ()))
