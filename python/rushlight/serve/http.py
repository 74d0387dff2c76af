"""The endpoint: completions and chats over HTTP, streamed where they are asked to be."""

from __future__ import annotations

import json
import logging
import select
import socket
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from rushlight.serve.engine import Busy, Engine
from rushlight.serve.page import PAGE
from rushlight.serve.protocol import Refused, Reply, job_of

__all__ = ["Server"]

_LARGEST = 4 << 20  # bytes of a request
_SECONDS = 30  # that a client may be silent
_PATIENCE = 5  # seconds that a connection waits for a thread
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")


class Server(ThreadingHTTPServer):
    """Answers requests by an engine, each in a thread of its own.

    Args:
        address: host and port; port 0 takes any.
        engine: what answers; it is started by whoever made it.
        model: its name.
        most: connections at a time; others wait at the door.

    For an example see `serve.engine.Engine`.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self, address: tuple[str, int], engine: Engine, model: str, most: int = 64
    ) -> None:
        self.engine = engine
        self.model = model
        self._free = threading.BoundedSemaphore(most)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Waits for a free thread, and closes the connection where none gets free."""
        if not self._free.acquire(timeout=_PATIENCE):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """What a thread does."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = _SECONDS
    server_version = "rushlight"
    sys_version = ""
    _paths: ClassVar[dict[str, bool]] = {"/v1/completions": False, "/v1/chat/completions": True}

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are told to who listens to `logging`, and not to the terminal."""
        logging.getLogger("rushlight.serve").info(format, *args)

    # ---- answers ----

    def _send(self, status: int, data: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Content-Type-Options", "nosniff")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _say(self, value: Any, status: int = HTTPStatus.OK) -> None:
        self._send(status, json.dumps(value).encode())

    def _fail(self, status: int, text: str) -> None:
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.close_connection = True  # what is left of the request is not read
        self._say({"error": {"message": text, "type": kind, "param": None, "code": None}}, status)

    def _is_local(self) -> bool:
        """Whether the name is one of this machine: pages of others cannot ask under their own."""
        host = self.headers.get("Host", "")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        mine = self.server.server_address[0]
        if mine not in _LOOPBACK or name in _LOOPBACK:
            return True
        self._fail(HTTPStatus.FORBIDDEN, f"this server is not {host!r:.100}")
        return False

    # ---- requests ----

    def do_GET(self) -> None:
        """The page, what models there are, and how the engine does."""
        if not self._is_local():
            return
        engine, path = self.server.engine, self.path.partition("?")[0]
        if path == "/":
            self._send(HTTPStatus.OK, PAGE.encode(), "text/html; charset=utf-8")
        elif path == "/v1/models":
            one = {"id": self.server.model, "object": "model", "created": 0, "owned_by": "local"}
            self._say({"object": "list", "data": [one]})
        elif path == "/health":
            is_well = engine.ready.is_set() and engine.state == "ok"
            status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
            self._say({"status": engine.state, "done": engine.done, "of": engine.of}, status)
        else:
            self._fail(HTTPStatus.NOT_FOUND, "there is nothing at this path")

    def do_POST(self) -> None:
        """Completions and chats."""
        if not self._is_local():
            return
        chat = self._paths.get(self.path.partition("?")[0])
        if chat is None:
            self._fail(HTTPStatus.NOT_FOUND, "there is nothing at this path")
            return
        try:
            body = self._body()
            if self.server.engine.state != "ok":
                raise Busy(self.server.engine.state)
            job = job_of(self.server.engine, body, chat)
            reply = Reply(job, self.server.model, chat)
            self.server.engine.submit(job)
        except Refused as error:
            self._fail(HTTPStatus.BAD_REQUEST, str(error))
            return
        except Busy as error:
            self._fail(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
            return
        try:
            if body.get("stream"):
                self._stream(reply, body)
            else:
                self._whole(reply)
        finally:
            job.cancelled.set()  # it is over, or whoever asked is gone

    def _body(self) -> Any:
        # Pages of others may send forms, but no JSON.
        if self.headers.get_content_type() != "application/json":
            raise Refused("the body must be application/json")
        size = self.headers.get("Content-Length", "")
        if not size.isdecimal() or int(size) > _LARGEST:
            raise Refused(f"the body must have at most {_LARGEST} bytes, and say how many")
        try:
            return json.loads(self.rfile.read(int(size)))
        except (ValueError, RecursionError) as error:
            raise Refused(f"the body is no JSON: {error}") from error

    def _whole(self, reply: Reply) -> None:
        text = ""
        try:
            for piece in reply.job.answer():
                text += piece
                if self._is_gone():
                    return
        except Exception as error:
            busy = isinstance(error, Busy)
            status = HTTPStatus.SERVICE_UNAVAILABLE if busy else HTTPStatus.INTERNAL_SERVER_ERROR
            self._fail(status, str(error))
            return
        self._say(reply.whole(text))

    def _is_gone(self) -> bool:
        """Whether the client has closed the connection."""
        try:
            readable = select.select([self.connection], [], [], 0)[0]
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except (OSError, ValueError):
            return True

    def _stream(self, reply: Reply, body: dict[str, Any]) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

        def event(value: Any) -> None:
            data = f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        try:
            event(reply.piece("", first=True))
            for piece in reply.job.answer():
                event(reply.piece(piece))
            event(reply.piece("", ended=True))
            options = body.get("stream_options")
            if isinstance(options, dict) and options.get("include_usage"):
                event({**reply.piece(""), "choices": [], "usage": reply.usage()})
            event("[DONE]")
        except OSError:
            self.close_connection = True  # the client is gone
            return
        except Exception as error:
            event({"error": {"message": str(error), "type": "server_error"}})
        self.wfile.write(b"0\r\n\r\n")
