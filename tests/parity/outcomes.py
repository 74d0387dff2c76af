"""What comes of calls, each package's in a process of its own: a value of some shape, an error of some type, a crash or a hang.

`Worker("torch" or "rushlight")(calls)` runs calls, as text, in the names of `scope`. The process may take `MEMORY` bytes
more than it has after its imports, and `SECONDS` for a call.
"""

import json
import os
import select
import signal
import subprocess
import sys

MEMORY = 4 << 30
SECONDS = 30.0


class Worker:
    """Calls in another process, which is started anew after a hang."""

    def __init__(self, side):
        self.side, self.process, self.rest = side, None, b""

    def _line(self, seconds):
        end = self.rest.find(b"\n")
        while end < 0:
            ready, _, _ = select.select([self.process.stdout], [], [], seconds)
            if not ready:
                return {"error": "hang"}
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return {"error": "end"}
            self.rest += more
            end = self.rest.find(b"\n")
        line, self.rest = self.rest[:end], self.rest[end + 1 :]
        return json.loads(line)

    def _start(self):
        command = [sys.executable, "-W", "ignore", "-m", "tests.parity.outcomes", self.side]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
        self.process = subprocess.Popen(command, start_new_session=True, **pipes)
        self.rest = b""
        ready = self._line(120.0)
        assert ready == {"ready": True}, ready

    def close(self):
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def __call__(self, calls):
        found = []
        for call in calls:
            if self.process is None:
                self._start()
            self.process.stdin.write(json.dumps(call).encode() + b"\n")
            found.append(self._line(SECONDS))
            if found[-1].get("error") in ("hang", "end"):
                self.close()
        return found


def scope(side):
    """The names of calls: as in `test_vision_tensors`, with `X` for io and what the tests of bad input take."""
    import importlib
    import io
    from enum import Enum

    import numpy as np
    from PIL import Image

    if side == "torch":
        from tests.parity import torchvision as oracle

        package, module = oracle.load(), importlib.import_module("torch")
        oracle.compiled("image.so")
    else:
        module = importlib.import_module("rushlight")
        package = importlib.import_module("rushlight.vision")
    parts = {
        short: importlib.import_module(f"{package.__name__}.{name}")
        for short, name in {
            "F": "transforms.functional",
            "T": "transforms",
            "G": "transforms.v2.functional",
            "V": "transforms.v2",
            "K": "tv_tensors",
            "U": "utils",
            "O": "ops",
            "X": "io",
        }.items()
    }
    numbers = np.random.default_rng(0)

    def image(*shape, dtype="uint8"):
        values = numbers.integers(0, 256, shape)
        values = values / 255 if "float" in dtype else values
        return module.from_numpy(np.asarray(values)).to(getattr(module, dtype))

    def picture(mode, width=9, height=8):
        noise = np.random.default_rng(1).integers(0, 256, (8, 9, 4), np.uint8)
        whole = Image.fromarray(noise, "RGBA").convert("RGB").convert(mode)
        return (
            whole.resize((width, height)) if width and height else Image.new(mode, (width, height))
        )

    def file(format, mode="RGB", **how):
        out = io.BytesIO()
        picture(mode, 33, 17).save(out, format, **how)
        return module.frombuffer(bytearray(out.getvalue()), dtype=module.uint8)

    return {
        **parts,
        "m": module,
        "np": np,
        "I": parts["T"].InterpolationMode,
        "image": image,
        "picture": picture,
        "file": file,
        "nan": float("nan"),
        "inf": float("inf"),
        "Enum": Enum,
    }


def described(value):
    """Kind and size of a value, in words that both packages share."""
    if isinstance(value, list | tuple):
        return [described(part) for part in value]
    if hasattr(value, "dtype"):
        name = type(value).__name__
        return [name, str(value.dtype).split(".")[-1], *map(int, value.shape)]
    if hasattr(value, "getbands"):
        return ["picture", value.mode, *value.size]
    if isinstance(value, str | int | float | bool | None):
        return repr(value)
    return type(value).__name__


def serve(names, out):
    """Answers calls until there are no more."""
    import random

    with open(0, "rb", buffering=0) as calls:
        for line in calls:
            names["m"].manual_seed(7)
            random.seed(7)
            try:
                answer = {"value": described(eval(json.loads(line), dict(names)))}
            except Exception as error:
                answer = {"error": type(error).__name__.lstrip("_"), "said": str(error)[:200]}
            print(json.dumps(answer), file=out, flush=True)


def main(side):
    """Answers in a child, and in another one after a crash: imports take long."""
    import resource

    names = scope(side)
    with open("/proc/self/statm") as f:
        taken = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a call prints is no answer
    print(json.dumps({"ready": True}), file=out, flush=True)
    while (child := os.fork()) != 0:
        _, status = os.waitpid(child, 0)
        if status == 0:
            return
        print(json.dumps({"error": f"crash {status}"}), file=out, flush=True)
    serve(names, out)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
