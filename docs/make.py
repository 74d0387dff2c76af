"""Write the documentation of all ops: `python docs/make.py OUT` (`./dev docs` builds first).

The pages come from the op table (docs/pages.py). What the table does not say is measured here, with
the samples of tests/ops: which dtypes an op takes, what shapes come out, what its errors say.
"""

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import rushlight
from docs import pages
from gen import table
from tests.ops import harness

EXAMPLES = 3
LONGEST_MESSAGE = 200


def is_public(name):
    places = (rushlight, rushlight.Tensor, rushlight.nn.functional)
    return any(hasattr(place, name) for place in places)


def shape_text(results):
    """The shapes of results: (2, 3), or several."""
    shapes = [str(tuple(t.shape)) for t in harness.tensors_of(results)]
    return ", ".join(shapes) if shapes else repr(results)


def call(case, dtype, text):
    args, kwargs = harness.Makers(rushlight, dtype, case.key).arguments(text)
    return harness.function_of(rushlight, case.op)(*args, **kwargs)


def message_of(case, text, kind):
    """What an error says, on one line."""
    try:
        call(case, case.dtypes[0], text)
    except kind as error:
        message = " ".join(str(error).split())
        return message if len(message) < LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + "…"
    raise AssertionError(f"{case.key}({text}) was to raise {kind.__name__}")


def measure():
    """Facts of every op that has samples."""
    facts: dict[str, pages.Facts] = {}
    for case in harness.cases().values():
        if case.base:  # `foo_` has the samples of `foo`, which its results may not fit
            continue
        found = facts.setdefault(case.op.name, pages.Facts())
        if case.samples and not found.dtypes:
            found.dtypes = [d for d in harness.DTYPES["all"] if harness.accepts(rushlight, case, d)]
        for text in case.samples[:EXAMPLES]:
            found.shapes.append((text, shape_text(call(case, case.dtypes[0], text))))
        for text, kind, _ in case.errors:
            found.errors.append((text, kind.__name__, message_of(case, text, kind)))
    return facts


def main(out):
    warnings.simplefilter("ignore")  # of deprecated forms among the samples
    out.mkdir(parents=True, exist_ok=True)
    texts = pages.generate([op for op in table.load() if is_public(op.name)], measure())
    for name, text in texts.items():
        (out / name).write_text(text)
    print(f"{len(texts)} pages in {out}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
