# librushlight_distributed_gloo.so: the engine "gloo" of `distributed`, a plug-in that librushlight loads when a process
# group asks for it. Built where Gloo is installed (Debian, Ubuntu: libgloo-dev, which `./dev setup` brings); a package
# without it says what to install.

set(RUSHLIGHT_GLOO AUTO CACHE STRING "The engine gloo of distributed: AUTO (where Gloo is found), ON or OFF")

if(RUSHLIGHT_GLOO)
  find_path(RL_GLOO_INCLUDE gloo/rendezvous/context.h)
  # An archive, where there is one, goes into the plug-in.
  find_library(RL_GLOO_LIBRARY NAMES libgloo.a gloo)
  if(RL_GLOO_INCLUDE AND RL_GLOO_LIBRARY)
    message(STATUS "Gloo: ${RL_GLOO_LIBRARY}")
    file(GLOB gloo_sources CONFIGURE_DEPENDS src/distributed/gloo/*.cpp)
    add_library(rushlight_distributed_gloo SHARED ${gloo_sources})
    add_dependencies(rushlight_distributed_gloo interface_hash)
    target_include_directories(rushlight_distributed_gloo SYSTEM PRIVATE ${RL_GLOO_INCLUDE})
    target_link_libraries(rushlight_distributed_gloo PRIVATE rl_headers rushlight ${RL_GLOO_LIBRARY})
    set_target_properties(rushlight_distributed_gloo PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${RL_LIBRARY_DIR} BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
    install(TARGETS rushlight_distributed_gloo LIBRARY DESTINATION lib COMPONENT native)
  elseif(RUSHLIGHT_GLOO STREQUAL "ON")
    message(FATAL_ERROR "Gloo is missing (Debian, Ubuntu: apt install libgloo-dev)")
  else()
    message(STATUS "Gloo: none, so `distributed` has no engine (Debian, Ubuntu: apt install libgloo-dev)")
  endif()
endif()
