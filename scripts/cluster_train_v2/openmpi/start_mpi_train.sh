#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# start_mpi_train.sh - a server and a trainer of train.py on each rank of mpirun:
#
#     mpirun -hostfile machines -n 3 /home/tutorial/start_mpi_train.sh
#
# Logs are in logs/ beside this file. Words after it are flags of paddle launch.
cd "$(dirname "$0")" || exit
case " $* " in
*" --mode collective "* | *" --mode=collective "*) servers= ;; # ranks have no servers
*) servers="--server_num 1" ;;
esac
case " $* " in
*" --selected_gpus"*) trainers= ;; # one for each number
*) trainers="--worker_num 1" ;;
esac
exec paddle launch --mpi $servers $trainers "$@" train.py
