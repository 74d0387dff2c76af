"""Samples of normalisations: with and without parameters and running statistics, in training and not."""


SAMPLES = {
    "batch_norm": [
        *("x(4, 3), x(3), x(3), None, None, True, 0.1, 1e-5, False", "x(4, 3, 5), None, None, None, None, True, 0.1, 1e-5, False"),
        *("x(2, 3, 4, 5), x(3), x(3), m.zeros(3, dtype=dtype), m.ones(3, dtype=dtype), True, 0.1, 1e-5, False",),
        *("x(2, 3, 4, 5), x(3), x(3), m.zeros(3, dtype=dtype), m.ones(3, dtype=dtype), False, 0.1, 1e-5, False",),
        *("x(2, 20, 3, 3, 3), x(20), x(20), None, None, True, 0.1, 1e-5, False", "x(40, 17), x(17), x(17), None, None, True, 0.1, 1e-5, False"),
    ],
    "layer_norm": ["x(4, 6), (6,)", "x(4, 6), (6,), x(6), x(6)", "x(2, 3, 20), (3, 20), x(3, 20), x(3, 20)", "x(0, 4), (4,)", "x(2, 37), (37,), x(37)"],
    "group_norm": ["x(2, 4, 3), 2", "x(2, 4, 3, 3), 4, x(4), x(4)", "x(2, 6), 3, x(6), x(6)", "x(1, 6, 5, 7), 1, x(6), x(6)"],
    "instance_norm": ["x(2, 3, 9), None, None, None, None, True, 0.1, 1e-5, False", "x(2, 3, 4, 5), x(3), x(3), None, None, True, 0.1, 1e-5, False"],
    "rms_norm": ["x(4, 6), (6,)", "x(4, 6), (6,), x(6)", "x(2, 3, 20), (3, 20), x(3, 20), 1e-3"],
}
SAMPLES |= {
    "local_response_norm": ["x(2, 5, 3), 2", "x(2, 5, 3, 4), 3, 0.1, 0.5, 2.0", "x(2, 0, 3), 2"],
    "normalize": ["x(3, 4)", "x(3, 4), 1, 0", "x(2, 3, 4), 2.0, (1, 2)", "x(4), 2.0, 0, 10.0"],
}
SAMPLES |= {
    "_batch_norm_of_values": ["x(4, 3), None, None, training=True", "x(2, 3, 4), m.zeros(3, dtype=dtype), m.ones(3, dtype=dtype), x(3), x(3)", "x(1, 3), m.zeros(3, dtype=dtype), m.ones(3, dtype=dtype)"],
    "_instance_norm_of_values": ["x(2, 3, 9)", "x(2, 3, 4), weight=x(3), bias=x(3)"],
    "_group_norm_of_values": ["x(2, 4, 3), 2", "x(2, 4, 3), 4, x(4), x(4)"],
}
DTYPES = dict.fromkeys(SAMPLES, "floating") | {"rms_norm": "differentiable"}
_LAST = "normalized(input, last(normalized_shape), eps)"
_ROOT = "input / np.sqrt(np.mean(input**2, last(normalized_shape), keepdims=True) + (eps or 0))"
REFERENCES = {
    "batch_norm": "channel_norm(input, weight, bias, running_mean, running_var, training, eps)",
    "native_batch_norm": "(channel_norm(input, weight, bias, running_mean, running_var, training, eps), None, None)",
    "_native_batch_norm_legit": "(channel_norm(input, weight, bias, running_mean, running_var, training, eps), None, None)",
    "_batch_norm_with_update": "(channel_norm(input, weight, bias, running_mean, running_var, True, eps), None, None, None)",
    "_batch_norm_no_update": "(channel_norm(input, weight, bias, running_mean, running_var, False, eps), None, None, None)",
    "_native_batch_norm_legit.no_stats": "(channel_norm(input, weight, bias, None, None, training, eps), None, None)",
    "_native_batch_norm_legit_no_training": "(channel_norm(input, weight, bias, running_mean, running_var, False, eps), None, None)",
    "layer_norm": f"affine({_LAST}[0], weight, bias, False)",
    "native_layer_norm": f"(affine({_LAST}[0], weight, bias, False), *{_LAST}[1:])",
    "group_norm": "affine(grouped_norm(input, num_groups, eps)[0], weight, bias)",
    "native_group_norm": "(affine(grouped_norm(input, group, eps)[0], weight, bias), *grouped_norm(input, group, eps)[1:])",
    "_group_norm": "(affine(grouped_norm(input, num_groups, eps)[0], weight, bias), *grouped_norm(input, num_groups, eps)[1:])",
    "instance_norm": "affine(normalized(input, tuple(range(2, input.ndim)), eps)[0], weight, bias)",
    "_batch_norm_of_values": "channel_norm(input, weight, bias, running_mean, running_var, training, eps)",
    "_instance_norm_of_values": "affine(normalized(input, tuple(range(2, input.ndim)), eps)[0], weight, bias)",
    "_group_norm_of_values": "affine(grouped_norm(input, num_groups, eps)[0], weight, bias)",
    "rms_norm": f"affine({_ROOT}, weight, None, False)",
    "_fused_rms_norm": f"(affine({_ROOT}, weight, None, False), None)",
}
ERRORS = {
    "_batch_norm_of_values": [("x(1, 3), None, None, training=True", ValueError, "Expected more than 1 value per channel in training")],
    "_instance_norm_of_values": [("x(2, 3, 1)", ValueError, "Expected more than 1 spatial element in training")],
    "_group_norm_of_values": [("x(1, 2), 2", ValueError, "Expected more than 1 value per channel in training"), ("x(3), 2", RuntimeError, "at least 2 dimensions, not 1")],
    "local_response_norm": [("x(2, 5), 2", ValueError, "Expected 3D or higher dimensionality input")],
    "batch_norm": [
        ("x(2, 4), None, None, None, None, False, 0.1, 1e-5", RuntimeError, "running_mean must be defined in evaluation mode"),
        ("x(2, 4), None, None, x(3), x(3), True, 0.1, 1e-5", RuntimeError, "running_mean should contain 4 elements not 3"),
        ("x(2, 4), x(3), None, None, None, True, 0.1, 1e-5", RuntimeError, "weight should contain 4 elements not 3"),
        ("x(2, 4), x(4).double(), None, None, None, True, 0.1, 1e-5", RuntimeError, "or scalar type of Float where that has 16 bits"),
        ("ints(2, 4, high=3), None, None, None, None, True, 0.1, 1e-5", NotImplementedError, "not implemented for 'Long'"),
    ],
    "layer_norm": [
        ("x(2, 4), (3,)", RuntimeError, r"normalized_shape=\[3\] goes with input of shape \[\*, 3\], not with \[2, 4\]"),
        ("x(2, 4), ()", RuntimeError, "normalized_shape names at least one dimension"),
        ("x(2, 4), (4,), x(3)", RuntimeError, "weight must be of same shape as normalized_shape"),
        ("ints(2, 4, high=3), (4,)", NotImplementedError, "not implemented for 'Long'"),
    ],
    "group_norm": [
        ("x(2, 4), 3", RuntimeError, "do not divide into num_groups=3"),
        ("x(4), 2", RuntimeError, "Expected at least 2 dimensions, not 1"),
        ("x(2, 4, 3), 2, x(3)", RuntimeError, "weight to be a vector of 4 elements"),
        ("x(2, 4), 0", RuntimeError, "num_groups must be greater than 0"),
    ],
    "rms_norm": [("x(2, 4), (3,)", RuntimeError, r"normalized_shape=\[3\]")],
}
