# Compiler flags that hold for everything built here. The vector kernels add theirs in CMakeLists.txt.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g0")
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
#   RL_ONE_ISA: one build of the vector kernels is enough, they take long to compile.
#   vptr checks need the type information of classes that are hidden in another library.
# rl_instrument_generated(TARGET…): the same for generated code, which is straight and takes long to compile: only
# TSan needs it, for it must see whatever threads use to wait for each other.
function(rl_instrument)
  if(NOT RUSHLIGHT_SANITIZE)
    return()
  endif()
  set(options -O1 -g1 -fsanitize=${RUSHLIGHT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  set(definitions RL_ONE_ISA=v3)
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

set(RUSHLIGHT_ISA "" CACHE STRING "The one level to build kernels for (v2, v3, v4); empty: all. Saves a third of a build")
if(RUSHLIGHT_ISA)
  set(RL_ISA_LEVELS ${RUSHLIGHT_ISA})
elseif(RUSHLIGHT_SANITIZE)
  set(RL_ISA_LEVELS v3)
else()
  set(RL_ISA_LEVELS v2 v3 v4)
endif()
if(RUSHLIGHT_SANITIZE)
  add_link_options(-fsanitize=${RUSHLIGHT_SANITIZE})
else()
  add_link_options(-Wl,--as-needed)
  string(APPEND CMAKE_SHARED_LINKER_FLAGS " -Wl,--no-undefined")
endif()
