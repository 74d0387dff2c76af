"""The CMake package: another project finds rushlight, compiles against its headers and runs."""

import shutil
import subprocess

import pytest

import rushlight

CMAKELISTS = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
find_package(rushlight REQUIRED)
add_executable(consumer consumer.cpp)
target_link_libraries(consumer PRIVATE rushlight::rushlight)
"""

CONSUMER = """
#include <cstdio>

#include <rushlight/tensor.h>
#include <rushlight/version.h>

int main() {
  std::printf("%s %s", rushlight::version(), RUSHLIGHT_VERSION);
}
"""


@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs cmake")
def test_another_project_finds_the_package(tmp_path):
    (tmp_path / "CMakeLists.txt").write_text(CMAKELISTS)
    (tmp_path / "consumer.cpp").write_text(CONSUMER)
    build = tmp_path / "build"
    prefix = f"-DCMAKE_PREFIX_PATH={rushlight.utils.cmake_prefix_path}"
    subprocess.run(["cmake", "-S", tmp_path, "-B", build, prefix], check=True)
    subprocess.run(["cmake", "--build", build], check=True)
    run = subprocess.run([build / "consumer"], check=True, capture_output=True, text=True)
    assert run.stdout == f"{rushlight.__version__} {rushlight.__version__}"
