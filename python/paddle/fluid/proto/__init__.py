# SPDX-License-Identifier: Apache-2.0
"""Numbers of the file formats, under the names of generated code."""
