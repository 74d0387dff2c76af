"""Samples of ops that are met mostly inside others: backward kernels, kernels behind composites, in-place names, random
numbers, updates of parameters. What an op's family says in its own file goes before what stands here."""

_GRAD = "x(3, 4), x(3, 4)"
_LARGE_LISTS = "[x(300, 400)], [x(300, 400)]"
_STEPS = "[m.tensor(3.0)]"
_LSTM = "[2, 2, 2], 'lstm', False, False"
_POOL = "x(2, 3, 8, 9), [2, 2], [2, 2], [0, 0]"

SAMPLES = {
    # attention, distance
    "_attention": ["x(1, 1, 4, 2), x(1, 1, 3, 2), x(1, 1, 3, 2), None, False, 0.4", "x(2, 3, 4, 5), x(2, 3, 6, 5), x(2, 3, 6, 5), None, False, 0.4"],
    "_attention_backward": [
        "x(2, 3, 4, 5), x(2, 3, 4, 5), x(2, 3, 6, 5), x(2, 3, 6, 5), None, True, 0.4, x(2, 3, 4, 5), pos(2, 3, 4)"
    ],
    "_cdist": ["x(1, 3, 2), x(1, 4, 2), 1.5", "x(2, 3, 4), x(2, 5, 4), 2.0", "x(2, 3, 4), x(2, 5, 4), 1.5"],
    "_cdist_backward": ["x(2, 3, 5), x(2, 3, 4), x(2, 5, 4), 2.0, pos(2, 3, 5)"],
    # conv
    "convolution": [
        "x(1, 2, 3, 4), x(2, 1, 2, 2), x(2), [1, 1], [1, 0], [1, 1], False, [0, 0], 2",
        "x(2, 4, 7, 8), x(6, 2, 3, 3), x(6), [2, 1], [1, 1], [1, 1], False, [0, 0], 2",
        "x(2, 4, 5), x(4, 3, 3), None, [2], [1], [1], True, [1], 1",
    ],
    "convolution_weight_backward": [
        "x(1, 2, 2, 3), x(1, 1, 3, 4), [2, 1, 2, 2], [1, 1], [0, 0], [1, 1], 1",
        "x(2, 6, 7, 8), x(2, 4, 7, 8), [6, 4, 3, 3], [1, 1], [1, 1], [1, 1], 1"],
    "conv1d.padding": ["x(1, 1, 6), x(2, 1, 3), padding='same'", "x(2, 3, 8), x(4, 3, 3), padding='same'"],
    "conv3d.padding": ["x(1, 1, 2, 3, 3), x(1, 1, 2, 2, 2), padding='same'", "x(1, 2, 4, 5, 6), x(3, 2, 3, 3, 3), padding='same'"],
    # arrange, special
    "fill_diagonal_": ["x(300, 400), 2.5", "x(9, 3), 1, wrap=True"],
    "float_power_": ["m.ones(3, 4, dtype=m.float64), 2.5"],
    "polygamma_": ["pos(3, 4), 1"],
    # creation
    "scalar_tensor": ["2.5"],
    "new_zeros": ["x(3), [300, 400]"],
    "new_ones": ["x(3), [300, 400]"],
    "new_full": ["x(3), [300, 400], 1.5"],
    "range": ["0, 100000, 2"],
    **dict.fromkeys([f"{n}.Tensor_Tensor" for n in ("linspace", "logspace")], ("m.tensor(0.5), m.tensor(2), 9",)),
    **dict.fromkeys([f"{n}.Tensor_Scalar" for n in ("linspace", "logspace")], ("m.tensor(0.5), 2, 9",)),
    **dict.fromkeys([f"{n}.Scalar_Tensor" for n in ("linspace", "logspace")], ("0.5, m.tensor(2), 9",)),
    # linalg, pad, resample
    "_logsumexp": ["x(3, 4), [1]", "x(300, 400), [0], True"],
    "_matmul": ["x(2, 2, 3), x(2, 3, 2)", "x(2, 3, 4), x(2, 4, 5)"],
    "_pad_edges": ["x(2, 5, 6), [1, 2, 2, 1], 'reflect'", "x(2, 5, 6), [1, 2], 'replicate'"],
    "_pad_edges_backward": ["x(1, 5, 6), [1, 3, 4], [1, 1, 1, 1], 'reflect'", "x(2, 8, 9), [2, 5, 6], [1, 2, 2, 1], 'reflect'"],
    "_grid_sampler_backward": ["x(2, 3, 4, 5), x(2, 3, 6, 7), unit(2, 4, 5, 2), 0, 0, False"],
    # recurrent
    "_recurrent_layer": ["x(2, 8), x(1, 2), x(1, 2), x(8, 2), x(8), None, [1, 1], 'lstm', False, False, True", f"x(6, 20), x(2, 5), x(2, 5), x(20, 5), x(20), None, {_LSTM}, True", f"x(6, 20), x(2, 5), x(2, 5), x(20, 5), x(20), None, {_LSTM}, False"],
    "_recurrent_layer_backward": [
        "x(6, 5), x(2, 5), x(2, 5), x(2, 5), x(2, 5), x(20, 5), x(20), None, x(6, 5), unit(6, 4, 5), unit(6, 5), " + _LSTM
    ],
    # loss
    "_ctc_loss_backward": [
        "x(2), x(6, 2, 4).log_softmax(2), ints(2, 3, low=1, high=4), [6, 5], [3, 2], pos(2), x(2, 6, 7), 0, False"
    ],
    "_nll_loss": ["x(3, 4), ints(3, high=4), None, 1, -100", "x(3, 4), ints(3, high=4), const(4), 0, 1"],
    "_nll_loss_backward": ["x(), ints(3, high=4), None, m.tensor(3.0, dtype=dtype), [3, 4], 1, -100"],
    "_cross_entropy": ["x(3, 4), ints(3, high=4), None, 1, -100, 0.1"],
    "_cross_entropy_backward": ["x(), x(3, 4), ints(3, high=4), None, const(2, 3), m.tensor(3.0, dtype=dtype), 1, -100, 0.1"],
    "embedding_renorm_": ["x(5, 3), ints(4, high=5), 1.0, 2.0"],
    # norm
    "native_batch_norm": [
        "x(3, 2, 4), pos(2), x(2), const(2), const(2), True, 0.1, 1e-5",
        "x(3, 2, 4), None, None, const(2), const(2), False, 0.1, 1e-5",
        "x(4, 3, 5), pos(3), x(3), x(3), pos(3), True, 0.1, 1e-5",
        "x(4, 3, 5), None, None, x(3), pos(3), False, 0.1, 1e-5",
    ],
    "_native_batch_norm_legit": ["x(4, 3, 5), pos(3), x(3), const(3), const(3), True, 0.1, 1e-5"],
    "_batch_norm_with_update": ["x(4, 3, 5), pos(3), x(3), const(3), const(3), 0.1, 1e-5"],
    "_batch_norm_no_update": ["x(4, 3, 5), None, None, x(3), pos(3), 0.1, 1e-5", "x(4, 3), pos(3), x(3), const(3), const(3), 0.1, 1e-5"],
    "_native_batch_norm_legit.no_stats": ["x(4, 3, 5), pos(3), x(3), True, 0.1, 1e-5", "x(4, 3), pos(3), x(3), True, 0.1, 1e-5"],
    "_native_batch_norm_legit_no_training": ["x(4, 3, 5), None, None, x(3), pos(3), 0.1, 1e-5", "x(4, 3), pos(3), x(3), const(3), const(3), 0.1, 1e-5"],
    "native_dropout": ["x(3, 4), 0.5, True", "x(3), 0.5, False", "x(3), 1.0, None", "x(0), 0.5, True"],
    "native_dropout_backward": ["x(3, 4), mask(3, 4), 2.0"],
    "native_batch_norm_backward": ["x(4, 3, 5), x(4, 3, 5), pos(3), x(3), pos(3), x(3), pos(3), True, 1e-5"],
    "native_layer_norm": ["x(3, 4), [4], pos(4), x(4), 1e-5", "x(300, 400), [400], pos(400), x(400), 1e-5"],
    "native_layer_norm_backward": [
        "x(3, 4), x(3, 4), [4], x(3, 1), pos(3, 1), pos(4)",
        "x(300, 400), x(300, 400), [400], x(300, 1), pos(300, 1), pos(400)",
    ],
    "native_group_norm": ["x(2, 4, 3), pos(4), x(4), 2, 4, 3, 2, 1e-5"],
    "_group_norm": ["x(2, 4, 3), pos(4), x(4), 2, 1e-5", "x(4, 6, 5), pos(6), x(6), 2, 1e-5"],
    "_group_norm_backward": ["x(4, 6, 5), x(4, 6, 5), x(4, 2), pos(4, 2), pos(6), 2"],
    "_fused_rms_norm": ["x(3, 4), [4], pos(4), 1e-5", "x(300, 400), [400], pos(400), None"],
    "_fused_rms_norm_backward": [
        "x(3, 4), x(3, 4), [4], pos(3, 1), pos(4)",
        "x(300, 400), x(300, 400), [400], pos(300, 1), pos(400)",
    ],
    # optim
    "sgd_step_": [
        f"{lists}, lr=0.1, momentum=0.9, dampening=0.0, weight_decay=0.01, nesterov=True, maximize=False, first=False"
        for lists in ("[x(3, 4)], [x(3, 4)], [x(3, 4)]", f"{_LARGE_LISTS}, [x(300, 400)]")
    ],
    "adam_step_": [
        f"{_LARGE_LISTS}, [x(300, 400)], [pos(300, 400)], [pos(300, 400)], {_STEPS}, lr=0.1, beta1=0.9, beta2=0.99, "
        "eps=1e-8, weight_decay=0.01, decoupled=True, amsgrad=True, maximize=False"
    ],
    "rmsprop_step_": [
        f"{_LARGE_LISTS}, [pos(300, 400)], [x(300, 400)], [unit(300, 400)], {_STEPS}, lr=0.1, alpha=0.9, eps=1e-8, "
        "weight_decay=0.01, momentum=0.9, centered=False, maximize=False"
    ],
    "adagrad_step_": [
        f"{_LARGE_LISTS}, [pos(300, 400)], {_STEPS}, lr=0.1, lr_decay=0.1, eps=1e-8, weight_decay=0.01, maximize=False"
    ],
    "adadelta_step_": [
        f"{_LARGE_LISTS}, [pos(300, 400)], [pos(300, 400)], {_STEPS}, lr=0.1, rho=0.9, eps=1e-8, weight_decay=0.01, "
        "maximize=False"
    ],
    "adamax_step_": [
        f"{_LARGE_LISTS}, [x(300, 400)], [pos(300, 400)], {_STEPS}, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, "
        "weight_decay=0.01, maximize=False"
    ],
    "nadam_step_": [
        f"{_LARGE_LISTS}, [x(300, 400)], [pos(300, 400)], [m.tensor(0.9)], {_STEPS}, lr=0.1, beta1=0.9, beta2=0.99, "
        "eps=1e-8, weight_decay=0.01, momentum_decay=0.01, decoupled=False, maximize=False"
    ],
    "radam_step_": [
        f"{_LARGE_LISTS}, [x(300, 400)], [pos(300, 400)], {_STEPS}, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, "
        "weight_decay=0.01, decoupled=False, maximize=False"
    ],
    "rprop_step_": [
        f"{_LARGE_LISTS}, [x(300, 400)], [pos(300, 400)], {_STEPS}, eta_minus=0.5, eta_plus=1.2, step_size_min=1e-6, "
        "step_size_max=50.0, maximize=False"
    ],
    "asgd_step_": [
        f"{_LARGE_LISTS}, [x(300, 400)], lambd=1e-4, eta=0.1, mu=0.5, weight_decay=0.01, maximize=False"
    ],
    "_amp_foreach_non_finite_check_and_unscale_": [
        "[x(3, 4), x(300, 400).T, x(0)], m.zeros(()), m.tensor(0.5)",
        "[x(3), m.full((2,), float('inf'), dtype=dtype)], m.zeros(1), m.tensor([0.5])",
    ],
    "_amp_update_scale_": [
        f"m.tensor(8.0), m.tensor({count}, dtype=m.int32), m.tensor({found}), 2.0, 0.5, 2"
        for count, found in ((0, 0.0), (1, 0.0), (1, 1.0))
    ],
    # pointwise
    "div_.mode": ["x(3, 4), pos(3, 4), rounding_mode='floor'"],
    "true_divide_": ["x(3, 4), pos(3, 4)"],
    "zero_": ["x(3, 4)"],
    "divide": ["x(3, 4), pos(3, 4)"],
    "round.decimals": ["x(3, 4), decimals=1"],
    "clamp.Tensor": ["x(3, 4), x(4), pos(3, 1)"],
    "clip": ["x(3, 4), -1, 1"],
    "clip.Tensor": ["x(3, 4), x(4), pos(3, 1)"],
    "threshold": ["x(3, 4), 0.1, 20"],
    "threshold_backward": [f"{_GRAD}, 0.1"],
    "hardtanh_backward": [f"{_GRAD}, -1, 1"],
    "leaky_relu_backward": [f"{_GRAD}, 0.01"],
    "elu_backward": [f"{_GRAD}, 1.0, 1.0, 1.0"],
    "softplus_backward": [f"{_GRAD}, 1, 20"],
    "hardshrink_backward": [f"{_GRAD}, 0.5"],
    "prelu": ["x(2, 3, 4), x(3)", "x(3, 4, 5), x(4)"],
    "glu": ["x(3, 4)", "x(3, 4), 1"],
    "_smooth_l1": [f"{_GRAD}, 1.0"],
    "_smooth_l1_slope": [f"{_GRAD}, 1.0"],
    "_huber": [f"{_GRAD}, 1.0"],
    "_huber_slope": [f"{_GRAD}, 1.0"],
    "fill_": ["x(3, 4), 2"],
    "celu": ["x(3, 4)", "x(3, 4), 0.5"],
    # pool
    "_max_pool": ["distinct(1, 2, 4, 5), [2, 2], [2, 2], [0, 0], [1, 1], False", f"{_POOL}, [1, 1], False"],
    "_max_pool_values": [
        "distinct(1, 2, 4, 5), [2, 2], [2, 2], [0, 0], [1, 1], False",
        f"{_POOL}, [1, 1], False",
        "distinct(3, 40), [3], [2], [1], [1], True",
        "distinct(2, 37), [2], [6], [0], [3], False",
        "distinct(1, 2, 5, 6, 7), [2, 3, 3], [1, 2, 2], [1, 1, 1], [2, 1, 1], False",
    ],
    "_max_pool_backward": ["x(1, 2, 2, 2), ints(1, 2, 2, 2, high=20), [1, 2, 4, 5], 2", "x(2, 3, 4, 4), ints(2, 3, 4, 4, high=72), [2, 3, 8, 9], 2"],
    "_avg_pool": ["x(1, 2, 4, 5), [2, 2], [2, 2], [0, 0], False, True, None", f"{_POOL}, False, True, None"],
    "_avg_pool_backward": ["x(1, 2, 2, 2), [1, 2, 4, 5], [2, 2], [2, 2], [0, 0], False, True, None", "x(2, 3, 4, 4), [2, 3, 8, 9], [2, 2], [2, 2], [0, 0], False, True, None"],
    "_adaptive_avg_pool": ["x(1, 2, 4, 5), [3, 2]", "x(2, 3, 8, 9), [3, 4]"],
    "_adaptive_avg_pool_backward": ["x(1, 2, 3, 2), [1, 2, 4, 5], 2", "x(2, 3, 3, 4), [2, 3, 8, 9], 2"],
    "_adaptive_max_pool": ["distinct(1, 2, 4, 5), [3, 2]", "x(2, 3, 8, 9), [3, 4]"],
    "max_pool1d_with_indices": ["x(2, 3, 9), 2"],
    "max_pool3d_with_indices": ["distinct(1, 1, 3, 4, 4), 2, 1", "x(1, 2, 4, 5, 6), 2"],
    # random
    "uniform_": ["x(3, 4), 0.5, 2.0"],
    "normal_": ["x(3, 4), 1.0, 2.0"],
    "random_.from": ["x(3, 4), 2, 9"],
    "random_.to": ["x(3, 4), 9"],
    "random_": ["x(3, 4)"],
    "bernoulli_.Tensor": ["x(3, 4), unit(3, 4).abs()"],
    "bernoulli_.float": ["x(3, 4), 0.3"],
    "exponential_": ["x(3, 4)"],
    "cauchy_": ["x(3, 4)"],
    "log_normal_": ["x(3, 4)"],
    "geometric_": ["x(3, 4), 0.3"],
    "rand": ["[300, 400]"],
    "rand_like": ["x(3, 4)"],
    "randn": ["[300, 400]"],
    "randn_like": ["x(3, 4)"],
    "randint": ["9, [300, 400]"],
    "randint.low": ["2, 9, [300, 400]"],
    "randint_like": ["x(3, 4), 9"],
    "randint_like.low": ["x(3, 4), 2, 9"],
    "randperm": ["100000"],
    "bernoulli": ["unit(3, 4).abs()"],
    "bernoulli.p": ["x(3, 4), 0.3"],
    "normal": ["x(3, 4), pos(3, 4)"],
    "normal.Tensor_float": ["x(3, 4), 2.0"],
    "normal.float_Tensor": ["1.0, pos(3, 4)"],
    "normal.float_float": ["1.0, 2.0, [300, 400]"],
    "multinomial": ["pos(3, 4), 2"],
    "_multinomial": ["pos(2, 3, 4), 2"],
    "poisson": ["pos(3, 4)"],
    "_standard_gamma": ["pos(3, 4)"],
    "_sample_dirichlet": ["pos(3, 4)"],
    "binomial": ["m.full((3, 4), 9.0), unit(3, 4).abs()"],
    "_scaled_bernoulli_": ["x(3, 4), 0.5, 2.0"],
    "_draw_from_cumulative": ["pos(3, 4).cumsum(-1), 2"],
    "_dropout_noise": ["x(3, 4), [3, 1], 0.5, 2.0"],
    **dict.fromkeys(("dropout", "alpha_dropout"), ("x(3, 4), 0.5, True",)),
    "dropout1d": ["x(3, 4), 0.5, True", "x(2, 3, 4), 0.5, True"],
    "gumbel_softmax": ["x(3, 4), 1.0, True", "x(3, 4)"],
    **dict.fromkeys(("feature_dropout", "feature_alpha_dropout"), ("x(3, 4, 5), 0.5, True",)),
    # reduce
    **dict.fromkeys(("var.unbiased", "std.unbiased", "var_mean.unbiased", "std_mean.unbiased"), ("x(3, 4), False",)),
    **dict.fromkeys(("var.dim", "std.dim", "var_mean.dim", "std_mean.dim"), ("x(3, 4), [0], False",)),
    # shape
    "alias": ["x(3, 4)"],
    "slice": ["x(5, 4), 0, 1, 4, 2"],
    "view_dtype": ["x(3, 4), m.uint8"],
    "narrow.Tensor": ["x(4, 3), 0, m.tensor(1), 2"],
    "atleast_1d.Sequence": ["[x(), x(3)]"],
    "atleast_2d.Sequence": ["[x(), x(3), x(2, 3)]"],
    "atleast_3d.Sequence": ["[x(), x(3), x(2, 3)]"],
    "lift_fresh": ["x(2, 3)"],
    "_local_scalar_dense": ["x()", "x(1, 1)"],
    "squeeze_.dims": ["x(1, 3, 1), [0, 2]", "x(2, 1), [0]"],
    "mm.dtype": ["x(2, 3), x(3, 4), m.float64"],
    "bmm.dtype": ["x(2, 2, 3), x(2, 3, 4), m.float64"],
    "addmm.dtype": ["x(2, 4), x(2, 3), x(3, 4), m.float64, alpha=2"],
    "baddbmm.dtype": ["x(2, 2, 4), x(2, 2, 3), x(2, 3, 4), m.float64, beta=2"],
    "float_power.Scalar": ["2.5, x(3)"],
    "randint_like.Tensor": ["x(3, 4), m.tensor(9)"],
    "bernoulli.Tensor": ["x(3, 4), m.tensor([0.0, 1.0, 0.5, 0.2])"],
    "split.sizes": ["x(3, 4), [1, 2]"],
    "split_with_sizes": ["x(3, 4), [1, 2]"],
    "select_backward": ["x(4), [3, 4], 0, 1"],
    "slice_backward": ["x(2, 4), [5, 4], 0, 1, 5, 2"],
    "diagonal_backward": ["x(3), [3, 4], 0, 0, 1"],
    "unfold_backward": ["x(2, 3, 3), [2, 7], 1, 3, 2"],
    "_to_copy": ["x(3, 4), dtype=m.float64"],
    "copy_": ["x(3, 4), x(4)", "x(3, 4), 2"],
    "reshape_as": ["x(3, 4), x(4, 3)"],
    "view_as": ["x(3, 4), x(4, 3)"],
    "view.dtype": ["x(3, 4), m.int32"],
    "contiguous": ["x(3, 4).t()"],
    "broadcast_tensors": ["[x(3, 1), x(4)]"],
    "sum_to_size": ["x(3, 4), [1, 4]"],
    "to.dtype": ["x(3, 4), m.float64"],
    "to.device": ["x(3, 4), 'cpu', m.float64"],
    "to.other": ["x(3, 4), x(2).double()"],
    "resize_": ["x(3, 4), [2, 5]"],
    "resize_as_": ["x(3, 4), x(2, 5)"],
    # softmax
    "_softmax_backward_data": ["x(3, 4), unit(3, 4).abs(), 1, dtype"],
    "_log_softmax_backward_data": ["x(3, 4), x(3, 4), 1, dtype"],
    # numbers on the left
    "remainder.Scalar_Tensor": ["5, pos(3, 4)"],
    "xlogy.Scalar_Self": ["2, pos(3, 4)"],
}
SAMPLES |= {f"_recorded_{name}": said for name, said in SAMPLES.items() if name.endswith("_step_")}
_BITS = [f"bitwise_{n}" for n in ("and", "or", "xor", "left_shift", "right_shift")]
SAMPLES |= {f"{name}.Scalar_Tensor": ["5, x(3, 4, low=0, high=3)"] for name in _BITS}
_DUNDERS = ("__and__", "__or__", "__xor__", "__lshift__", "__rshift__")
SAMPLES |= {name: ["x(3, 4, low=0, high=3), x(3, 4, low=0, high=3)"] for name in _DUNDERS}

DTYPES = {"round.decimals": "floating"}
DTYPES |= dict.fromkeys(("mm.dtype", "bmm.dtype", "addmm.dtype", "baddbmm.dtype"), "float64")
DTYPES |= dict.fromkeys([*_DUNDERS, *(f"{name}.Scalar_Tensor" for name in _BITS)], "integers")

# Ops that can have no sample here, and why.
WITHOUT = dict.fromkeys(
    ("empty", "empty_strided", "empty_permuted", "empty_like", "new_empty", "new_empty_strided"), "the values are what the memory held"
) | dict.fromkeys(("svd_lowrank", "pca_lowrank"), "drawn at random")
