"""The ops that generated code itself calls, by what it calls them for."""

ZEROS = "zeros_like"  # the tangent of what is constant
ONES = "ones_like"  # the gradient from which slopes are taken
COPY = "clone"  # of what an op without a functional form writes
WRITE = "copy_"  # the result of a composite into the tensor that its in-place form is called on
CAST = "to"  # to the dtype of `out=`
