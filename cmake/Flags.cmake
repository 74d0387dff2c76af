# Compiler flags that hold for everything built here. The vector kernels add theirs in CMakeLists.txt.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g0")
# -O1: without it kernels are so slow that nobody runs the tests on a debug build.
if(RUSHLIGHT_SANITIZE)
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
else()
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
endif()

# -ffp-contract=off: a fused multiply-add appears only where the source says fma, so bits do not depend on it.
# -fno-semantic-interposition: calls inside the library to its own exported functions stay direct.
add_compile_options(-Wall -Wextra -ffp-contract=off -fno-semantic-interposition)

if(RUSHLIGHT_SANITIZE)
  # RL_ALLOC_PASSTHROUGH: the caching allocator hands every request to malloc, so that each block is watched.
  # vptr checks need the type information of classes that are hidden in another library.
  add_compile_options(-fsanitize=${RUSHLIGHT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(RUSHLIGHT_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=vptr)
  endif()
  if(RUSHLIGHT_SANITIZE MATCHES "thread")
    add_compile_definitions(RL_STD_THREADS=1)
  endif()
  add_link_options(-fsanitize=${RUSHLIGHT_SANITIZE})
  # RL_ONE_ISA: one build of the vector kernels is enough, they take long to compile.
  add_compile_definitions(RL_ALLOC_PASSTHROUGH=1 RL_ONE_ISA=v3)
  set(RL_ISA_LEVELS v3)
else()
  set(RL_ISA_LEVELS v2 v3 v4)
  add_link_options(-Wl,--as-needed)
  string(APPEND CMAKE_SHARED_LINKER_FLAGS " -Wl,--no-undefined")
endif()
