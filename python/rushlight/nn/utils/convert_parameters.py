"""Parameters as one flat vector, and back."""

import rushlight

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters):
    """Concatenate the values of all parameters to a 1-d tensor."""
    return rushlight.cat([parameter.view(-1) for parameter in parameters])


def vector_to_parameters(vec, parameters):
    """Set the values of parameters to slices of a 1-d tensor, in order."""
    if not isinstance(vec, rushlight.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec)}")
    start = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = vec[start : start + count].view_as(parameter).data
        start += count
