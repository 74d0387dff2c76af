# Finds OpenBLAS (BLAS, LAPACK, LAPACKE) and makes the target rl_blas of it; no target where it is switched
# off or absent. What uses it sees RL_HAVE_OPENBLAS, RL_BLAS_LIBRARY, the file to load, and RL_BLAS_PREFIX, which
# stands before every symbol's name (scipy_dgesdd_ in the wheel, dgesdd_ in a system's library).
#
# RUSHLIGHT_BLAS = AUTO | ON | OFF | a folder with lib/. Order: that folder, the wheel in the
# environment, the system's library.

set(RUSHLIGHT_BLAS AUTO CACHE STRING "OpenBLAS: AUTO, ON, OFF or a folder that holds lib/")

function(rl_find_blas)
  if(RUSHLIGHT_BLAS STREQUAL "OFF")
    return()
  endif()
  set(prefix "")
  unset(library)  # find_library searches for what is not set
  if(IS_DIRECTORY "${RUSHLIGHT_BLAS}")
    find_library(library NAMES openblas scipy_openblas PATHS ${RUSHLIGHT_BLAS} PATH_SUFFIXES lib lib64 NO_DEFAULT_PATH
      NO_CMAKE_FIND_ROOT_PATH NO_CACHE REQUIRED)
    set(source ${RUSHLIGHT_BLAS})
    # The wheel's, unpacked: it travels as it does where the wheel is installed.
    if(library MATCHES "scipy_openblas")
      file(REAL_PATH ${RUSHLIGHT_BLAS}/.. packages)
      file(GLOB license ${packages}/scipy_openblas32-*.dist-info/licenses/LICENSE.txt)
      rl_vendor(${library} library)
      rl_license(${license} OpenBLAS.txt)
      set(prefix scipy_)
    endif()
  else()
    rl_wheel_files(found scipy-openblas32 /lib/libscipy_openblas.so LICENSE.txt)
    if(found)
      list(GET found 0 wheel_library)
      list(GET found 1 license)
      rl_vendor(${wheel_library} library)
      rl_license(${license} OpenBLAS.txt)
      set(prefix scipy_)
      set(source "the scipy-openblas32 wheel")
    else()
      find_library(library NAMES openblas NO_CACHE)
      set(source "the system's")
    endif()
  endif()
  if(NOT library)
    if(RUSHLIGHT_BLAS STREQUAL "ON")
      message(FATAL_ERROR "OpenBLAS not found: pip install scipy-openblas32==0.3.34.481.3")
    endif()
    message(STATUS "OpenBLAS: not found, the built-in kernels do its work")
    return()
  endif()
  # It is loaded by the name that it calls itself, found as librushlight.so's own libraries are.
  execute_process(COMMAND ${CMAKE_READELF} -d ${library} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "soname: \\[([^]]+)\\]" found "${dynamic}")
  set(name ${CMAKE_MATCH_1})
  if(IS_DIRECTORY "${RUSHLIGHT_BLAS}" AND NOT prefix)
    set(name ${library})
  endif()
  add_library(rl_blas INTERFACE)
  target_link_libraries(rl_blas INTERFACE ${CMAKE_DL_LIBS})
  target_compile_definitions(rl_blas INTERFACE RL_HAVE_OPENBLAS=1 RL_BLAS_PREFIX=${prefix} RL_BLAS_LIBRARY="${name}")
  message(STATUS "OpenBLAS: ${source}")
endfunction()

rl_find_blas()
