"""Fuzzes the readers of pictures and of the files of data sets: `python -m tests.fuzz.files [--seconds S | --files N] [--seed K]`.

Small valid files of every format are damaged at random: bits, bytes and lengths changed, parts cut out, doubled or taken
from another file, sums of PNG mended so that readers get beyond them. A worker process reads them, in blocks that follow
from the seed and their number; before each file it notes in shared memory what it reads. A finding is a crash, a hang,
memory beyond a limit, a file written outside of an archive's folder, or an exception that the reader does not document.
`--show BLOCK` writes the files of a block into the current folder.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import pickle
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

import rushlight
from rushlight.vision import _files
from rushlight.vision import io as images
from rushlight.vision.datasets import _maps, cifar, folder, mnist
from rushlight.vision.datasets.utils import extract_archive
from rushlight.vision.transforms._parts import Part
from tests.fuzz.__main__ import SHARED_BYTES, Shared, parts_of, report, watch

BLOCK = 64  # files that follow from one seed of random numbers
MEMORY = 4 << 30  # of the worker's address space: a picture of Pillow's largest size and its copies
HANG = 20.0  # seconds of the processor that one file may take; SIGPROF ends the worker then
STUCK = 600.0  # seconds that it may take while nothing is computed
NUMBERS = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    255,
    256,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
]

# ---- valid files ----


def picture(mode, width=13, height=9):
    noise = np.random.default_rng(len(mode) * width).integers(0, 256, (height, width, 4), np.uint8)
    whole = Image.fromarray(noise, "RGBA")
    return (
        whole.convert("RGB").convert(mode)
        if mode in ("P", "1", "L", "CMYK", "RGB")
        else whole.convert(mode)
    )


def saved(image, format, **how):
    out = io.BytesIO()
    image.save(out, format, **how)
    return out.getvalue()


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010F] = "maker"
    return exif


def jpegs():
    yield from (
        saved(picture(m), "JPEG", quality=q) for m, q in (("L", 50), ("RGB", 90), ("CMYK", 75))
    )
    yield saved(picture("RGB", 33, 17), "JPEG", progressive=True, subsampling=0)
    yield saved(picture("RGB"), "JPEG", exif=turned(6), restart_marker_blocks=1)
    yield saved(picture("L"), "JPEG", exif=turned(5), comment=b"said")


def pngs():
    yield from (saved(picture(m), "PNG") for m in ("1", "L", "LA", "P", "RGB", "RGBA"))
    yield saved(picture("P"), "PNG", transparency=3, exif=turned(8))
    yield saved(Image.fromarray(np.arange(60, dtype=np.uint16).reshape(6, 10) * 999), "PNG")
    yield saved(picture("RGB"), "PNG", transparency=(1, 2, 3), compress_level=0)


def gifs():
    yield saved(picture("P"), "GIF")
    more = [picture("P", 13, 9).rotate(90 * i) for i in range(1, 4)]
    yield saved(
        picture("P"), "GIF", save_all=True, append_images=more, duration=9, loop=0, disposal=2
    )
    yield saved(picture("P"), "GIF", transparency=1, comment=b"said")


def webps():
    yield saved(picture("RGB"), "WEBP", quality=50)
    yield saved(picture("RGBA"), "WEBP", lossless=True, exif=turned(3))
    yield saved(picture("RGBA"), "WEBP", save_all=True, append_images=[picture("RGBA").rotate(180)])


def avifs():
    yield saved(picture("RGB"), "AVIF", speed=10, quality=50)
    yield saved(picture("RGBA"), "AVIF", speed=10, exif=turned(7))


def idx_files():
    body = bytes(range(48))
    yield struct.pack(">HBBIII", 0, 8, 3, 2, 4, 6) + body
    yield struct.pack(">HBBI", 0, 8, 1, 48) + body
    yield struct.pack(">HBBII", 0, 11, 2, 4, 6) + body
    yield struct.pack(">HBBI", 0, 14, 1, 6) + body


def flows():
    yield b"PIEH" + struct.pack("<ii", 3, 2) + bytes(48)


def float_maps():
    yield b"PF\n3 2\n-1.0\n" + bytes(72)
    yield b"Pf\n3 2\n1.0\n" + bytes(24)


def deep_pngs():
    """Colours of 16 bits, each row with another filter."""
    rows = b"".join(bytes([kind % 5]) + bytes(range(42)) for kind in range(6))
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", 7, 6, 16, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    chunks = (
        struct.pack(">I", len(b)) + n + b + struct.pack(">I", zlib.crc32(n + b)) for n, b in parts
    )
    yield b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def tars(mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name in ("a.txt", "folder/b.bin", "folder/deep/c"):
            member = tarfile.TarInfo(name)
            member.size = 100
            archive.addfile(member, io.BytesIO(bytes(range(100))))
    yield out.getvalue()


def zips():
    for how in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", how) as archive:
            for name in ("a.txt", "folder/b.bin", "folder/deep/c"):
                archive.writestr(name, bytes(range(100)) * 2)
        yield out.getvalue()


def pickles():
    rows = {"data": np.zeros((2, 12), np.uint8), "labels": [1, 2], "batch_label": "one of two"}
    yield from (pickle.dumps(rows, protocol) for protocol in (0, 2))


# ---- readers: bytes, the worker's folder and random numbers; what they return is looked at ----


def decoded(decode):
    def read(data, folder, rng):
        taken = (
            rushlight.frombuffer(bytearray(data), dtype=rushlight.uint8)
            if data
            else rushlight.empty(0, dtype=rushlight.uint8)
        )
        image = decode(taken, rng)
        assert image.dtype in (rushlight.uint8, rushlight.uint16) and image.dim() in (3, 4), (
            image.shape
        )
        assert image.is_contiguous() and 1 <= image.size(-3) <= 4 and image.numel() > 0, image.shape
        if image.numel() < 100_000:
            image.clone()
            if (
                image.dim() == 3
                and image.size(0) in (1, 3)
                and image.dtype == rushlight.uint8
                and rng.random() < 0.05
            ):
                assert images.decode_png(images.encode_png(image, rng.randrange(3))).equal(image)
                again = images.decode_jpeg(images.encode_jpeg(image, rng.randrange(1, 101)))
                assert again.shape == image.shape

    return read


def mode_of(rng):
    return (
        rng.choice(list(images.ImageReadMode))
        if rng.random() < 0.8
        else rng.choice(["RGB", "gray", "RGBA"])
    )


def from_file(name, read):
    def through(data, folder, rng):
        path = folder / name
        path.write_bytes(data)
        try:
            read(path, rng)
        finally:
            path.unlink()

    return through


def unpacked(name):
    def through(data, folder, rng):
        path = folder / name
        path.write_bytes(data)
        target = folder / "inner" / "to"
        target.parent.mkdir(exist_ok=True)
        try:
            extract_archive(path, target)
        finally:
            written = sorted(p.name for p in target.parent.iterdir())
            beside = sorted(p.name for p in folder.iterdir())
            shutil.rmtree(target.parent)
            path.unlink(missing_ok=True)
            assert written in ([], ["to"]) and beside == sorted([name, "inner"]), (written, beside)

    return through


def parts(path, rng):
    """A picture and a part of it have the pixels that Pillow has of them, and its errors."""
    try:
        with Image.open(path) as picture:
            if picture.width * picture.height > 1 << 22:
                return  # copies of those take more memory than a worker has
            expected = np.asarray(picture.convert("RGB"))
    except Image.DecompressionBombError:
        return  # of both
    except (OSError, SyntaxError, ValueError):
        expected = None
    try:
        found = np.asarray(folder.pil_loader(path))
    except OSError:
        found = None
    assert (found is None) == (expected is None), "only one of both could be read"
    if expected is None:
        return
    np.testing.assert_array_equal(found, expected)
    part = _files.part(path)
    if isinstance(part, Part):
        top, left = (rng.randrange(n) for n in expected.shape[:2])
        height, width = (
            rng.randint(1, n - at) for n, at in zip(expected.shape, (top, left), strict=False)
        )
        pixels = part.cut(top, left, height, width).pixels[..., :3].numpy()
        np.testing.assert_array_equal(pixels, expected[top : top + height, left : left + width])


DAMAGED = (RuntimeError,)
ANY_IMAGE = [jpegs, pngs, gifs, webps, avifs]
# By name: how often it is drawn, the files it begins with, the reader, and what it may raise.
TARGETS = {
    "decode_image": (
        8,
        ANY_IMAGE,
        decoded(lambda t, r: images.decode_image(t, mode_of(r), r.random() < 0.5)),
        DAMAGED,
    ),
    "decode_jpeg": (
        6,
        [jpegs],
        decoded(lambda t, r: images.decode_jpeg(t, mode_of(r), "cpu", r.random() < 0.5)),
        DAMAGED,
    ),
    "parts of jpeg": (6, [jpegs], from_file("x.jpg", parts), ()),
    "decode_png": (
        6,
        [pngs],
        decoded(lambda t, r: images.decode_png(t, mode_of(r), r.random() < 0.5)),
        DAMAGED,
    ),
    "decode_gif": (5, [gifs], decoded(lambda t, r: images.decode_gif(t)), DAMAGED),
    "decode_webp": (4, [webps], decoded(lambda t, r: images.decode_webp(t, mode_of(r))), DAMAGED),
    "decode_avif": (1, [avifs], decoded(lambda t, r: images.decode_avif(t, mode_of(r))), DAMAGED),
    "idx": (
        2,
        [idx_files],
        from_file(
            "x", lambda p, r: mnist.read_sn3_pascalvincent_tensor(p, r.random() < 0.5).clone()
        ),
        (ValueError,),
    ),
    "idx.gz": (
        1,
        [lambda: map(gzip.compress, idx_files())],
        from_file("x.gz", lambda p, r: mnist.read_sn3_pascalvincent_tensor(p)),
        (ValueError,),
    ),
    "flo": (1, [flows], from_file("x.flo", lambda p, r: _maps.read_flo(p).sum()), DAMAGED),
    "pfm": (
        1,
        [float_maps],
        from_file("x.pfm", lambda p, r: _maps.read_pfm(p, r.choice([1, 3])).sum()),
        DAMAGED,
    ),
    "png16": (2, [deep_pngs], from_file("x.png", lambda p, r: _maps.read_png16(p).sum()), DAMAGED),
    "grey": (1, [pngs], from_file("x.png", lambda p, r: _maps.read_grey(p).sum()), DAMAGED),
    "tar": (1, [tars], unpacked("x.tar"), DAMAGED),
    "tar.gz": (1, [lambda: tars("w:gz")], unpacked("x.tar.gz"), DAMAGED),
    "tar.xz": (1, [lambda: tars("w:xz")], unpacked("x.tar.xz"), DAMAGED),
    "zip": (1, [zips], unpacked("x.zip"), DAMAGED),
    "gz": (1, [lambda: [gzip.compress(bytes(1000))]], unpacked("x.gz"), DAMAGED),
    "pickle": (1, [pickles], from_file("x.pickle", lambda p, r: cifar._unpickle(p)), DAMAGED),
}


def made_seeds():
    """By target: its valid files."""
    return {
        name: [data for kind in kinds for data in kind()]
        for name, (_, kinds, _, _) in TARGETS.items()
    }


# ---- damage ----


def damaged(rng, seeds):
    """One of the files, with a few changes."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        n = len(data)
        if n < 2:
            break
        at, what = rng.randrange(n), rng.randrange(10)
        if what <= 2:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 3:
            data[at] = rng.randrange(256)
        elif what == 4:
            kind = rng.choice(("<H", ">H", "<I", ">I"))
            size = struct.calcsize(kind)
            data[at : at + size] = struct.pack(kind, rng.choice(NUMBERS) & ((1 << (8 * size)) - 1))
        elif what == 5:
            del data[at : at + rng.choice((1, 2, 4, 16, n))]
        elif what == 6:
            size = rng.choice((1, 2, 4, 16, 64))
            data[at:at] = data[at : at + size] * rng.choice((1, 2, 9))
        elif what == 7:
            data[at:at] = rng.randbytes(rng.choice((1, 2, 4, 16)))
        elif what == 8:
            other = rng.choice(seeds)
            start = rng.randrange(len(other))
            data[at : at + rng.choice((4, 16, 64, n))] = other[
                start : start + rng.choice((4, 16, 64, 999))
            ]
        else:
            there = rng.randrange(n)
            size = rng.choice((1, 4, 16))
            data[there : there + size] = data[at : at + size]
    if data[:8] == b"\x89PNG\r\n\x1a\n" and rng.random() < 0.8:
        mend_sums(data)
    return bytes(data)


def mend_sums(data):
    place = 8
    while place + 12 <= len(data):
        length = int.from_bytes(data[place : place + 4], "big")
        end = place + 8 + length
        if end + 4 > len(data):
            break
        data[end : end + 4] = zlib.crc32(data[place + 4 : end]).to_bytes(4, "big")
        place = end + 4


def block(seed, number, seeds):
    """The files of a block: names of targets and bytes; with them the numbers that readers draw."""
    rng = random.Random(f"{seed}:{number}")
    weights = [weight for weight, *_ in TARGETS.values()]
    for name in rng.choices(list(TARGETS), weights, k=BLOCK):
        yield name, damaged(rng, seeds[name]), rng


# ---- worker ----


def work(options):
    shared = Shared(options.worker)
    warnings.simplefilter("ignore")
    rushlight.set_num_threads(1)
    rushlight.cpu.set_cache_limit(256 << 20)  # what is kept would take the room of others
    seeds = made_seeds()
    for name, (
        _,
        _,
        read,
        _,
    ) in TARGETS.items():  # undamaged ones are read, and everything is imported
        with tempfile.TemporaryDirectory() as folder:
            for data in seeds[name]:
                read(data, Path(folder), random.Random(0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    number, done, faults = options.start, options.done, set()
    deadline = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(
        dir="/dev/shm" if os.path.isdir("/dev/shm") else None
    ) as folder:
        while done < options.files and time.monotonic() < deadline:
            shared.begin(number, done, ["a file"])
            for i, (name, data, rng) in enumerate(block(options.seed, number, seeds)):
                shared.line(i, done)
                signal.setitimer(signal.ITIMER_PROF, HANG)
                _, _, read, allowed = TARGETS[name]
                try:
                    read(data, Path(folder), rng)
                except allowed:
                    pass
                except BaseException as error:
                    kind = f"{name}: {type(error).__name__}: {str(error)[:200]}"
                    where = traceback.extract_tb(error.__traceback__)[-1]
                    if (name, type(error), where.lineno) not in faults:
                        faults.add((name, type(error), where.lineno))
                        trace = traceback.format_exc().splitlines()[-12:]
                        report({"kind": kind, "index": number, "line": i, "program": trace})
                done += 1
            number += 1
    signal.setitimer(signal.ITIMER_PROF, 0)
    shared.begin(number, done, [])


# ---- parent ----


def arguments_of(options, number, done, seconds, path):
    given = {
        "worker": path,
        "seed": options.seed,
        "start": number,
        "done": done,
        "files": options.files,
        "seconds": seconds,
    }
    return [
        sys.executable,
        "-m",
        "tests.fuzz.files",
        *(f"--{name}={value}" for name, value in given.items()),
    ]


def show(options):
    for i, (name, data, _) in enumerate(block(options.seed, options.show, made_seeds())):
        path = Path(f"fuzz-{options.seed}-{options.show}-{i}.{name.replace('/', '-')}")
        path.write_bytes(data)
        print(path)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.files", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="end after so long")
    parser.add_argument("--files", type=int, default=1 << 60, help="end after so many files")
    parser.add_argument("--seed", default="0", help="chooses the files")
    parser.add_argument("--start", type=int, default=0, help="number of the first block")
    parser.add_argument("--findings", type=int, default=20, help="end after so many")
    parser.add_argument("--show", type=int, metavar="N", help="write the files of block N and end")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--done", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options)
    if options.show is not None:
        return show(options)
    begin = time.monotonic()
    number, done, found = options.start, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "shared")
        with open(path, "wb") as f:
            f.truncate(SHARED_BYTES)
        shared = Shared(path)
        while found < options.findings:
            seconds = options.seconds - (time.monotonic() - begin)
            if seconds <= 0 or done >= options.files:
                break
            with open(os.path.join(folder, "log"), "w+", errors="replace") as log:
                shared.begin(number, done, [])
                process = subprocess.Popen(
                    arguments_of(options, number, done, seconds, path),
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
                hangs = watch(process, shared, STUCK) or process.returncode == -signal.SIGPROF
                log.seek(0)
                findings, rest = parts_of(log.read())
            for f in findings:
                print(
                    f"---- {f['kind']}\nblock {f['index']} of seed {options.seed}, file {f['line']}",
                    *f["program"],
                    sep="\n",
                    flush=True,
                )
            found += len(findings)
            number, done, line, lines = shared.read()
            if process.returncode == 0:
                break
            found += 1
            what = "a hang" if hangs else f"the worker ended with {process.returncode}"
            print(
                f"---- {what}: block {number} of seed {options.seed}, file {line}",
                *rest[-40:],
                sep="\n",
                flush=True,
            )
            if lines == [""]:
                print("the worker did not get to its first file")
                return 1
            number, done = number + 1, done + BLOCK
    print(
        f"\n{done} files in {time.monotonic() - begin:.0f} s ({number - options.start} blocks of seed {options.seed}), {found} findings"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
