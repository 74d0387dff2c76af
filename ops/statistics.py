"""Statistics and calculus on samples: quantiles, covariance, histograms, differences, integrals,
membership."""

from gen.table import composite

_both = "function method out"

for _name, _doc in (("quantile", "The q-th quantiles"),
                    ("nanquantile", "`quantile` of the elements that are not NaN")):
    composite(f"{_name}(Tensor self, Tensor q, Dim? dim=None, bool keepdim=False, *, str "
              f"interpolation='linear') -> Tensor",
              variants=_both,
              doc=f"{_doc}, along a dimension or of all elements; a dimension for q comes first.",
              autocast={"cpu": "float32"})
    composite(f"{_name}.scalar(Tensor self, float q, Dim? dim=None, bool keepdim=False, *, str "
              f"interpolation='linear') -> Tensor",
              variants=_both, ref=f"numpy.{_name}",
              doc=f"{_doc}, along a dimension or of all elements.",
              autocast={"cpu": "float32"})
composite("cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> "
          "Tensor", ref="numpy.cov",
          doc="The covariance of variables (rows) over observations (columns).")
composite("corrcoef(Tensor self) -> Tensor", ref="numpy.corrcoef",
          doc="The correlations of variables (rows) over observations (columns).")
composite("histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool "
          "density=False) -> (Tensor hist, Tensor bin_edges)",
          variants=_both, grad="none",
          doc="How many elements lie between rising edges, or the sum of their weights.")
composite("histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? "
          "weight=None, bool density=False) "
          "-> (Tensor hist, Tensor bin_edges)", variants=_both, grad="none",
          doc="`histogram` of equal bins.")
for _overload, _bins in (("int_bins", "int"), ("", "int[]"), ("TensorList_bins", "Tensor[]")):
    composite(f"histogramdd{'.' * bool(_overload)}{_overload}(Tensor self, {_bins} bins, float[]? "
              f"range=None, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor[] "
              f"bin_edges)", variants="function", grad="none",
              doc="How many points (rows of the last dimension) fall into each box of a grid, or "
                  "the sum of their weights, and its edges: numbers of equal bins, or edges, for "
                  "each dimension.")
composite("diff(Tensor self, int n=1, Dim dim=-1, Tensor? prepend=None, Tensor? append=None) -> "
          "Tensor", variants=_both,
          ref="numpy.diff", doc="The n-th differences of neighbouring elements.")
for _name, _number in (("trapezoid", "Scalar dx=1"), ("trapz", "float dx=1.0")):
    composite(f"{_name}.x(Tensor y, Tensor x, *, Dim dim=-1) -> Tensor", variants="function",
              doc="The integral along a dimension by the trapezoidal rule, at points x.")
    composite(f"{_name}.dx(Tensor y, *, {_number}, Dim dim=-1) -> Tensor", variants="function",
              doc="The integral along a dimension by the trapezoidal rule, at points dx apart.")
composite("cumulative_trapezoid.x(Tensor y, Tensor x, *, Dim dim=-1) -> Tensor",
          variants="function",
          doc="Running integrals by the trapezoidal rule, at points x.")
composite("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, Dim dim=-1) -> Tensor",
          variants="function",
          doc="Running integrals by the trapezoidal rule, at points dx apart.")
for _overload, _arguments in (
    ("scalarint", "Scalar? spacing=None, Dim? dim=None"),
    ("scalararray", "Scalar spacing, Dim[] dim"),
    ("array", "Dim[] dim"),
    ("scalarrayint", "Scalar[] spacing, Dim? dim=None"),
    ("scalarrayarray", "Scalar[] spacing, Dim[] dim"),
    ("tensorarrayint", "Tensor[] spacing, Dim? dim=None"),
    ("tensorarray", "Tensor[] spacing, Dim[] dim"),
):
    composite(f"gradient.{_overload}(Tensor self, *, {_arguments}, int edge_order=1) -> Tensor[]",
              variants="function",
              doc="Slopes of sampled values along dimensions: central differences inside, "
                  "one-sided at the ends; spacing is a number, one for each dimension, or "
                  "coordinates for each.")
composite("renorm(Tensor self, Scalar p, Dim dim, Scalar maxnorm) -> Tensor", variants=_both,
          doc="Slices along a dimension scaled so that their p-norm is at most maxnorm.",
          autocast={"accelerator": "float32"})
composite("renorm_(Tensor(a!) self, Scalar p, Dim dim, Scalar maxnorm) -> Tensor(a!)",
          variants="method inplace", doc="`renorm` in place.")

for _overload, _arguments in (
    ("Tensor_Tensor", "Tensor elements, Tensor test_elements"),
    ("Tensor_Scalar", "Tensor elements, Scalar test_element"),
    ("Scalar_Tensor", "Scalar element, Tensor test_elements"),
):
    composite(f"isin.{_overload}({_arguments}, *, bool assume_unique=False, bool invert=False) -> "
              f"Tensor",
              variants="function out", grad="none", ref="numpy.isin",
              doc="Whether each element is one of the test elements.")
