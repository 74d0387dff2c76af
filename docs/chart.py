"""The picture of docs/performance.md: a bar for each suite of docs/measurements.md.

A bar is the time of rushlight over that of PyTorch; `python docs/chart.py` writes it anew.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent
WIDTH, ROW, LEFT, UNIT = 560, 24, 110, 400  # UNIT: pixels of a bar of length 1


def suites():
    """Suite and ratio, as the first table of measurements says for the first processor."""
    table = (ROOT / "measurements.md").read_text().split("| suite |")[1].split("\n\n")[0]
    found = re.findall(r"^\| ([\w ]+) \| \d+ \| ([\d.]+) \|", table, re.MULTILINE)
    return [(name, float(ratio)) for name, ratio in found]


def generate():
    """The picture as SVG, in colours that suit a light and a dark page."""
    rows = suites()
    height = ROW * (len(rows) + 1) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="13">',
        "<title>Time of rushlight, where that of PyTorch is 1</title>",
    ]
    for k, (name, ratio) in enumerate(rows):
        y, bar = 8 + k * ROW, round(ratio * UNIT)
        parts += [
            f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end" fill="#808080">{name}</text>',
            f'<rect x="{LEFT}" y="{y + 3}" width="{bar}" height="16" fill="#d9822b"/>',
            f'<text x="{LEFT + bar + 6}" y="{y + 15}" fill="#808080">{ratio}</text>',
        ]
    end = 8 + len(rows) * ROW
    parts += [
        f'<path d="M{LEFT + UNIT} 4V{end}" stroke="#808080" stroke-dasharray="4 3"/>',
        f'<text x="{LEFT + UNIT}" y="{end + 16}" text-anchor="middle" fill="#808080">'
        "PyTorch</text>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    (ROOT / "performance.svg").write_text(generate())
