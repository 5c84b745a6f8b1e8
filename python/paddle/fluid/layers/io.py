# SPDX-License-Identifier: Apache-2.0
"""fluid.layers.io: what a program is fed with."""
from ..reader import (create_py_reader_by_data, double_buffer,  # noqa: F401
                      py_reader, read_file)
from . import _table

_table.publish(globals(), "create_py_reader_by_data", "double_buffer",
               "py_reader", "read_file")
