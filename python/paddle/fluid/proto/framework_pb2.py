"""Enumerations of framework.proto; messages are read and written in C."""
from ..core import AttrType, VarDesc, VarType

__all__ = ["AttrType", "VarDesc", "VarType"]

INT, FLOAT, STRING = AttrType.INT, AttrType.FLOAT, AttrType.STRING
INTS, FLOATS, STRINGS = AttrType.INTS, AttrType.FLOATS, AttrType.STRINGS
BOOLEAN, BOOLEANS = AttrType.BOOL, AttrType.BOOLS
BLOCK, BLOCKS = AttrType.BLOCK, AttrType.BLOCKS
LONG, LONGS = AttrType.LONG, AttrType.LONGS
