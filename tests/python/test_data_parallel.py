"""Modules copied to several devices; here the CPU several times, which is what there is."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.parallel import comm, data_parallel, parallel_apply, replicate


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2)).eval()


def test_gradients_of_copies_are_those_of_the_module():
    ours, split = network(), network()
    x = torch.randn(5, 3)
    expected = ours(x)
    result = data_parallel(split, x, ["cpu", "cpu", "cpu"])
    assert torch.allclose(result, expected)
    expected.square().sum().backward()
    result.square().sum().backward()
    for p, q in zip(ours.parameters(), split.parameters(), strict=True):
        assert torch.allclose(p.grad, q.grad)


def test_copies_have_no_parameters_of_their_own():
    module = network()
    one, two = replicate(module, ["cpu", "cpu"])
    assert type(one) is type(module) and one is not module and one[0] is not module[0]
    assert not list(one.parameters()) and one[0].weight.equal(module[0].weight)
    assert one[1].running_mean.equal(module[1].running_mean) and one[0].weight.requires_grad
    assert not replicate(module, ["cpu"], detach=True)[0][0].weight.requires_grad
    assert two[3]._former_parameters.keys() == {"weight", "bias"}
    pair = nn.ParameterList([torch.ones(2), torch.zeros(2)])
    copy = pair._replicate_for_data_parallel()
    for name, parameter in pair.named_parameters():
        setattr(copy, name, parameter.view_as(parameter))
    assert [p._base is q for p, q in zip(copy, pair, strict=True)] == [True, True]
    with pytest.raises(RuntimeError, match="dummy forward pass"):
        nn.LazyLinear(2)._replicate_for_data_parallel()


def test_modules_side_by_side_see_the_callers_modes():
    def seen(x, scale=1):
        return x.requires_grad, torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), scale

    with torch.no_grad(), torch.autocast("cpu"):
        results = parallel_apply([seen] * 2, [torch.ones(1)] * 2, [{"scale": 2}, {}])
    assert results == [(False, False, True, 2), (False, False, True, 1)]
    with pytest.raises(RuntimeError, match="replica 1"):
        parallel_apply([nn.Identity(), nn.Linear(2, 2)], [(torch.ones(1),), (torch.ones(3),)])
    with pytest.raises(AssertionError, match="number of modules 2"):
        parallel_apply([seen] * 2, [torch.ones(1)])


def test_batches_that_are_no_tensor():
    class Both(nn.Module):
        def forward(self, pair, *, factor):
            return {"sum": pair["a"] + pair["b"], "factor": factor * pair["a"]}

    x = torch.arange(6.0).reshape(3, 2)
    result = data_parallel(
        Both(), ({"a": x, "b": x + 1},), ["cpu", "cpu"], module_kwargs={"factor": 2}
    )
    assert result["sum"].equal(2 * x + 1) and result["factor"].equal(2 * x)
    assert data_parallel(nn.Identity(), x, []) is x


def test_moves():
    x = torch.arange(6.0, requires_grad=True)
    a, b = comm.broadcast(x, ["cpu", "cpu"])
    (a + 2 * b).sum().backward()
    assert x.grad.equal(torch.full((6,), 3.0))
    pieces = comm.scatter(x, ["cpu", "cpu"], [2, 4])
    assert [p.numel() for p in pieces] == [2, 4] and comm.gather(pieces).equal(x)
    assert comm.reduce_add([x, x, x], "cpu").equal(3 * x)
    assert comm.reduce_add_coalesced([(x, a), (x, b)])[1].equal(a + b)
    out = [torch.empty(3), torch.empty(3)]
    assert comm.scatter(x.detach(), out=out)[1].equal(x[3:]) and out[0].equal(x[:3])
    assert comm.broadcast(x.detach()[:3], out=out)[0] is out[0] and out[1].equal(x[:3])
    with pytest.raises(RuntimeError, match="exactly one of"):
        comm.scatter(x)
    with pytest.raises(ValueError, match="input 1 has invalid size"):
        comm.reduce_add([x, x[:2]])
    from rushlight.nn.parallel import _functions

    assert _functions.Gather.apply("cpu", 0, *_functions.Scatter.apply(["cpu"], None, 0, x)).equal(
        x
    )
    assert len(_functions.Broadcast.apply(["cpu", "cpu"], x, x)) == 4
    assert _functions._get_stream(torch.device("cpu")) is None
