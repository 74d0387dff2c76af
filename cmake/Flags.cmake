# Compiler flags that hold for everything built here. The vector kernels add theirs in CMakeLists.txt.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g0 -DNDEBUG")
if(RUSHLIGHT_SANITIZE)
  set(CMAKE_CXX_FLAGS_DEBUG ${CMAKE_CXX_FLAGS_RELEASE})  # what is not instrumented comes from ccache
else()
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")  # -O0 makes kernels so slow that nobody would run the tests
endif()

# Builds that search for faults look at every index into a list (include/rushlight/array_ref.h, libstdc++).
if(RUSHLIGHT_SANITIZE OR RUSHLIGHT_GUARD OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_definitions(RL_CHECK_BOUNDS=1 _GLIBCXX_ASSERTIONS=1)
endif()

# -ffp-contract=off: a fused multiply-add appears only where the source says fma, so bits do not depend on it.
# -fno-semantic-interposition: calls inside the library to its own exported functions stay direct.
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-ffp-contract=off;-fno-semantic-interposition>")

# rl_instrument(TARGET…): the sanitizers watch these targets, if there are any.
#   RL_ALLOC_PASSTHROUGH: the caching allocator hands every request to malloc, so that ASan watches each block;
#   TSan watches the allocator itself.
#   vptr checks need the type information of classes that are hidden in another library.
# rl_instrument_generated(TARGET…): the same for generated code, which is straight and takes long to compile: only
# TSan needs it, for it must see whatever threads use to wait for each other.
function(rl_instrument)
  if(NOT RUSHLIGHT_SANITIZE)
    return()
  endif()
  set(options -O1 -g1 -fsanitize=${RUSHLIGHT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  set(definitions "")
  if(RUSHLIGHT_SANITIZE MATCHES "address")
    list(APPEND definitions RL_ALLOC_PASSTHROUGH=1)
  endif()
  if(RUSHLIGHT_SANITIZE MATCHES "undefined")
    list(APPEND options -fno-sanitize=vptr)
  endif()
  foreach(target ${ARGV})
    target_compile_options(${target} PRIVATE ${options})
    target_compile_definitions(${target} PRIVATE ${definitions})
  endforeach()
endfunction()

function(rl_instrument_generated)
  if(RUSHLIGHT_SANITIZE MATCHES "thread")
    rl_instrument(${ARGV})
  endif()
endfunction()

# The instruction sets to build kernels for: a build with one compiles a third to a half less than one with all.
set(RUSHLIGHT_ISA all CACHE STRING "all (what a wheel needs), native (this processor's best alone), v2, v3 or v4; neon on aarch64")
set(RL_MARCH_v2 x86-64-v2)
set(RL_MARCH_v3 x86-64-v3)
set(RL_MARCH_v4 x86-64-v4)
set(RL_MARCH_neon armv8.2-a+fp16+dotprod)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(RL_ISA_LEVELS neon)
elseif(RUSHLIGHT_ISA STREQUAL "all")
  set(RL_ISA_LEVELS v2 v3 v4)
elseif(RUSHLIGHT_ISA STREQUAL "native")
  try_run(RL_NATIVE_ISA native_isa_compiled ${CMAKE_BINARY_DIR} ${PROJECT_SOURCE_DIR}/cmake/native_isa.cpp)
  set(RL_ISA_LEVELS v${RL_NATIVE_ISA})
else()
  set(RL_ISA_LEVELS ${RUSHLIGHT_ISA})
endif()
list(LENGTH RL_ISA_LEVELS isa_count)
if(isa_count EQUAL 1)
  set(RL_ONE_ISA RL_ONE_ISA=${RL_ISA_LEVELS})
endif()

set(RL_VECTOR_HEADER <immintrin.h>)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(RL_VECTOR_HEADER <arm_neon.h>)
  add_compile_options(-fsigned-char)  # as on x86-64
endif()

# rl_precompile(TARGET): the parts of the standard library that most sources include are read once.
#
# The project's own headers are not among them: a change of one compiles what includes it, and no more.
set(RUSHLIGHT_PRECOMPILE ON CACHE BOOL "Read the standard library's headers once for each target")
function(rl_precompile target)
  if(RUSHLIGHT_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <atomic> <cmath> <complex> <cstdint> <cstring> <functional> <limits> <map> <memory> <mutex>
      <optional> <set> <string> <string_view> <tuple> <unordered_map> <unordered_set> <utility> <vector> ${ARGN})
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # for ccache
  endif()
endfunction()

if(RUSHLIGHT_SANITIZE)
  add_link_options(-fsanitize=${RUSHLIGHT_SANITIZE})
else()
  add_link_options(-Wl,--as-needed)
  string(APPEND CMAKE_SHARED_LINKER_FLAGS " -Wl,--no-undefined")
endif()
