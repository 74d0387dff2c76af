"""`compile` and the names around it."""

import copy
import pickle

import pytest

import rushlight as torch


def test_programs_run_as_they_are_written():
    compiler = torch.compiler

    def function(x):
        return x + 1

    for mark in (compiler.allow_in_graph, compiler.assume_constant_result):
        assert mark(function) is function
    assert compiler.disable(recursive=False)(function) is function
    assert compiler.substitute_in_graph(len)(function) is function
    with compiler.set_stance("force_eager"):
        assert function(1) == 2
    with pytest.raises(RuntimeError, match="invalid torch.compile stance"):
        compiler.set_stance("lying")
    with pytest.raises(RuntimeError, match="force_backend"):
        compiler.set_stance("force_eager", force_backend="eager")
    answers = compiler.is_compiling(), compiler.is_dynamo_compiling(), compiler.is_exporting()
    assert answers == (False, False, False)
    assert compiler.reset() is None and compiler.cudagraph_mark_step_begin() is None


def test_modes_and_backends_that_there_are_not_are_refused():
    def function(x):
        return x + 1

    with pytest.raises(RuntimeError, match="Unrecognized mode='nonsense'.*reduce-overhead"):
        torch.compile(function, mode="nonsense")
    with pytest.raises(RuntimeError, match="Unrecognized mode=3"):
        torch.nn.Linear(2, 2).compile(mode=3)
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="Invalid backend: .*'nonsense'"):
        torch.compile(backend="nonsense")
    assert issubclass(torch._dynamo.exc.InvalidBackend, RuntimeError)
    assert torch.compile(function, mode="max-autotune")(1) == 2
    assert torch.compile(function, mode="its own", backend="eager")(1) == 2
    assert (
        torch.compile(function, backend=lambda graph, inputs: graph)(1) == 2
    )  # no tensor, no graph


def test_compiled_modules_share_state():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    compiled = torch.compile(model)
    assert isinstance(compiled, torch._dynamo.OptimizedModule)
    assert next(iter(compiled.state_dict())) == "_orig_mod.0.weight" and len(compiled) == 2
    compiled.eval()
    assert not model.training
    x = torch.ones(1, 2)
    assert torch.equal(compiled(x), model(x))
    compiled.tag = 3
    assert model.tag == 3 and compiled.tag == 3
    plain = torch.compile(lambda x: x + 1, backend="eager", fullgraph=True)
    assert plain(x).tolist() == [[2, 2]]
    assert torch.compile(model, disable=True) is model


def test_modules_compile_in_place():
    model = torch.nn.Linear(2, 2)
    assert model.compile(backend="eager", fullgraph=True) is None
    assert model._compiled_call_impl is not None and list(model.state_dict()) == ["weight", "bias"]
    x = torch.ones(1, 2)
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert torch.equal(twin(x), model(x)) and twin.weight is not model.weight
    with pytest.raises(RuntimeError, match="mode or options"):
        model.compile(mode="default", options={})
