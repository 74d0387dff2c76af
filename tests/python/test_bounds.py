"""Places where memory is reached beside the checks of ops: sizes of numbers, parts of sparse tensors that
were changed behind them, devices that are names alone, storages that shrank."""

import pytest

import rushlight as torch

NUMBER = torch.ones(())


@pytest.mark.parametrize("dim", [0, -1, 1])
@pytest.mark.parametrize("name", ["size", "stride"])
def test_a_number_has_no_sizes(name, dim):
    with pytest.raises(
        IndexError, match=f"Dimension specified as {dim} of a number: the tensor has no dim"
    ):
        getattr(NUMBER, name)(dim)


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.nn.functional.linear(NUMBER, torch.ones(2, 3)),
        lambda: torch.nn.functional.embedding(torch.zeros((), dtype=torch.long), NUMBER),
        lambda: torch.nn.functional.layer_norm(NUMBER, (3,)),
        lambda: torch.nn.functional.conv2d(NUMBER, torch.ones(1, 1, 1, 1)),
        lambda: torch.nn.functional.batch_norm(NUMBER, None, None, training=True),
        lambda: torch.nn.functional.scaled_dot_product_attention(NUMBER, NUMBER, NUMBER),
        lambda: torch.nn.functional.max_pool2d(NUMBER, 2),
        lambda: torch.nn.functional.grid_sample(NUMBER, NUMBER),
        lambda: torch.linalg.solve(NUMBER, NUMBER),
        lambda: torch.cdist(NUMBER, NUMBER),
        lambda: torch.fft.fft2(NUMBER),
        lambda: torch.nn.functional.pad(NUMBER, (1, 1)),
        lambda: torch.nn.functional.glu(NUMBER),
        lambda: torch.nn.functional.pixel_shuffle(NUMBER, 2),
        lambda: torch.nn.functional.ctc_loss(NUMBER, NUMBER, NUMBER, NUMBER),
        lambda: torch.nn.functional.one_hot(NUMBER.long(), 3).size(1),
        lambda: torch.stft(NUMBER, 4, return_complex=True),
        lambda: torch.block_diag(NUMBER).size(2),
    ],
)
def test_ops_of_sizes_refuse_numbers(call):
    with pytest.raises((RuntimeError, IndexError, ValueError, AssertionError)):
        call()


def csr(columns, starts=(0, 1, 2)):
    starts, columns = torch.tensor(starts), torch.tensor(columns)
    return torch.sparse_csr_tensor(starts, columns, torch.ones(2), (2, 2)), starts, columns


@pytest.mark.parametrize("to", [1 << 40, -1, -(1 << 40), 2])
@pytest.mark.parametrize("way", ["columns", "numpy", "data", "own"])
def test_indices_are_looked_at_where_they_are_followed(way, to):
    a, _, columns = csr([0, 1])
    if way == "columns":
        columns.fill_(to)
    elif way == "numpy":
        columns.numpy()[:] = to
    elif way == "data":
        columns.data.fill_(to)
    else:
        a.col_indices().fill_(to)
    calls = [lambda: a @ torch.ones(2, 3), lambda: a @ torch.ones(2)]
    if to != -1:  # which is the last place to whoever writes at indices
        calls.append(lambda: a.to_dense())
    for call in calls:
        with pytest.raises((IndexError, RuntimeError), match=r"range|bounds|index"):
            call()


@pytest.mark.parametrize("to", [[0, 2, 1], [0, 0, 1 << 40], [1, 1, 2], [0, -5, 2]])
def test_starts_are_looked_at_where_they_are_followed(to):
    a, starts, _ = csr([0, 1])
    starts.copy_(torch.tensor(to))
    with pytest.raises(RuntimeError, match="changed behind it"):
        a @ torch.ones(2, 3)


@pytest.mark.parametrize("call", ["to_dense", "coalesce", "mm", "add", "transpose"])
def test_indices_of_coo_tensors_are_looked_at(call):
    a = torch.sparse_coo_tensor(torch.tensor([[0, 1], [1, 0]]), torch.ones(2), (2, 2))
    a._indices().fill_(1 << 40)
    calls = {
        "to_dense": lambda: a.to_dense(),
        "coalesce": lambda: a.coalesce().to_dense(),
        "mm": lambda: a @ torch.ones(2, 3),
        "add": lambda: torch.ones(2, 2) + a,
        "transpose": lambda: a.t().to_dense(),
    }
    with pytest.raises((IndexError, RuntimeError), match=r"range|bounds|index"):
        calls[call]()


def test_memory_of_tensors_that_are_does_not_shrink():
    a, _, _ = csr([0, 1])
    with pytest.raises(RuntimeError, match="would cut memory"):
        a.values().untyped_storage().resize_(0)


class Wrapper(torch.Tensor):
    """A tensor without memory, on whatever device it says."""

    @classmethod
    def __torch_dispatch__(cls, op, types, args=(), kwargs=None):
        return NotImplemented


@pytest.mark.parametrize("device", ["mps", "mps:0", "xla:3", "privateuseone", "ipu:1"])
def test_no_kernel_is_looked_for_beyond_the_devices_that_are(device):
    t = torch.Tensor._make_wrapper_subclass(Wrapper, (2, 3), device=device)
    with torch._C._DisableTorchDispatch():
        for call in (
            lambda: t + 1,
            lambda: t @ t.T,
            lambda: t.sum(),
            lambda: t.clone(),
            lambda: t.relu_(),
        ):
            with pytest.raises((RuntimeError, NotImplementedError)):
                call()
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.zeros(2, device=device)
