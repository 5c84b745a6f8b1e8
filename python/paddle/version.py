# SPDX-License-Identifier: Apache-2.0
"""paddle.version: the numbers that scripts ask for."""
full_version = "0.1.0"  # the Makefile's VERSION
major, minor, patch = full_version.split(".")
rc = "0"
istaged = False
commit = "Unknown"
