"""`SummaryWriter`: writes values of a run, with tag and step, into event files."""

from __future__ import annotations

import importlib
import os
import socket
import time
from datetime import datetime

import rushlight
from rushlight.utils.tensorboard import _embedding, _plugins, summary
from rushlight.utils.tensorboard._events import EventFile, message

__all__ = ["FileWriter", "SummaryWriter"]


def _serialize(content):
    """The bytes of a message: bytes as they are, or an object of protobuf's."""
    return content if isinstance(content, bytes) else content.SerializeToString()


class FileWriter:
    """Writes messages into one event file.

    Args:
        log_dir: the folder.
        max_queue: nothing waits in a queue.
        flush_secs: the number of seconds between writes to the file.
        filename_suffix: put after the file's name.

    Example:
        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> torch.utils.tensorboard.FileWriter(folder).close()
        >>> len(os.listdir(folder))
        1
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str],
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        self._log_dir = str(log_dir)
        self._suffix = filename_suffix
        self._flush_secs = flush_secs
        self.reopen()

    def reopen(self):
        """Begin a new file after `close`."""
        self._file = EventFile(self._log_dir, self._suffix)
        self._flushed = time.monotonic()

    def get_logdir(self):
        """The folder of the file."""
        return self._log_dir

    def _add(self, *fields):
        self._file.write(message(*fields))
        if time.monotonic() - self._flushed > self._flush_secs:
            self.flush()

    def add_event(self, event, step=None, walltime=None):
        """Write an event, with a step and a time if they are given."""
        said = message(
            (1, "double", time.time() if walltime is None else walltime),
            (2, "int", None if step is None else int(step)),
        )
        self._file.write(_serialize(event) + said)  # of a field that is said twice the last counts

    def add_summary(self, summary, global_step=None, walltime=None):
        """Write values from the functions of `summary`."""
        self._add(
            (1, "double", time.time() if walltime is None else walltime),
            (2, "int", None if global_step is None else int(global_step)),
            (5, "bytes", _serialize(summary)),
        )

    def add_graph(self, graph, walltime=None):
        """Write a GraphDef of TensorFlow."""
        self._add(
            (1, "double", time.time() if walltime is None else walltime),
            (4, "bytes", _serialize(graph)),
        )

    def add_session(self, step):
        """Write that events from this step on are discarded."""
        self._add(
            (1, "double", time.time()), (2, "int", step), (7, "bytes", message((1, "int", 1)))
        )

    def flush(self):
        """Make everything that was written visible to readers."""
        self._file.flush()
        self._flushed = time.monotonic()

    def close(self):
        """Close the file."""
        self._file.close()


class SummaryWriter:
    """Writes event files into a folder, by default `runs/DATE_HOST`.

    Args:
        log_dir, comment: the folder, or a suffix for the name of the default one.
        purge_step: what earlier runs wrote from this step on counts no more.
        flush_secs: the number of seconds between writes to the file.
        filename_suffix: put after the file's name.
        max_queue: how many events may wait before they are written.

    Example:
        >>> import tempfile
        >>> with torch.utils.tensorboard.SummaryWriter(tempfile.mkdtemp()) as writer:
        ...     writer.add_scalar("loss", 0.5, global_step=1)
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = str(log_dir)
        self.purge_step = purge_step
        self.filename_suffix = filename_suffix
        self.flush_secs = flush_secs
        self._files: dict[str, FileWriter] = {}
        if purge_step is not None:
            self._get_file_writer().add_session(purge_step)
        else:
            self._get_file_writer()

    def get_logdir(self):
        """The folder of the files."""
        return self.log_dir

    @property
    def file_writer(self):
        """The writer of the folder's file; None after `close`."""
        return self._files.get(self.log_dir)

    @property
    def all_writers(self):
        """The writers by folder; None after `close`."""
        return self._files or None

    @property
    def default_bins(self):
        """The edges of a histogram's bins."""
        return summary.default_bins()

    def _get_file_writer(self, folder=None):
        folder = self.log_dir if folder is None else folder
        if folder not in self._files:
            suffix = self.filename_suffix
            self._files[folder] = FileWriter(
                folder, flush_secs=self.flush_secs, filename_suffix=suffix
            )
        return self._files[folder]

    def _write(self, content, step, walltime, folder=None):
        self._get_file_writer(folder).add_summary(content, step, walltime)

    def add_scalar(
        self,
        tag: str,
        scalar_value,
        global_step=None,
        walltime=None,
        new_style: bool = False,
        double_precision: bool = False,
    ):
        """Write a number at a step."""
        self._write(summary.scalar(tag, scalar_value), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Write several numbers for one chart; each has a file in a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            name = f"{main_tag.replace('/', '_')}_{tag}"
            folder = os.path.join(self.log_dir, name)
            self._write(summary.scalar(main_tag, value), global_step, walltime, folder)

    def add_histogram(
        self, tag: str, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None
    ):
        """Write a histogram of the elements of a tensor."""
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
        """Write a histogram from its numbers."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        content = summary.histogram_raw(
            tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )
        self._write(content, global_step, walltime)

    def add_image(
        self, tag: str, img_tensor, global_step=None, walltime=None, dataformats: str = "CHW"
    ):
        """Write an image: floats from 0 to 1, or uint8."""
        self._write(summary.image(tag, img_tensor, 1, dataformats), global_step, walltime)

    def add_images(
        self, tag: str, img_tensor, global_step=None, walltime=None, dataformats: str = "NCHW"
    ):
        """Write a batch of images, side by side."""
        batch = rushlight.as_tensor(img_tensor)
        names = dataformats.upper()
        if "N" not in names or len(names) != batch.dim():
            raise AssertionError(f"expected a batch of images ({names}), got {tuple(batch.shape)}")
        images = batch.movedim(names.index("N"), 0)
        rest = names.replace("N", "")
        joined = rushlight.cat(list(images), dim=rest.index("W"))
        self.add_image(tag, joined, global_step, walltime, rest)

    def add_figure(self, tag: str, figure, global_step=None, close: bool = True, walltime=None):
        """Write a figure of matplotlib, or several, one below the other."""
        import numpy

        figures = figure if isinstance(figure, list) else [figure]
        pictures = []
        for f in figures:
            f.canvas.draw()
            pictures.append(numpy.asarray(f.canvas.buffer_rgba())[..., :3].copy())
        if close:
            pyplot = importlib.import_module("matplotlib.pyplot")
            for f in figures:
                pyplot.close(f)
        joined = numpy.concatenate(pictures)
        self.add_image(tag, rushlight.from_numpy(joined), global_step, walltime, "HWC")

    def add_text(self, tag: str, text_string, global_step=None, walltime=None):
        """Write a text, which may use Markdown."""
        self._write(summary.text(tag, text_string), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict,
        metric_dict,
        hparam_domain_discrete=None,
        run_name=None,
        global_step=None,
    ):
        """Write the hyperparameters and metrics of this run, for comparing runs."""
        parts = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        for part in parts:
            self._write(part, None, None, folder)
        for tag, value in metric_dict.items():
            self._write(summary.scalar(tag, value), global_step, None, folder)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor,
        box_tensor,
        global_step=None,
        walltime=None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels=None,
    ):
        """Write an image with boxes (x0, y0, x1, y1); needs Pillow."""
        labels = [labels] if isinstance(labels, str) else labels
        content = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._write(content, global_step, walltime)

    def add_video(self, tag: str, vid_tensor, global_step=None, fps: float = 4, walltime=None):
        """Write videos (N, T, C, H, W), floats from 0 to 1 or uint8, as a GIF; needs Pillow."""
        self._write(_plugins.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self, tag: str, snd_tensor, global_step=None, sample_rate: int = 44100, walltime=None
    ):
        """Write a sound of one channel, with numbers from -1 to 1."""
        self._write(_plugins.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_tensor(self, tag: str, tensor, global_step=None, walltime=None):
        """Write all numbers of a tensor."""
        self._write(_plugins.tensor(tag, tensor), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels,
        predictions,
        global_step=None,
        num_thresholds: int = 127,
        weights=None,
        walltime=None,
    ):
        """Write a precision-recall curve of labels (0 or 1) and predicted probabilities of 1."""
        content = _plugins.pr_curve(tag, labels, predictions, num_thresholds, weights)
        self._write(content, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts,
        false_positive_counts,
        true_negative_counts,
        false_negative_counts,
        precision,
        recall,
        global_step=None,
        num_thresholds: int = 127,
        weights=None,
        walltime=None,
    ):
        """Write a precision-recall curve from its numbers, one for each threshold."""
        content = _plugins.pr_curve_raw(
            tag,
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
            num_thresholds,
            weights,
        )
        self._write(content, global_step, walltime)

    def add_custom_scalars(self, layout):
        """Define charts of several tags: {category: {title: ["Multiline" or "Margin", tags]}}."""
        self._write(_plugins.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags, category: str = "default", title: str = "untitled"
    ):
        """Define one chart of several tags."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags, category: str = "default", title: str = "untitled"
    ):
        """Define one chart of a tag between two others."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_mesh(
        self,
        tag: str,
        vertices,
        colors=None,
        faces=None,
        config_dict=None,
        global_step=None,
        walltime=None,
    ):
        """Write points in space (batch, points, 3), with colours and triangles."""
        for content in _plugins.mesh(tag, vertices, colors, faces, config_dict):
            self._write(content, global_step, walltime)

    def add_embedding(
        self,
        mat,
        metadata=None,
        label_img=None,
        global_step=None,
        tag: str = "default",
        metadata_header=None,
    ):
        """Write points (N, D) for the projector, with labels and small square images."""
        step = str(0 if global_step is None else global_step).zfill(5)
        place = f"{step}/{_embedding.folder_name(tag)}"
        _embedding.write(self.log_dir, place, mat, metadata, label_img, tag, metadata_header)

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """Write the graph of a module: it is run once, and its ops are drawn.

        Args:
            model: the module.
            input_to_model: its argument, or a tuple of them.
            verbose: print the nodes.
        """
        from rushlight.utils.tensorboard import _graph

        recorded, listing = _graph.graph(model, input_to_model)
        if verbose:
            print(listing)
        self._get_file_writer().add_graph(recorded)

    def flush(self):
        """Make everything that was written visible to readers."""
        for file in self._files.values():
            file.flush()

    def close(self):
        """Close the files; writing again begins new ones."""
        for file in self._files.values():
            file.close()
        self._files = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()
