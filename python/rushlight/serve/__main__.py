"""`python -m rushlight.serve model.gguf`: loads the file, and answers until it is told to end."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Sequence

import rushlight
from rushlight.serve.engine import Engine
from rushlight.serve.http import Server

_CACHES = ("float32", "float16", "bfloat16", "int8")


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rushlight.serve", description=__doc__)
    parser.add_argument("file", help="a file of the GGUF format, of the architecture llama")
    parser.add_argument("--host", default="127.0.0.1", help="default: this machine alone")
    parser.add_argument("--port", type=int, default=8080, help="0: any")
    parser.add_argument("--context", type=int, help="tokens that there is room for")
    parser.add_argument("--threads", type=int, help="of the processor")
    parser.add_argument("--waiting", type=int, default=16, help="requests that may wait")
    parser.add_argument("--together", type=int, default=4, help="requests answered side by side")
    parser.add_argument(
        "--cache", default="float16", choices=_CACHES, help="type of keys and values"
    )
    parser.add_argument(
        "--invariant",
        type=int,
        default=0,
        choices=(0, 1),
        help="1: no bit depends on what else is asked",
    )
    return parser.parse_args(given)


def _show_progress(engine: Engine) -> None:
    """Says how far loading is, until it is done."""
    shown = ""
    while not engine.ready.wait(0.2):
        if engine.state != shown:
            shown = engine.state
            print(shown, file=sys.stderr, flush=True)


def main(given: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM; the exit status."""
    args = _arguments(given)
    if args.threads is not None:
        rushlight.set_num_threads(args.threads)
    rushlight.use_batch_invariant(args.invariant == 1)
    cache = getattr(rushlight, args.cache)
    engine = Engine(args.file, args.context, args.waiting, args.together, cache)
    server = Server((args.host, args.port), engine, os.path.basename(args.file))
    ended = threading.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, lambda *_: ended.set())
    accepting = threading.Thread(target=server.serve_forever, daemon=True)
    engine.start()
    accepting.start()
    host, port = server.server_address[:2]
    print(f"http://{host}:{port}/", flush=True)
    _show_progress(engine)
    if engine.error is not None:
        print(engine.state, file=sys.stderr, flush=True)
        ended.set()
    ended.wait()
    engine.stop()  # first, as threads wait for its answers
    server.shutdown()
    server.server_close()
    return 0 if engine.error is None else 1


if __name__ == "__main__":
    sys.exit(main())
