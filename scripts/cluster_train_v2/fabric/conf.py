# The hosts of a cluster job, and settings of all its processes. paddle.py beside
# this file reads it; `paddle launch --hostfile conf.py` reads HOSTS alone.

# ssh must get there without a password: user@host or user@host:port.
HOSTS = [
    "root@192.168.100.17",
    "root@192.168.100.18",
]

# Where workspaces are made on each host: ROOT_DIR/JOB, the time and a random number.
ROOT_DIR = "/home/paddle"

# Search path of libraries for all processes of a job; "" leaves it alone.
LD_LIBRARY_PATH = ""
