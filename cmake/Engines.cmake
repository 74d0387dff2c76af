# librushlight_distributed_NAME.so: the engines of `distributed`, plug-ins that librushlight loads when a process group
# asks for one. "mpi" and "nccl" find their libraries at run time, so that they are always built. "gloo" is built where Gloo is installed
# (Debian, Ubuntu: libgloo-dev, which `./dev` installs where it may); a package without it says what to install. An archive of Gloo goes into
# the plug-in; a shared library travels beside it, with the libraries that it needs, so that a wheel asks for nothing.

function(rl_add_engine name)
  set(target rushlight_distributed_${name})
  file(GLOB sources CONFIGURE_DEPENDS src/distributed/${name}/*.cpp)
  add_library(${target} SHARED ${sources})
  add_dependencies(${target} interface_hash)
  target_link_libraries(${target} PRIVATE rl_headers rushlight ${ARGN})
  set_target_properties(${target} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${RL_LIBRARY_DIR} BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
  install(TARGETS ${target} LIBRARY DESTINATION lib COMPONENT native)
endfunction()

rl_add_engine(mpi ${CMAKE_DL_LIBS})
rl_add_engine(nccl ${CMAKE_DL_LIBS})

set(RUSHLIGHT_GLOO AUTO CACHE STRING "The engine gloo of distributed: AUTO (where Gloo is found), ON or OFF")
if(RUSHLIGHT_GLOO)
  find_path(RL_GLOO_INCLUDE gloo/rendezvous/context.h)
  find_library(RL_GLOO_LIBRARY NAMES libgloo.a gloo)
  if(RL_GLOO_INCLUDE AND RL_GLOO_LIBRARY)
    message(STATUS "Gloo: ${RL_GLOO_LIBRARY}")
    rl_add_engine(gloo ${RL_GLOO_LIBRARY})
    target_include_directories(rushlight_distributed_gloo SYSTEM PRIVATE ${RL_GLOO_INCLUDE})
    if(RL_GLOO_LIBRARY MATCHES "[.]so$")
      rl_vendor_with_needed(${RL_GLOO_LIBRARY})
      # The plug-in's RPATH counts for what its libraries need, too; a RUNPATH would not.
      target_link_options(rushlight_distributed_gloo PRIVATE -Wl,--disable-new-dtags)
    endif()
  elseif(RUSHLIGHT_GLOO STREQUAL "ON")
    message(FATAL_ERROR "Gloo is missing (Debian, Ubuntu: apt install libgloo-dev)")
  else()
    message(STATUS "Gloo: none, so `distributed` has no engine gloo (Debian, Ubuntu: apt install libgloo-dev)")
  endif()
endif()
