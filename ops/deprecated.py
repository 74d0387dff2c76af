"""Orders of arguments that are taken with a warning: numbers before the tensors they multiply.

Only Python has them. A name stands for the op's first signature; arguments that are not named keep
their defaults.
"""

ORDERS: dict[str, list[str]] = {
    "add": ["self, alpha, other"],
    "sub": ["self, alpha, other"],
    "addcmul": ["self, value, tensor1, tensor2"],
    "addcdiv": ["self, value, tensor1, tensor2"],
    "addmm": ["beta, self, alpha, mat1, mat2", "beta, self, mat1, mat2"],
    "addmv": ["beta, self, alpha, mat, vec", "beta, self, mat, vec"],
    "addr": ["beta, self, alpha, vec1, vec2", "beta, self, vec1, vec2"],
    "addbmm": ["beta, self, alpha, batch1, batch2", "beta, self, batch1, batch2"],
    "baddbmm": ["beta, self, alpha, batch1, batch2", "beta, self, batch1, batch2"],
}
