# SPDX-License-Identifier: Apache-2.0
"""framework.proto as message classes, for code that looks into saved files.

The library reads and writes programs itself; these classes come from the
schema that it was built with, and need the package google.protobuf.
"""
import os

from ..core import AttrType, VarType

INT, FLOAT, STRING = AttrType.INT, AttrType.FLOAT, AttrType.STRING
INTS, FLOATS, STRINGS = AttrType.INTS, AttrType.FLOATS, AttrType.STRINGS
BOOLEAN, BOOLEANS = AttrType.BOOL, AttrType.BOOLS
BLOCK, BLOCKS = AttrType.BLOCK, AttrType.BLOCKS
LONG, LONGS = AttrType.LONG, AttrType.LONGS

_MESSAGES = ("BlockDesc", "OpDesc", "OpProto", "ProgramDesc", "VarDesc",
             "Version")
__all__ = ["AttrType", "VarType", *_MESSAGES]


def _messages():
    """The classes of the schema by name."""
    try:
        from google.protobuf import (descriptor_pb2, descriptor_pool,
                                     message_factory)
    except ImportError:
        raise ImportError(
            "paddle.fluid.proto.framework_pb2: message classes need the "
            "Python package protobuf (Debian: python3-protobuf)") from None
    files = descriptor_pb2.FileDescriptorSet()
    path = os.path.join(os.path.dirname(__file__), "framework.desc")
    with open(path, "rb") as schema:
        files.ParseFromString(schema.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    make = getattr(message_factory, "GetMessageClass", None) or \
        message_factory.MessageFactory(pool).GetPrototype
    return {name: make(pool.FindMessageTypeByName(
        "paddle.framework.proto." + name)) for name in _MESSAGES}


def __getattr__(name):
    if name not in _MESSAGES:
        raise AttributeError("module %r has no attribute %r"
                             % (__name__, name))
    globals().update(_messages())
    return globals()[name]
