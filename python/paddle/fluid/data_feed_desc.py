# SPDX-License-Identifier: Apache-2.0
"""fluid.data_feed_desc: which slots lines have, as a protobuf text."""
import re

__all__ = ["DataFeedDesc"]

_TOKEN = re.compile(r'\s*(?:#[^\n]*\n\s*)*("(?:\\.|[^"\\])*"|[\w.+-]+|[{}:;,])')


class Slot:
    """One slot of the lines: message Slot of data_feed.proto."""

    def __init__(self, name="", type="", is_dense=False, is_used=False,
                 shape=()):
        self.name, self.type = name, type  # "float" or "uint64"
        self.is_dense, self.is_used = is_dense, is_used
        self.shape = list(shape)

    def text(self):
        lines = ['name: "%s"' % self.name, 'type: "%s"' % self.type]
        lines += ["is_dense: true"] * self.is_dense
        lines += ["is_used: true"] * self.is_used
        lines += ["shape: %d" % d for d in self.shape]
        return "".join("    %s\n" % line for line in lines)


class Feed:
    """Message DataFeedDesc of data_feed.proto."""

    def __init__(self, name="MultiSlotDataFeed"):
        self.name, self.batch_size, self.pipe_command = name, 32, None
        self.slots = []

    def text(self):
        slots = "".join("  slots {\n%s  }\n" % s.text() for s in self.slots)
        pipe = ('pipe_command: "%s"\n' % self.pipe_command.replace(
            "\\", "\\\\").replace('"', '\\"') if self.pipe_command else "")
        return ('name: "%s"\nbatch_size: %d\nmulti_slot_desc {\n%s}\n%s'
                % (self.name, self.batch_size, slots, pipe))


def _tokens(text):
    at = 0
    while text[at:].strip() and not re.fullmatch(r"(\s*#[^\n]*\n?)*\s*",
                                                 text[at:]):
        m = _TOKEN.match(text, at)
        if not m:
            raise ValueError("%r is not protobuf text" % text[at:at + 20])
        yield m.group(1)
        at = m.end()


def _message(tokens):
    """{field: [values]} up to the closing brace; messages are such dicts."""
    fields = {}
    for name in tokens:
        if name == "}":
            return fields
        if name in ";,":
            continue
        value = next(tokens, None)
        if value == ":":
            value = next(tokens, None)
        if value is None:
            raise ValueError("the text ends after %r" % name)
        if value == "{":
            value = _message(tokens)
        elif value[0] == '"':
            value = value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
        fields.setdefault(name, []).append(value)
    return fields


def _slot(fields):
    def last(name, default):
        return fields.get(name, [default])[-1]
    return Slot(last("name", ""), last("type", ""),
                last("is_dense", "false") in ("true", "1"),
                last("is_used", "false") in ("true", "1"),
                [int(d) for d in fields.get("shape", [])])


class DataFeedDesc:
    """A description read from a file:

        name: "MultiSlotDataFeed"
        batch_size: 2
        multi_slot_desc {
            slots { name: "words" type: "uint64" is_dense: false is_used: true }
        }

    Args:
        proto_file (str): the file with the text.
    """

    def __init__(self, proto_file):
        with open(proto_file) as f:
            fields = _message(_tokens(f.read()))
        self.proto_desc = feed = Feed()
        feed.name = fields.get("name", [feed.name])[-1]
        feed.batch_size = int(fields.get("batch_size", [32])[-1])
        feed.pipe_command = fields.get("pipe_command", [None])[-1]
        for desc in fields.get("multi_slot_desc", []):
            feed.slots += [_slot(s) for s in desc.get("slots", [])]
        if feed.name == "MultiSlotDataFeed":
            self._slots = {s.name: s for s in feed.slots}

    def set_batch_size(self, batch_size):
        """Set the number of examples in a batch."""
        self.proto_desc.batch_size = batch_size

    def _find(self, names):
        if self.proto_desc.name != "MultiSlotDataFeed":
            raise ValueError("only MultiSlotDataFeed has slots, this is %s"
                             % self.proto_desc.name)
        for name in names:
            if name not in self._slots:
                raise ValueError("no slot is called %r; there are %s"
                                 % (name, ", ".join(self._slots)))
            yield self._slots[name]

    def set_dense_slots(self, dense_slots_name):
        """Set the dense slots: each line has the same number of values."""
        for slot in self._find(dense_slots_name):
            slot.is_dense = True

    def set_use_slots(self, use_slots_name):
        """Set the slots that become tensors; the others are skipped."""
        for slot in self._find(use_slots_name):
            slot.is_used = True

    def desc(self):
        """The description as protobuf text."""
        return self.proto_desc.text()
