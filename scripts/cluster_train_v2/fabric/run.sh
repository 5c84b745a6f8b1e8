#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh - a job that trains the recommender on the hosts of conf.py. Change
# job_dispatch_package to a folder of your own, or use --job_workspace=DIR for one
# that every host has already.
set -eu
cd "$(dirname "$0")"
package=${PACKAGE:-../../../examples}
exec python3 paddle.py --job_dispatch_package="$package" \
    --entry=v2/recommender_system.py "$@"
