"""TensorBoard's event files: records of protocol buffers, written by hand.

A message is `message((number, kind, value), …)`; kinds are those of the wire: "int" (varint),
"double", "float", "bytes" (strings and messages too), "doubles", "floats" and "ints" (packed).
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time

__all__ = ["EventFile", "message"]


def _varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(*fields):
    """The bytes of a message; fields that are None are left out."""
    out = bytearray()
    for number, kind, value in fields:
        if value is None:
            continue
        if kind == "int":
            out += _varint(number << 3) + _varint(int(value))
        elif kind == "double":
            out += _varint(number << 3 | 1) + struct.pack("<d", value)
        elif kind == "float":
            out += _varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            if kind in ("doubles", "floats"):
                value = struct.pack(f"<{len(value)}{kind[0]}", *value)
            elif kind == "ints":
                value = b"".join(map(_varint, value))
            elif isinstance(value, str):
                value = value.encode()
            out += _varint(number << 3 | 2) + _varint(len(value)) + value
    return bytes(out)


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def _masked_crc(data):
    """CRC-32C of data, rotated and shifted as the record format has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class EventFile:
    """One file of events in a folder; threads may write to it together."""

    _count = 0
    _lock = threading.Lock()

    def __init__(self, folder, suffix: str = "") -> None:
        os.makedirs(folder, exist_ok=True)
        with EventFile._lock:
            number = EventFile._count
            EventFile._count += 1
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}"
        self.path = os.path.join(folder, f"{name}.{number}{suffix}")
        self._file = open(self.path, "wb")  # noqa: SIM115  # closed by close()
        self.write(message((1, "double", time.time()), (3, "bytes", "brain.Event:2")))
        self.flush()

    def write(self, event):
        """Append a record."""
        head = struct.pack("<Q", len(event))
        record = head + struct.pack("<I", _masked_crc(head)) + event
        record += struct.pack("<I", _masked_crc(event))
        with self._lock:
            self._file.write(record)

    def flush(self):
        """Let readers see what was written."""
        self._file.flush()

    def close(self):
        """End the file."""
        self._file.close()
