"""Clips of videos: which frames they have, sets of videos in their layouts, and PyAV where it is installed."""

import csv
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight.vision import datasets
from rushlight.vision.datasets import utils, video_utils


@pytest.fixture
def numbered(monkeypatch):
    """Videos whose frames are their numbers; the length of a video is that of its file."""

    def timestamps(path):
        count = Path(path).stat().st_size
        return [10 * i for i in range(count)], 4.0, Fraction(1, 40)

    def frames(path, start, end):
        values = torch.arange(start // 10, end // 10 + 1, dtype=torch.uint8)
        return values.view(-1, 1, 1, 1).expand(-1, 2, 3, 3), torch.zeros(1, 5), {"video_fps": 4.0}

    monkeypatch.setattr(video_utils, "read_timestamps", timestamps)
    monkeypatch.setattr(video_utils, "read_frames", frames)


def video(path, frames):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * frames)
    return str(path)


def of(clip):
    return clip[0][:, 0, 0, 0].tolist()


def test_clips(tmp_path, numbered):
    paths = [video(tmp_path / "a.avi", 10), video(tmp_path / "b.avi", 15)]
    clips = video_utils.VideoClips(paths, 5, 5)
    assert clips.num_videos() == 2 and len(clips) == 5
    assert of(clips.get_clip(1)) == [5, 6, 7, 8, 9] and of(clips.get_clip(2)) == [0, 1, 2, 3, 4]
    assert clips.get_clip_location(4) == (1, 2) and clips.get_clip(4)[3] == 1
    with pytest.raises(IndexError, match=r"Index 5 out of range \(5 number of clips\)"):
        clips.get_clip(5)
    clips.compute_clips(4, 2)
    assert [clips.get_clip_location(i)[0] for i in (3, 4)] == [0, 1] and of(clips.get_clip(1))[
        0
    ] == 2
    # Half as many frames in a second, and twice as many.
    clips.compute_clips(3, 2, frame_rate=2)
    assert of(clips.get_clip(1)) == [4, 6, 8] and clips.get_clip(0)[2]["video_fps"] == 2
    clips.compute_clips(4, 4, frame_rate=8)
    assert of(clips.get_clip(1)) == [2, 2, 3, 3]
    part = clips.subset([1])
    assert part.video_paths == paths[1:] and of(part.get_clip(0)) == [0, 0, 1, 1]
    with pytest.warns(UserWarning, match="aren't enough frames in the current video"):
        clips.compute_clips(12, 1)
    assert len(clips) == 4 and clips.get_clip_location(0) == (1, 0)
    with pytest.raises(ValueError, match="either 'THWC' or 'TCHW'"):
        video_utils.VideoClips(paths, output_format="HWC")
    with pytest.raises(ValueError, match="of other videos"):
        video_utils.VideoClips(paths[:1], _precomputed_metadata=clips.metadata)


def test_windows():
    x = torch.arange(7)
    assert video_utils.unfold(x, 3, 2).tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert video_utils.unfold(x, 3, 2, 2).tolist() == [[0, 2, 4], [2, 4, 6]]
    assert video_utils.unfold(x, 9, 1).shape == (0, 9)
    with pytest.raises(ValueError, match="1 dimension instead of 2"):
        video_utils.unfold(x[None], 3, 2)


def test_hmdb(tmp_path, numbered):
    for name in ("run/a.avi", "run/b.avi", "sit/c.avi"):
        video(tmp_path / "videos" / name, 6)
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "run_test_split1.txt").write_text("a.avi 1\nb.avi 2\n")
    (lists / "sit_test_split1.txt").write_text("c.avi 1\n")
    root, told = tmp_path / "videos", str(lists)
    train = datasets.HMDB51(root, told, 3, 3, num_workers=0)
    assert [train[i][2] for i in range(len(train))] == [0, 0, 1, 1] and train[0][0].shape == (
        3,
        2,
        3,
        3,
    )
    test = datasets.HMDB51(root, told, 3, 3, train=False, num_workers=0, output_format="TCHW")
    assert len(test) == 2 and test[0][0].shape == (3, 3, 2, 3)
    again = datasets.HMDB51(
        root, told, 3, 1, transform=len, _precomputed_metadata=train.metadata, num_workers=0
    )
    assert len(again) == 8 and again[0][0] == 3
    with pytest.raises(ValueError, match="between 1 and 3, got 4"):
        datasets.HMDB51(root, told, 3, fold=4)
    (lists / "sit_test_split1.txt").write_text("c.avi\n")
    with pytest.raises(RuntimeError, match=r"sit_test_split1.txt is damaged"):
        datasets.HMDB51(root, told, 3, num_workers=0)


def test_ucf(tmp_path, numbered):
    for name in ("Run/v_Run_g01_c01.avi", "Run/v_Run_g02_c01.avi", "Sit/v_Sit_g01_c01.avi"):
        video(tmp_path / "videos" / name, 4)
    (tmp_path / "trainlist02.txt").write_text("Run/v_Run_g01_c01.avi 1\nSit/v_Sit_g01_c01.avi 2\n")
    (tmp_path / "testlist02.txt").write_text("Run/v_Run_g02_c01.avi\n")
    root, told = tmp_path / "videos", str(tmp_path)
    train = datasets.UCF101(root, told, 4, fold=2, num_workers=0)
    assert [train[i][2] for i in range(len(train))] == [0, 1] and train.classes == ["Run", "Sit"]
    assert len(datasets.UCF101(root, told, 2, 2, fold=2, train=False, num_workers=0)) == 2
    with pytest.raises(FileNotFoundError, match=r"trainlist01.txt"):
        datasets.UCF101(root, told, 4)


def test_kinetics(tmp_path, numbered, monkeypatch):
    for name in ("abseiling/a.mp4", "zumba/b.avi"):
        video(tmp_path / "val" / name, 4)
    found = datasets.Kinetics(tmp_path, 2, split="val", step_between_clips=2, num_workers=0)
    assert [found[i][2] for i in range(len(found))] == [0, 0, 1, 1]
    assert found[1][0].shape == (2, 3, 2, 3)
    with pytest.raises(RuntimeError, match="already exists"):
        datasets.Kinetics(tmp_path, 2, split="val", download=True)

    def refuse(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.setattr(utils, "urlopen", refuse)
    with pytest.raises(RuntimeError, match="Without a network, put the file at"):
        datasets.Kinetics(tmp_path, 2, split="train", download=True)
    # What lies where it would be downloaded to is taken.
    files, tables = tmp_path / "files", tmp_path / "annotations"
    for folder in (files, tables):
        folder.mkdir(exist_ok=True)
    (files / "k400_train_path.txt").write_text("\n")
    fields = "label", "youtube_id", "time_start", "time_end"
    with open(tables / "train.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerows([fields, ("riding a bike", "abc", 3, 13)])

    def unpack(*args, **kwargs):
        video(tmp_path / "train" / "abc_000003_000013.mp4", 5)

    (files / "k400_train_path.txt").write_text("https://nowhere/part_0.tar.gz\n")
    monkeypatch.setattr(datasets.videos, "download_and_extract_archive", unpack)
    found = datasets.Kinetics(tmp_path, 5, download=True, num_workers=0)
    assert found.classes == ["riding_a_bike"] and len(found) == 1


def test_without_pyav(tmp_path):
    try:
        import av  # noqa: F401
    except ImportError:
        with pytest.raises(RuntimeError, match="PyAV is not installed"):
            video_utils.VideoClips([video(tmp_path / "a.mp4", 3)])


def test_decoding(tmp_path):
    av = pytest.importorskip("av")
    path = tmp_path / "run" / "a.mp4"
    path.parent.mkdir()
    with av.open(str(path), "w") as out:
        stream = out.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        sound = out.add_stream("aac", rate=8000, layout="mono")
        for i in range(25):
            pixels = np.full((48, 64, 3), 10 * i, np.uint8)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        samples = np.sin(np.arange(20480) / 8).astype(np.float32)
        for part in samples.reshape(-1, 1, 1024):
            frame = av.AudioFrame.from_ndarray(part, format="fltp", layout="mono")
            frame.rate = 8000
            out.mux(sound.encode(frame))
        out.mux(stream.encode())
        out.mux(sound.encode())
    clips = video_utils.VideoClips([str(path)], 5, 5)
    assert clips.video_fps == [10.0] and len(clips) == 5
    for number in (3, 0, 4):
        frames, audio, info, _ = clips.get_clip(number)
        assert frames.shape == (5, 48, 64, 3) and frames.dtype is torch.uint8
        means = frames.float().mean((1, 2, 3)).numpy()
        np.testing.assert_allclose(means, 10 * np.arange(5 * number, 5 * number + 5), atol=4)
        assert info == {"video_fps": 10.0, "audio_fps": 8000}
        assert audio.shape[0] == 1 and abs(audio.shape[1] - 3200) <= 2
    path.write_bytes(b"no video")
    with pytest.raises(RuntimeError, match=r"a.mp4 is damaged or no video"):
        clips.get_clip(0)
