"""Settings of function transforms; other names can be set, too, and change nothing."""

# Fake tensors of modes that are made from now on carry real ones, on which ops run, too.
fake_tensor_propagate_real_tensors = False
