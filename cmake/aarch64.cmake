# Cross compiles for aarch64 on a Debian or Ubuntu of x86-64 (g++-aarch64-linux-gnu, qemu-user), and runs what it
# built under qemu. cmake/aarch64_sysroot.sh fills the folder RUSHLIGHT_SYSROOT with an arm64 Python to build the
# extension for, and what the tests need.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

get_filename_component(project ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(RUSHLIGHT_SYSROOT ${project}/build/aarch64-sysroot CACHE PATH "An arm64 Python and libraries, from cmake/aarch64_sysroot.sh")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${RUSHLIGHT_SYSROOT})

set(CMAKE_FIND_ROOT_PATH ${RUSHLIGHT_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)

# The Python that runs here generates code; that of the sysroot gives headers and the name of the extension.
set(Python_INCLUDE_DIR ${RUSHLIGHT_SYSROOT}/usr/include/python3.11)
set(RUSHLIGHT_EXTENSION_SUFFIX .cpython-311-aarch64-linux-gnu.so)
set(RUSHLIGHT_BLAS ${RUSHLIGHT_SYSROOT}/usr/lib/python3/dist-packages/scipy_openblas32 CACHE STRING "")
