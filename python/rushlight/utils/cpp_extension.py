"""Extensions in C++, which are compiled at run time or by setuptools.

Functions that `load_inline` is given are bound by `<torch/extension.h>` itself, with Python's C
API; sources with a `PYBIND11_MODULE` of their own need the package pybind11.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rushlight.torch_version import TorchVersion

__all__ = [
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "SyclExtension",
    "check_compiler_is_gcc",
    "check_compiler_ok_for_platform",
    "get_compiler_abi_compatibility_and_version",
    "get_cxx_compiler",
    "get_default_build_root",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
    "verify_ninja_availability",
]

if TYPE_CHECKING:
    BuildExtension: Any  # made when it is asked for

_PACKAGE = Path(__file__).resolve().parent.parent
_STABLE = _PACKAGE / "lib" / "stable"  # PyTorch's libraries by name, which hold nothing
_STANDARD = "-std=c++17"


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """The folders of headers: rushlight's, and pybind11's if it is installed.

    Args:
        device_type: "cpu".
        torch_include_dirs: whether rushlight's own are among them.

    Example:
        >>> import os
        >>> os.path.exists(os.path.join(torch.utils.cpp_extension.include_paths()[0], "rushlight"))
        True
    """
    paths = [str(_PACKAGE / "include")] if torch_include_dirs else []
    if importlib.util.find_spec("pybind11") is not None:
        paths.append(importlib.import_module("pybind11").get_include())
    return paths


def library_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """The folders of libraries.

    Args:
        device_type: "cpu".
        torch_include_dirs: whether rushlight's own is among them.

    Example:
        >>> len(torch.utils.cpp_extension.library_paths()) > 0
        True
    """
    return [str(_PACKAGE / "lib")] if torch_include_dirs else []


def get_default_build_root() -> str:
    """The folder in which extensions are built, if none is given.

    Example:
        >>> torch.utils.cpp_extension.get_default_build_root().endswith("torch_extensions")
        True
    """
    cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    return os.path.join(cache, "torch_extensions")


# ---- what build scripts ask: of the machine and its compilers ----

IS_WINDOWS, IS_MACOS, IS_LINUX = False, False, True
CLIB_PREFIX, CLIB_EXT, LIB_EXT, EXEC_EXT = "lib", ".so", ".so", ""
SHARED_FLAG = "-shared"
SUBPROCESS_DECODE_ARGS = ()
MINIMUM_GCC_VERSION = (12, 0, 0)
TORCH_LIB_PATH = str(_PACKAGE / "lib")

# Nothing is built for GPUs yet, so scripts should leave these parts out.
CUDA_HOME: str | None = None
CUDNN_HOME: str | None = None
ROCM_HOME: str | None = None
HIP_HOME: str | None = None
SYCL_HOME: str | None = None
ROCM_VERSION: tuple[int, int] | None = None
IS_HIP_EXTENSION = False
COMMON_NVCC_FLAGS = [
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
]


def get_cxx_compiler() -> str:
    """The path of the C++ compiler: CXX, or the first of c++, g++ and clang++ that exists.

    Raises:
        RuntimeError: if there is none.

    For an example see `utils.cpp_extension.load_inline`.
    """
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    raise RuntimeError("no C++ compiler: set CXX, or install g++")


def _compiler_output(compiler: str, flag: str) -> str:
    """What a compiler answers; nothing if it does not run."""
    try:
        done = subprocess.run([compiler, flag], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def check_compiler_is_gcc(compiler: str) -> bool:
    """Whether a compiler is GCC and not clang, which defines __GNUC__ as well.

    Args:
        compiler: its path or name.

    Example:
        >>> torch.utils.cpp_extension.check_compiler_is_gcc("no-compiler")
        False
    """
    about = _compiler_output(compiler, "--version")
    return "Free Software Foundation" in about and bool(_compiler_output(compiler, "-dumpversion"))


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether a compiler is GCC or clang.

    Args:
        compiler: its path or name.

    Example:
        >>> torch.utils.cpp_extension.check_compiler_ok_for_platform("no-compiler")
        False
    """
    return check_compiler_is_gcc(compiler) or "clang" in _compiler_output(compiler, "--version")


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, TorchVersion]:
    """Whether a compiler's ABI fits the library, and its version; "0.0.0" if unknown.

    Args:
        compiler: its path or name.

    Example:
        >>> torch.utils.cpp_extension.get_compiler_abi_compatibility_and_version("no-compiler")
        (False, '0.0.0')
    """
    version = TorchVersion(
        _compiler_output(compiler, "-dumpfullversion") or _compiler_output(compiler, "-dumpversion")
    )
    if not version:
        return False, TorchVersion("0.0.0")
    if check_compiler_is_gcc(compiler):
        return version >= MINIMUM_GCC_VERSION, version
    return check_compiler_ok_for_platform(compiler), version


def is_ninja_available() -> bool:
    """Whether ninja can be run; extensions are built without it.

    Example:
        >>> torch.utils.cpp_extension.is_ninja_available() in (True, False)
        True
    """
    return bool(_compiler_output("ninja", "--version"))


def verify_ninja_availability() -> None:
    """Raise RuntimeError if ninja cannot be run.

    For an example see `utils.cpp_extension.is_ninja_available`.
    """
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions: pip install ninja")


def _is_cuda_file(path: str) -> bool:
    """Whether a source is CUDA's, by its name."""
    return os.path.splitext(path)[1] in (".cu", ".cuh")


def _find_cuda_home() -> str | None:
    return CUDA_HOME


def _join_cuda_home(*paths: str) -> str:
    """A path below CUDA_HOME; OSError, which says that nothing is built for GPUs."""
    raise OSError(
        f"CUDA_HOME is not set, so there is no {os.path.join(*paths)}: extensions with CUDA "
        "sources cannot be built yet"
    )


# ---- building ----


def _refuse_cuda(*parts):
    if any(parts):
        raise NotImplementedError("extensions with CUDA sources cannot be built yet")


def _build_folder(name, build_directory):
    root = os.environ.get("TORCH_EXTENSIONS_DIR") or get_default_build_root()
    folder = Path(
        build_directory or Path(root) / f"py{sys.version_info.major}{sys.version_info.minor}" / name
    )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _command(name, sources, library, cflags, ldflags, includes):
    python = sysconfig.get_path("include")
    lib = _PACKAGE / "lib"
    return [
        get_cxx_compiler(),
        _STANDARD,
        "-O2",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        f"-DTORCH_EXTENSION_NAME={name}",
        *(f"-I{path}" for path in [*includes, *include_paths(), python]),
        *cflags,
        *map(str, sources),
        "-o",
        str(library),
        f"-L{lib}",
        "-lrushlight",
        f"-Wl,-rpath,{lib}",
        *ldflags,
    ]


def _run(command, folder, verbose):
    if verbose:
        print(shlex.join(command), file=sys.stderr)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"Error building extension:\n{shlex.join(command)}\n{done.stderr}")
    if verbose and done.stderr:
        print(done.stderr, file=sys.stderr)


def _import(name, library):
    loader = importlib.machinery.ExtensionFileLoader(name, str(library))
    spec = importlib.util.spec_from_file_location(name, library, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def load(
    name: str,
    sources: str | list[str],
    extra_cflags: list[str] | None = None,
    extra_cuda_cflags: list[str] | None = None,
    extra_sycl_cflags: list[str] | None = None,
    extra_ldflags: list[str] | None = None,
    extra_include_paths: list[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> Any:
    """Compile C++ files, unless they are compiled already, and import the resulting module.

    Without `is_python_module` the library is loaded into the process, and its path returned.

    Args:
        name: the module's name.
        sources: paths of C++ files.
        extra_cflags: flags of the compiler.
        extra_cuda_cflags, extra_sycl_cflags: means nothing here.
        extra_ldflags: flags of the linker.
        extra_include_paths: further folders of headers.
        build_directory: where it is built; by default a folder of that name in
            `get_default_build_root()`.
        verbose: print the commands.
        with_cuda, with_sycl: True raises.
        is_python_module: whether the result is a module of Python.
        is_standalone: True raises.
        keep_intermediates: means nothing here.

    Raises:
        RuntimeError: the compiler refuses a file; its messages are in the text.

    For an example see `utils.cpp_extension.load_inline`.
    """
    sources = [sources] if isinstance(sources, str) else [os.fspath(s) for s in sources]
    _refuse_cuda(with_cuda, with_sycl, *(s.endswith((".cu", ".cuh", ".sycl")) for s in sources))
    if is_standalone:
        raise NotImplementedError("is_standalone: programs are built with CMake (docs/guide.md)")
    folder = _build_folder(name, build_directory)
    files = [Path(s).resolve() for s in sources]
    library = folder / f"{name}.so"
    settings = (extra_cflags or [], extra_ldflags or [], extra_include_paths or [])
    command = _command(name, files, library, *settings)
    content = hashlib.sha256("\0".join(command).encode())
    for file in [*files, _PACKAGE / "lib" / "librushlight.so"]:
        content.update(
            file.read_bytes() if file in files else str(file.stat().st_mtime_ns).encode()
        )
    stamp = folder / f"{name}.stamp"
    fresh = library.exists() and stamp.exists() and stamp.read_text() == content.hexdigest()
    if not fresh:
        # A library that is in use keeps its file; the new one gets a name of its own first.
        temporary = folder / f"{name}.{os.getpid()}.so"
        _run(_command(name, files, temporary, *settings), folder, verbose)
        temporary.replace(library)
        stamp.write_text(content.hexdigest())
    if is_python_module:
        return _import(name, library)
    from rushlight._ops import ops

    ops.load_library(library)
    return str(library)


def load_inline(
    name: str,
    cpp_sources: str | list[str],
    cuda_sources: str | list[str] | None = None,
    sycl_sources: str | list[str] | None = None,
    functions: str | list[str] | dict[str, str] | None = None,
    extra_cflags: list[str] | None = None,
    extra_cuda_cflags: list[str] | None = None,
    extra_sycl_cflags: list[str] | None = None,
    extra_ldflags: list[str] | None = None,
    extra_include_paths: list[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> Any:
    """`load` for source text; `functions` lists the functions of the module.

    `functions` may map names to docstrings. Parameters and results may be tensors, numbers, bools,
    strings, dtypes, vectors and optionals of these, results tuples as well.

    It has the arguments of `load`, and these.

    Args:
        cpp_sources: the text of a C++ file, or of several.
        cuda_sources, sycl_sources: anything but None raises.
        functions: names of functions, which become those of the module; or a dict from them to
            docstrings.
        with_pytorch_error_handling: means nothing here.
        use_pch: means nothing here.
        no_implicit_headers: whether `torch/extension.h` is not included before the text.

    Example:
        >>> from rushlight.utils import cpp_extension
        >>> source = "torch::Tensor twice(torch::Tensor x) { return x + x; }"
        >>> module = cpp_extension.load_inline(  # doctest: +SKIP
        ...     "twice_example", source, functions="twice"
        ... )
        >>> module.twice(torch.ones(2))  # doctest: +SKIP
        tensor([2., 2.])
    """
    _refuse_cuda(with_cuda, with_sycl, cuda_sources, sycl_sources)
    parts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    if not no_implicit_headers:
        parts.insert(0, "#include <torch/extension.h>")
    if functions is not None:
        named = [functions] if isinstance(functions, str) else list(functions)
        docs = functions if isinstance(functions, dict) else {}
        rows = [f"  RL_METHOD({_quote(f)}, {f}, {_quote(docs.get(f, ''))}),\n" for f in named]
        parts.append(_MODULE.format(name=name, rows="".join(rows)))
    folder = _build_folder(name, build_directory)
    source = folder / "main.cpp"
    if not any(word in part for part in parts for word in ("py::", "pybind11", "PYBIND11")):
        parts.insert(0, "#define RL_NO_PYBIND11")  # whose headers take seconds
    text = "\n".join([*parts, ""])
    if not source.exists() or source.read_text() != text:
        source.write_text(text)
    return load(
        name,
        [str(source)],
        extra_cflags=extra_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        build_directory=str(folder),
        verbose=verbose,
        is_python_module=is_python_module,
    )


_MODULE = """
static PyMethodDef rl_methods[] = {{
{rows}  {{nullptr, nullptr, 0, nullptr}}}};
static PyModuleDef rl_module = {{
    PyModuleDef_HEAD_INIT, "{name}", nullptr, -1, rl_methods, nullptr, nullptr, nullptr, nullptr}};
PyMODINIT_FUNC PyInit_{name}() {{ return PyModule_Create(&rl_module); }}
"""


def _quote(text: str) -> str:
    """As a string of C++."""
    escaped = "".join(
        c if c.isascii() and c.isprintable() and c not in '"\\' else f"\\{ord(c):03o}" for c in text
    )
    return f'"{escaped}"'


# ---- setuptools ----


def CppExtension(name: str, sources: list[str], *args: Any, **kwargs: Any) -> Any:
    """A `setuptools.Extension` with rushlight's folders, library and C++ standard.

    One of the stable ABI (a flag `-DTORCH_TARGET_VERSION=…` or `-DTORCH_STABLE_ONLY`, or
    `py_limited_api=True`) needs PyTorch's libraries by name, and so loads in PyTorch as well.

    Args:
        name: the module's name.
        sources: paths of C++ files.
        args, kwargs: those of `setuptools.Extension`, such as `extra_compile_args`.

    Example:
        >>> from rushlight.utils.cpp_extension import CppExtension
        >>> extension = CppExtension("fast", ["kernels.cpp"], extra_compile_args=["-O3"])
        >>> extension.name, extension.language
        ('fast', 'c++')
    """
    import setuptools

    paths, libraries, link = library_paths(), ["rushlight"], []
    if kwargs.get("py_limited_api") or _is_stable(kwargs):
        paths, libraries = [str(_STABLE)], []
        link = ["-Wl,--no-as-needed", "-lc10", "-ltorch", "-ltorch_cpu"]  # they have no symbols
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", []), *include_paths()]
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", []), *paths]
    kwargs["libraries"] = [*kwargs.get("libraries", []), *libraries]
    kwargs["runtime_library_dirs"] = [*kwargs.get("runtime_library_dirs", []), *paths]
    kwargs["extra_link_args"] = [*link, *(kwargs.get("extra_link_args") or [])]
    kwargs["language"] = "c++"
    return setuptools.Extension(name, sources, *args, **kwargs)


def _is_stable(settings: dict[str, Any]) -> bool:
    """Whether macros or flags of an extension say that it keeps to the stable ABI."""
    flags = settings.get("extra_compile_args") or []
    listed = flags.get("cxx", []) if isinstance(flags, dict) else flags
    named = [f"-D{name}" for name, _ in settings.get("define_macros") or []]
    names = {flag.partition("=")[0] for flag in [*listed, *named]}
    return not names.isdisjoint({"-DTORCH_TARGET_VERSION", "-DTORCH_STABLE_ONLY"})


def CUDAExtension(name: str, sources: list[str], *args: Any, **kwargs: Any) -> NoReturn:
    """Raises: CUDA sources cannot be built yet.

    It has the arguments of `CppExtension`.

    For an example see `utils.cpp_extension.CppExtension`.
    """
    raise NotImplementedError("extensions with CUDA sources cannot be built yet")


def SyclExtension(name: str, sources: list[str], *args: Any, **kwargs: Any) -> NoReturn:
    """Raises: SYCL sources cannot be built.

    It has the arguments of `CppExtension`.

    For an example see `utils.cpp_extension.CppExtension`.
    """
    raise NotImplementedError("extensions with SYCL sources cannot be built")


def _build_extension_class():
    from setuptools.command.build_ext import build_ext

    class BuildExtension(build_ext):
        """`build_ext` that says the C++ standard and the extension's name; for `cmdclass`.

        Args:
            dist: the distribution, which setuptools gives.
            kw: options of `build_ext`.

        For an example see `utils.cpp_extension.CppExtension`.
        """

        @classmethod
        def with_options(cls, **options):
            """The same class: its options (`use_ninja`, `no_python_abi_suffix`) change nothing."""
            return cls

        def build_extension(self, ext):
            given = ext.extra_compile_args
            flags = given.get("cxx", []) if isinstance(given, dict) else list(given or [])
            if not any(flag.startswith("-std=") for flag in flags):
                flags.append(_STANDARD)
            flags.append(f"-DTORCH_EXTENSION_NAME={ext.name.rpartition('.')[2]}")
            # The stable ABI stands alone, and pybind11 needs more than Python's limited API.
            if not (ext.py_limited_api or _is_stable(vars(ext))):
                flags.append("-DTORCH_API_INCLUDE_EXTENSION_H")
            ext.extra_compile_args = flags
            super().build_extension(ext)

    return BuildExtension


def __getattr__(name: str) -> Any:
    # setuptools is loaded when somebody builds.
    if name == "BuildExtension":
        globals()[name] = _build_extension_class()
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
