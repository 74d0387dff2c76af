"""Samples of comparisons, bits and bounds whose inputs need care."""

from tests.ops.pointwise import pairs

SAMPLES = {
    "maximum": pairs("distinct", "x", numbers=False),
    "minimum": pairs("distinct", "x", numbers=False),
    "clamp": ["x(3, 4), -0.5, 0.5", "x(3, 4), min=0", "x(3, 4), max=1", "x(), 0, 1"],
    "clamp_min": ["x(3, 4), 0"],
    "clamp_max": ["x(3, 4), 0"],
    "bitwise_left_shift": ["x(3, low=0, high=5), x(3, low=0, high=3)"],
    "bitwise_right_shift": ["x(3, low=0, high=5), x(3, low=0, high=3)"],
    "nan_to_num": ["same(nan, inf, -inf, 1.0)", "same(nan, 2.0), 3.0"],
}
DTYPES = {"maximum": "real", "minimum": "real"}
DTYPES |= dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), "integers")
REFERENCES = {f"bitwise_{name}.Scalar_Tensor": f"np.bitwise_{name}(self, other)" for name in ("and", "or", "xor")}
REFERENCES |= {f"__{name}__": f"np.bitwise_{name}(self, other)" for name in ("and", "or", "xor")}
REFERENCES |= {f"bitwise_{side}_shift.Scalar_Tensor": f"np.{side}_shift(self, other)" for side in ("left", "right")}
REFERENCES |= {f"__{side[0]}shift__": f"np.{side}_shift(self, other)" for side in ("left", "right")}
REFERENCES |= {
    "_clamp": "np.clip(self, min, max)",
    "clamp_min": "np.maximum(self, min)",
    "clamp_max": "np.minimum(self, max)",
}
for _name in ("nan_to_num", "_nan_to_num"):
    REFERENCES[_name] = "np.nan_to_num(self, nan=nan or 0.0, posinf=LARGEST[tested] if posinf is None else posinf, neginf=-LARGEST[tested] if neginf is None else neginf)"
ERRORS = {
    "bitwise_and": [("m.ones(1), m.ones(1)", RuntimeError, "not implemented for 'Float'")],
}
NO_GRADIENT = {"isreal", "isclose", "allclose", "equal"}
SKIPS = {(op, "meta"): "reads values" for op in ("allclose", "equal")}
SKIPS |= {("nan_to_num", "complex grad"): "its samples are NaN and infinite, and so are the differences"}
