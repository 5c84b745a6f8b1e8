#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The Python tests, tests/python/test_*.py: conftest.py there prints the lines
# that are counted. More words go to pytest: tests/python_test.sh -k reader
eval "$(scripts/env "${FL_BUILD_DIR:-build}")"
exec "$PADDLE_PYTHON" -m pytest -q -p no:cacheprovider tests/python "$@"
