"""Reads TensorBoard's event files without TensorBoard: framing, checksums, messages.

Field numbers are those of TensorFlow's event.proto, summary.proto and graph.proto. No code of the
program is used, so that both cannot be wrong in the same way.
"""
import struct


def make_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = make_table()


def masked_crc(data):
    """CRC-32C, rotated and shifted as in TFRecord files."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data, whole=True):
    """The messages of a file; unless `whole`, an incomplete last record is ignored."""
    at = 0
    while at < len(data):
        if len(data) - at < 16:
            assert not whole, "the file ends within a record"
            return
        size, = struct.unpack_from("<Q", data, at)
        head, = struct.unpack_from("<I", data, at + 8)
        assert head == masked_crc(data[at:at + 8]), f"bad checksum of a size at byte {at}"
        if len(data) - at < 16 + size:
            assert not whole, "the file ends within a record"
            return
        message = data[at + 12:at + 12 + size]
        tail, = struct.unpack_from("<I", data, at + 12 + size)
        assert tail == masked_crc(message), f"bad checksum of a message at byte {at}"
        yield message
        at += 16 + size


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field of a message; values are whole numbers or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
            yield number, value - (1 << 64) if value >> 63 else value
            continue
        size = {1: 8, 5: 4}.get(wire)
        if wire == 2:
            size, at = varint(data, at)
        assert size is not None and at + size <= len(data), f"wire type {wire} of field {number}"
        yield number, data[at:at + size]
        at += size
    assert at == len(data)


def text(data):
    return data.decode("utf-8")


def real(data):
    return struct.unpack("<f" if len(data) == 4 else "<d", data)[0]


def reals(data):
    return list(struct.unpack(f"<{len(data) // 8}d", data))


def decode(data, schema):
    """A message as a dict, by a schema {number: (name, how)}; [how] means a repeated field."""
    message = {}
    for number, value in fields(data):
        assert number in schema, f"field {number} is in no known message"
        name, how = schema[number]
        several = isinstance(how, list)
        how = how[0] if several else how
        value = decode(value, how) if isinstance(how, dict) else how(value)
        if several:
            message.setdefault(name, []).append(value)
        else:
            message[name] = value
    return message


HISTOGRAM = {1: ("min", real), 2: ("max", real), 3: ("num", real), 4: ("sum", real),
             5: ("sum_squares", real), 6: ("limits", reals), 7: ("buckets", reals)}
SHAPE = {2: ("dims", [{1: ("size", int)}])}
TENSOR = {1: ("dtype", int), 2: ("shape", SHAPE), 8: ("texts", [text])}
METADATA = {1: ("plugin", {1: ("name", text)}), 4: ("data_class", int)}
VALUE = {1: ("tag", text), 2: ("scalar", real), 5: ("histogram", HISTOGRAM), 8: ("tensor", TENSOR),
         9: ("metadata", METADATA)}
ATTRIBUTE = {1: ("list", {7: ("shapes", [SHAPE])}), 2: ("text", text), 3: ("number", int)}
NODE = {1: ("name", text), 2: ("op", text), 3: ("inputs", [text]),
        5: ("attributes", [{1: ("key", text), 2: ("value", ATTRIBUTE)}])}
GRAPH = {1: ("nodes", [NODE]), 4: ("versions", {1: ("producer", int)})}
EVENT = {1: ("wall_time", real), 2: ("step", int), 3: ("file_version", text),
         4: ("graph", GRAPH), 5: ("summary", {1: ("values", [VALUE])}),
         7: ("session", {1: ("status", int)})}


class Folder:
    """One run as TensorBoard sees it: the files of a folder, in the order of their names."""

    def __init__(self, path, whole=True):
        self.files = sorted(path.glob("*tfevents*"))
        self.events = []
        for file in self.files:
            events = [decode(message, EVENT) for message in records(file.read_bytes(), whole)]
            assert not whole or events[0]["file_version"] == "brain.Event:2", file
            self.events += events

    def series(self, tag, kind="scalar"):
        """(step, value) of each point."""
        return [(event.get("step", 0), value[kind]) for event in self.events
                for value in event.get("summary", {}).get("values", ())
                if value["tag"] == tag and kind in value]

    def tags(self, kind="scalar"):
        return {value["tag"] for event in self.events
                for value in event.get("summary", {}).get("values", ()) if kind in value}

    def only(self, what):
        """The one event of this kind."""
        found = [event[what] for event in self.events if what in event]
        assert len(found) == 1, f"{len(found)} of {what}"
        return found[0]
