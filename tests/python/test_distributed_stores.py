"""Stores: what they keep, how long they wait, and what a server makes of garbage."""

import os
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from rushlight import distributed as dist

SOON = timedelta(milliseconds=50)
KINDS = ["hash", "file", "tcp", "prefix", "prefix of tcp"]


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    """A store of each kind."""
    if request.param == "file":
        return dist.FileStore(str(tmp_path / "store"), 1)
    if "tcp" in request.param:
        made = dist.TCPStore("localhost", 0, 1, True)
    else:
        made = dist.HashStore()
    return dist.PrefixStore("a", made) if "prefix" in request.param else made


def test_values(store):
    before = store.num_keys()
    store.set("text", "value")
    store.set("bytes", b"\0\xff")
    assert (store.get("text"), store.get("bytes")) == (b"value", b"\0\xff")
    assert (store.add("n", 3), store.add("n", -1), store.get("n")) == (3, 2, b"2")
    assert store.num_keys() == before + 3
    assert store.check(["text", "n"]) and not store.check(["text", "none"])
    assert store.delete_key("n") and not store.delete_key("n")
    store.append("text", "!")
    assert store.multi_get(["text", "bytes"]) == [b"value!", b"\0\xff"]
    store.multi_set(["a", "b"], ["1", b"2"])
    assert store.clone().get("b") == b"2"
    assert {"text", "bytes", "a", "b"} <= set(store.list_keys())
    with pytest.raises(ValueError, match="no number"):
        store.add("text", 1)


def test_compare_set(store):
    assert store.compare_set("k", "other", "x") == b"other"
    assert not store.check(["k"])
    assert store.compare_set("k", "", "one") == b"one"
    assert store.compare_set("k", "two", "three") == b"one"
    assert store.compare_set("k", "one", "three") == b"three"


def test_time_passes(store):
    with pytest.raises(dist.DistStoreError, match=r"(?i)wait timeout after 50ms, keys: /.*none"):
        store.wait(["none"], SOON)
    store.set_timeout(SOON)
    assert store.timeout == SOON
    with pytest.raises(RuntimeError, match="none"):
        store.get("none")
    store.set("k", "v")  # a store that has waited in vain goes on
    assert store.get("k") == b"v"


def test_one_waits_for_another(store):
    other = store.clone()
    timer = threading.Timer(0.05, lambda: (other.set("a", "1"), other.set("b", "2")))
    timer.start()
    store.wait(["a", "b"])
    assert store.multi_get(["a", "b"]) == [b"1", b"2"]
    timer.join()


def test_limits(store):
    if type(store) is dist.HashStore or getattr(store, "underlying_store", None):
        pytest.skip("keys of a HashStore go through no connection or file, nothing limits them")
    with pytest.raises(ValueError, match="key"):
        store.set("k" * 100_000, "v")


def test_many_clients_of_one_thread():
    master = dist.TCPStore("localhost", 0, 1, True)
    threads = len(os.listdir("/proc/self/task"))
    clients = [dist.TCPStore("localhost", master.port, None, False) for _ in range(300)]
    waiters = [threading.Thread(target=c.get, args=["go"]) for c in clients[:20]]
    for waiter in waiters:
        waiter.start()
    for client in clients[20:]:
        client.add("n", 1)
    assert master.get("n") == b"280"
    # None for the clients, none for those that wait.
    assert len(os.listdir("/proc/self/task")) <= threads + len(waiters)
    master.set("go", "")
    for waiter in waiters:
        waiter.join()


def test_workers_are_waited_for():
    with pytest.raises(dist.DistStoreError, match="1/3 clients joined"):
        dist.TCPStore("localhost", 0, 3, True, timeout=SOON)
    with pytest.raises(dist.DistNetworkError, match="timed out after 50ms"):
        dist.TCPStore("localhost", 1, 3, False, timeout=SOON)


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"rlstore1" + b"\xff\xff\xff\xff" + b"x" * 100,
        b"rlstore1" + b"\0\0\0\0",
        b"rlstore1" + b"\x05\0\0\0" + b"\0\xff\xff\xff\xff",
        b"rlstore1" + b"\x01\0\0\0" + b"\x63",
        b"rlstore1" + b"\x09\0\0\0" + b"\x08" + b"\xff" * 8,
    ],
)
def test_garbage(garbage):
    store = dist.TCPStore("localhost", 0, 1, True)
    store.set("k", "v")
    with socket.create_connection(("localhost", store.port)) as connection:
        connection.sendall(garbage)
        connection.settimeout(5)
        try:
            while connection.recv(100):
                pass
        except ConnectionResetError:
            pass
    assert store.get("k") == b"v"


def test_a_client_that_waits_may_go():
    store = dist.TCPStore("localhost", 0, 1, True)
    with socket.create_connection(("localhost", store.port)) as connection:
        message = b"\x01" + b"\x01\0\0\0k"  # get "k"
        connection.sendall(b"rlstore1" + len(message).to_bytes(4, "little") + message)
        time.sleep(0.02)
    time.sleep(0.02)
    store.set("k", "v")
    assert store.get("k") == b"v"


def test_loopback_alone():
    store = dist.TCPStore("localhost", 0, 1, True)
    end = f":{store.port:04X}"
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    listening = {
        row[1].removesuffix(end) for row in lines if row[1].endswith(end) and row[3] == "0A"
    }
    assert listening
    assert listening <= {"0100007F", "00000000000000000000000001000000"}


def test_a_port_in_use():
    store = dist.TCPStore("localhost", 0, 1, True)
    with pytest.raises(dist.DistNetworkError, match="already in use"):
        dist.TCPStore("localhost", store.port, 1, True)
    shared = dist.TCPStore("localhost", 0, 1, True, multi_tenant=True)
    again = dist.TCPStore("localhost", shared.port, 1, True, multi_tenant=True)
    shared.set("k", "v")
    assert again.get("k") == b"v"


def test_the_server_ends():
    store = dist.TCPStore("localhost", 0, 1, True)
    client = dist.TCPStore("localhost", store.port, 1, False)
    del store
    with pytest.raises(dist.DistNetworkError, match="Did the server end"):
        client.get("k")


def test_file_of_several_processes(tmp_path):
    path = tmp_path / "store"
    program = (
        "from rushlight import distributed as dist\n"
        f"store = dist.FileStore({str(path)!r}, 3)\n"
        "for _ in range(200): store.add('n', 1)\n"
        "store.add('done', 1)\n"
        "while store.add('done', 0) < 3: pass\n"
    )
    others = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    store = dist.FileStore(str(path), 3)
    for _ in range(200):
        store.add("n", 1)
    store.add("done", 1)
    while store.add("done", 0) < 3:
        pass
    assert store.get("n") == b"600"
    assert [other.wait() for other in others] == [0, 0]
    assert path.exists()
    del store
    assert not path.exists()  # the last one removes it


def test_a_file_that_is_none(tmp_path):
    path = tmp_path / "store"
    path.write_bytes(b"\xff" * 50)
    with pytest.raises(dist.DistStoreError, match="no file of a store"):
        dist.FileStore(str(path), 1)


class Lines(dist.Store):
    """A store in Python."""

    def __init__(self):
        super().__init__()
        self.values = {}

    def set(self, key, value):
        self.values[key] = value

    def get(self, key):
        return self.values[key]


def test_a_store_in_python():
    store = dist.PrefixStore("p", Lines())
    store.set("k", "v")
    assert store.get("k") == b"v"
    assert store.underlying_store.values == {"p/k": b"v"}
    with pytest.raises(KeyError, match="none"):
        store.get("none")
    with pytest.raises(NotImplementedError, match="check"):
        store.check(["k"])
