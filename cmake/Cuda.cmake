# librushlight_cuda.so: the CUDA column of the kernel table, a library of its own that librushlight loads when a
# program asks for the device. Built on request only: `./dev build --cuda`, which sets RUSHLIGHT_CUDA=ON and builds
# the target stage_cuda; nothing else depends on it.
#
# RUSHLIGHT_CUDA_ARCH: what code is made for, as CMAKE_CUDA_ARCHITECTURES says it. cuBLASLt's headers come from the
# nvidia-cublas wheel or the toolkit (RUSHLIGHT_CUBLAS: a folder with include/); the library is loaded when the first
# matrices are multiplied. The CUDA runtime is linked statically.

set(RUSHLIGHT_CUDA_ARCH "80-virtual;90-real" CACHE STRING "Architectures that CUDA kernels are compiled for")
set(RUSHLIGHT_CUBLAS AUTO CACHE STRING "Folder with include/cublasLt.h; AUTO: the nvidia-cublas wheel, then the toolkit")

set(CMAKE_CUDA_ARCHITECTURES ${RUSHLIGHT_CUDA_ARCH})
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
set(CMAKE_CUDA_STANDARD 20)
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)
  message(FATAL_ERROR "rushlight needs nvcc 13 or newer, found ${CMAKE_CUDA_COMPILER_VERSION}")
endif()
if(CCACHE)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()
find_package(CUDAToolkit 13 REQUIRED)

set(cublas_rpath "")
if(IS_DIRECTORY "${RUSHLIGHT_CUBLAS}")
  set(cublas_include ${RUSHLIGHT_CUBLAS}/include)
  set(cublas_rpath ${RUSHLIGHT_CUBLAS}/lib)
else()
  rl_wheel_files(cublas_header nvidia-cublas /include/cublasLt.h)
  if(cublas_header)
    cmake_path(GET cublas_header PARENT_PATH cublas_include)
    cmake_path(SET cublas_rpath NORMALIZE ${cublas_include}/../lib)
  else()
    find_path(cublas_include cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS} NO_CACHE)
  endif()
endif()
if(NOT EXISTS "${cublas_include}/cublasLt.h")
  message(FATAL_ERROR "cublasLt.h not found: pip install 'nvidia-cublas>=13,<14'")
endif()
message(STATUS "CUDA: ${CMAKE_CUDA_COMPILER_VERSION}, for ${RUSHLIGHT_CUDA_ARCH}; cuBLASLt's headers from ${cublas_include}")

file(GLOB cuda_sources CONFIGURE_DEPENDS src/cuda/*.cpp src/cuda/*.cu)
file(GLOB generated_cuda_sources ${RL_GENERATED_DIR}/cuda/*.cu)

add_library(rushlight_cuda SHARED EXCLUDE_FROM_ALL ${cuda_sources} ${generated_cuda_sources})
add_dependencies(rushlight_cuda interface_hash)
string(REPLACE ";" " " arch_list "${RUSHLIGHT_CUDA_ARCH}")
set_source_files_properties(src/cuda/api.cpp PROPERTIES COMPILE_DEFINITIONS "RL_CUDA_ARCH=\"${arch_list}\"")
target_link_libraries(rushlight_cuda PRIVATE rl_headers rushlight CUDA::cudart_static)
target_include_directories(rushlight_cuda SYSTEM PRIVATE ${cublas_include} ${CUDAToolkit_INCLUDE_DIRS})
# -fmad=false: multiplications and additions are fused only where the formulas say so, as on the CPU.
# 1835 is about an attribute of thread-local data, 186 about comparisons of unsigned numbers in templates.
target_compile_options(rushlight_cuda PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr;-fmad=false;-diag-suppress=1835,186;-Xcompiler=-Wall,-Wextra,-fno-semantic-interposition;-include;${PROJECT_SOURCE_DIR}/src/cuda/prelude.h>")
set_target_properties(rushlight_cuda PROPERTIES LINKER_LANGUAGE CXX
  CUDA_VISIBILITY_PRESET hidden CUDA_SEPARABLE_COMPILATION OFF CUDA_RUNTIME_LIBRARY Static
  LIBRARY_OUTPUT_DIRECTORY ${RL_LIBRARY_DIR}
  BUILD_RPATH "$ORIGIN;$ORIGIN/../../nvidia/cu13/lib;${cublas_rpath}" SKIP_BUILD_RPATH OFF
  INSTALL_RPATH "$ORIGIN;$ORIGIN/../../nvidia/cu13/lib")

install(TARGETS rushlight_cuda LIBRARY DESTINATION lib COMPONENT cuda EXCLUDE_FROM_ALL)

if(RUSHLIGHT_STAGE)
  add_custom_target(stage_cuda
    COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:rushlight_cuda> ${RUSHLIGHT_STAGE}/lib/
    DEPENDS rushlight_cuda COMMENT "Staging librushlight_cuda.so in ${RUSHLIGHT_STAGE}" VERBATIM)
endif()
