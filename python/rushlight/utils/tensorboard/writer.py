"""`SummaryWriter`: writes values of a run, by tag and step, into event files."""

from __future__ import annotations

import os
import socket
import time
from datetime import datetime

import rushlight
from rushlight.utils.tensorboard import summary
from rushlight.utils.tensorboard._events import EventFile, message

__all__ = ["SummaryWriter"]


class SummaryWriter:
    """Writes into a folder, by default `runs/DATE_HOST`.

    Args:
        log_dir, comment: the folder, or what is put after the default one's name.
        purge_step: what earlier runs wrote from this step on counts no more.
        flush_secs: how often readers see what is new.
        filename_suffix: put after the file's name.
    """

    def __init__(
        self,
        log_dir=None,
        comment: str = "",
        purge_step=None,
        max_queue=10,
        flush_secs=120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self.filename_suffix = filename_suffix
        self.flush_secs = flush_secs
        self._files = {}
        self._flushed = time.monotonic()
        if purge_step is not None:
            self._write(None, purge_step, None, session=True)
        else:
            self._file(self.log_dir)

    def get_logdir(self):
        """The folder."""
        return self.log_dir

    def _file(self, folder):
        if folder not in self._files:
            self._files[folder] = EventFile(folder, self.filename_suffix)
        return self._files[folder]

    def _write(self, content, step, walltime, folder=None, session=False):
        event = message(
            (1, "double", time.time() if walltime is None else walltime),
            (2, "int", None if step is None else int(step)),
            (5, "bytes", content),
            (7, "bytes", message((1, "int", 1)) if session else None),
        )
        self._file(self.log_dir if folder is None else folder).write(event)
        if time.monotonic() - self._flushed > self.flush_secs:
            self.flush()

    def add_scalar(
        self,
        tag: str,
        scalar_value,
        global_step=None,
        walltime=None,
        new_style: bool = False,
        double_precision: bool = False,
    ):
        """A number at a step."""
        self._write(summary.scalar(tag, scalar_value), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Several numbers to be shown in one chart; each has its file in a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            name = f"{main_tag.replace('/', '_')}_{tag}"
            folder = os.path.join(self.log_dir, name)
            self._write(summary.scalar(main_tag, value), global_step, walltime, folder)

    def add_histogram(
        self, tag: str, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None
    ):
        """How the elements of a tensor are spread."""
        self._write(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min,
        max,
        num,
        sum,
        sum_squares,
        bucket_limits,
        bucket_counts,
        global_step=None,
        walltime=None,
    ):
        """The same from its numbers."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        content = summary.histogram_raw(
            tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )
        self._write(content, global_step, walltime)

    def add_image(
        self, tag: str, img_tensor, global_step=None, walltime=None, dataformats: str = "CHW"
    ):
        """An image: floats from 0 to 1, or uint8."""
        self._write(summary.image(tag, img_tensor, 1, dataformats), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor, global_step=None, walltime=None, dataformats: str = "NCHW"
    ):
        """A batch of images, side by side."""
        batch = rushlight.as_tensor(img_tensor)
        names = dataformats.upper()
        if "N" not in names or len(names) != batch.dim():
            raise AssertionError(f"expected a batch of images ({names}), got {tuple(batch.shape)}")
        images = batch.movedim(names.index("N"), 0)
        rest = names.replace("N", "")
        joined = rushlight.cat(list(images), dim=rest.index("W"))
        self.add_image(tag, joined, global_step, walltime, rest)

    def add_figure(self, tag: str, figure, global_step=None, close: bool = True, walltime=None):
        """A figure of matplotlib, or several one below the other."""
        import numpy

        figures = figure if isinstance(figure, list) else [figure]
        pictures = []
        for f in figures:
            f.canvas.draw()
            pictures.append(numpy.asarray(f.canvas.buffer_rgba())[..., :3].copy())
        if close:
            import matplotlib.pyplot  # pyright: ignore[reportMissingImports]

            for f in figures:
                matplotlib.pyplot.close(f)
        joined = numpy.concatenate(pictures)
        self.add_image(tag, rushlight.from_numpy(joined), global_step, walltime, "HWC")

    def add_text(self, tag: str, text_string, global_step=None, walltime=None):
        """A text, which may use Markdown."""
        self._write(summary.text(tag, text_string), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict,
        metric_dict,
        hparam_domain_discrete=None,
        run_name=None,
        global_step=None,
    ):
        """What this run was made with, and how well it did, for comparing runs."""
        parts = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        for part in parts:
            self._write(part, None, None, folder)
        for tag, value in metric_dict.items():
            self._write(summary.scalar(tag, value), global_step, None, folder)

    def flush(self):
        """Let readers see all that was written."""
        for file in self._files.values():
            file.flush()
        self._flushed = time.monotonic()

    def close(self):
        """End the files; writing again begins new ones."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()
