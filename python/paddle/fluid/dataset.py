# SPDX-License-Identifier: Apache-2.0
"""fluid.dataset: files of examples that Executor.train_from_dataset reads.

    dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
    dataset.set_use_var([words, label])
    dataset.set_pipe_command("python reader.py")
    dataset.set_batch_size(100)
    dataset.set_thread(2)
    dataset.set_filelist(["part-0", "part-1"])

A dataset holds settings; reading, parsing and shuffling is the library's.
"""
import os

from . import _fluid
from .core import VarType
from .data_feed_desc import Feed, Slot

__all__ = ["DatasetFactory", "InMemoryDataset", "QueueDataset"]

_TYPES = {VarType.FP32: "float", VarType.INT64: "uint64"}
_REMOTE = ("hdfs:", "afs:")


class DatasetFactory:
    """Datasets by the names of their classes."""

    def create_dataset(self, datafeed_class="QueueDataset"):
        """"QueueDataset", "InMemoryDataset" or "FileInstantDataset"."""
        classes = {c.__name__: c for c in (
            QueueDataset, InMemoryDataset, FileInstantDataset)}
        if datafeed_class not in classes:
            raise ValueError("datafeed class %s does not exist; there are %s"
                             % (datafeed_class, ", ".join(classes)))
        return classes[datafeed_class]()


class DatasetBase:
    """Settings that every dataset has."""

    _feed_name = "MultiSlotDataFeed"

    def __init__(self):
        self.proto_desc = Feed(self._feed_name)
        self.proto_desc.pipe_command = "cat"
        self.dataset = _fluid.Dataset()
        self.thread_num = 0
        self.filelist = []
        self.bad_lines = 0
        self.hdfs_config = None
        self.use_vars = []

    def set_pipe_command(self, pipe_command):
        """A shell command that makes lines of slots from each file, which is
        its stdin; "cat": the files are such lines, or gzip of them. "paddle
        read criteo --dim N" is not started but done natively."""
        self.proto_desc.pipe_command = pipe_command

    def set_batch_size(self, batch_size):
        """Set the number of examples in a batch."""
        if batch_size < 1:
            raise ValueError("set_batch_size: batch_size is %r, expected 1 or "
                             "more" % (batch_size,))
        self.proto_desc.batch_size = batch_size

    def set_thread(self, thread_num):
        """Set how many threads read and train."""
        self.thread_num = thread_num

    def set_filelist(self, filelist):
        """Set the list of files, in place of the old one."""
        if isinstance(filelist, (str, bytes)):
            raise TypeError("set_filelist takes a list of paths, not %r"
                            % (filelist,))
        self.filelist = [os.fsdecode(f) for f in filelist]

    def set_use_var(self, var_list):
        """The variables that the slots of a line are for, in order; they are
        added to those before. Without LoD levels a slot is dense: as many
        values as the variable's shape says, but for the batch."""
        for var in var_list:
            if not hasattr(var, "dtype"):
                raise TypeError("set_use_var takes a list of Variables, not %r"
                                % (var,))
            if var.dtype not in _TYPES:
                raise ValueError(
                    "%s: currently, fluid.dataset only supports "
                    "dtype=float32 and dtype=int64, not %s"
                    % (var.name, VarType(var.dtype).name))
            dense = var.lod_level == 0
            self.proto_desc.slots.append(Slot(
                var.name, _TYPES[var.dtype], is_dense=dense, is_used=True,
                shape=var.shape if dense else ()))
            self.use_vars.append(var)

    def set_hdfs_config(self, fs_name, fs_ugi):
        """Kept for scripts that have it. Files of HDFS are not read here:
        mount them, or let the pipe command fetch them."""
        self.hdfs_config = (fs_name, fs_ugi)

    def set_download_cmd(self, download_cmd):
        """Kept for scripts that have it; nothing is downloaded."""
        self.download_cmd = download_cmd

    def set_fea_eval(self, record_candidate_size, fea_eval=True):
        """Shuffling single slots to judge them is not supported."""
        if fea_eval:
            raise NotImplementedError(
                "set_fea_eval: shuffling the values of single slots "
                "(slots_shuffle) is not supported")

    def set_bad_lines(self, limit):
        """How many bad lines of a pass may be skipped (Fluid has no such
        call); 0, the default: the first one is an error."""
        self.bad_lines = limit

    def desc(self):
        """The settings as protobuf text (data_feed.proto)."""
        return self.proto_desc.text()

    def _set(self):
        """Hand the settings to the library."""
        for f in self.filelist:
            if f.startswith(_REMOTE):
                raise RuntimeError(
                    "%s: files of HDFS are not read here; mount them, or list "
                    "local files that hold the paths and let the pipe command "
                    "fetch them (hadoop fs -cat)" % f)
        feed = self.proto_desc
        kinds = {"float": VarType.FP32, "uint64": VarType.INT64}
        self.dataset.set(
            [(s.name, int(kinds[s.type]), not s.is_dense, s.shape, s.is_used)
             for s in feed.slots],
            self.filelist, pipe=feed.pipe_command, batch=feed.batch_size,
            threads=max(self.thread_num, 1), bad_lines=self.bad_lines)

    def _prepare_to_run(self):
        """The library's dataset with these settings, for the executor."""
        self._set()
        return self.dataset

    def _finish_to_run(self):
        """Called after the executor has read it."""

    def _batches(self, ahead=0):
        """All batches, each a list of LoDTensors: to look at the data."""
        return self._prepare_to_run().open(ahead=ahead)


class InMemoryDataset(DatasetBase):
    """Examples that are loaded once, and shuffled between passes."""

    _feed_name = "MultiSlotInMemoryDataFeed"

    def __init__(self):
        DatasetBase.__init__(self)
        self.fleet_send_batch_size = None
        self.queue_num = None
        self._shuffles = 0
        self._loading = False

    def set_queue_num(self, queue_num):
        """Kept for scripts that have it; threads take batches in turn."""
        self.queue_num = queue_num

    def set_fleet_send_batch_size(self, fleet_send_batch_size=1024):
        """A setting of global_shuffle."""
        self.fleet_send_batch_size = fleet_send_batch_size

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds=0):
        """Kept for scripts that have it; nothing has to sleep here."""
        self.fleet_send_sleep_seconds = fleet_send_sleep_seconds

    def set_parse_ins_id(self, parse_ins_id):
        """Lines that begin with an id are not supported."""
        _refuse(parse_ins_id, "set_parse_ins_id: an id at the beginning of lines")

    def set_parse_content(self, parse_content):
        """Lines that hold other content are not supported."""
        _refuse(parse_content, "set_parse_content: other content in lines")

    def set_merge_by_lineid(self, merge_size=2):
        """Merging examples of one id is not supported."""
        _refuse(True, "set_merge_by_lineid: merging examples of one id")

    def load_into_memory(self):
        """Read all files, by as many threads as were set."""
        self._shuffles = 0
        self._set()
        self.dataset.load()
        self.dataset.wait()

    def preload_into_memory(self, thread_num=None):
        """Start to read all files, while the script goes on."""
        if thread_num is not None:
            self.thread_num = thread_num
        self._shuffles = 0
        self._set()
        self.dataset.load()
        self._loading = True

    def wait_preload_done(self):
        """Wait until preload_into_memory is done."""
        self._loading = False
        self.dataset.wait()

    def local_shuffle(self, seed=None):
        """Shuffle the examples. The order depends on how often the examples
        were shuffled since they were loaded, and on nothing else."""
        self._shuffles += 1
        self.dataset.shuffle(self._shuffles if seed is None else seed)

    def global_shuffle(self, fleet=None, thread_num=12):
        """Shuffle the examples of all trainers. With one trainer it is
        local_shuffle."""
        if fleet is not None and fleet.worker_num() > 1:
            raise NotImplementedError(
                "global_shuffle: %d trainers do not exchange examples here; "
                "divide the files among them (fleet.split_files) and call "
                "local_shuffle" % fleet.worker_num())
        self.local_shuffle()

    def slots_shuffle(self, slots):
        """Shuffling single slots to judge them is not supported."""
        _refuse(True, "slots_shuffle: shuffling the values of single slots")

    def release_memory(self):
        """Free the examples, and cancel a load that is running."""
        self._loading = False
        self.dataset.release()

    def get_memory_data_size(self, fleet=None):
        """How many examples are in memory."""
        return self.dataset.size

    def get_shuffle_data_size(self, fleet=None):
        """How many were shuffled: those in memory."""
        return self.dataset.size

    def _prepare_to_run(self):
        if self._loading:
            self.wait_preload_done()
        if not self.dataset.loaded:
            raise RuntimeError("an InMemoryDataset is loaded before it is "
                               "read: call load_into_memory()")
        return DatasetBase._prepare_to_run(self)


def _refuse(asked, what):
    if asked:
        raise NotImplementedError("%s is not supported" % what)


class QueueDataset(DatasetBase):
    """Examples that stream from the files."""

    def local_shuffle(self):
        """Not supported: examples of a QueueDataset are not in memory."""
        raise NotImplementedError(
            "QueueDataset does not support local shuffle, please use "
            "InMemoryDataset for local_shuffle")

    def global_shuffle(self, fleet=None):
        """Not supported: examples of a QueueDataset are not in memory."""
        raise NotImplementedError(
            "QueueDataset does not support global shuffle, please use "
            "InMemoryDataset for global_shuffle")


class FileInstantDataset(QueueDataset):
    """Another name of QueueDataset."""

    _feed_name = "MultiSlotFileInstantDataFeed"
