# Helpers for libraries that come out of Python wheels and travel inside ours.

# Sets `result` to the paths of files of an installed Python distribution, or to nothing (wheel_files.py).
function(rl_wheel_files result distribution)
  execute_process(
    COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/wheel_files.py ${distribution} ${ARGN}
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    set(${result} "" PARENT_SCOPE)
  else()
    string(REPLACE "\n" ";" found "${found}")
    set(${result} "${found}" PARENT_SCOPE)
  endif()
endfunction()

# Copies a shared library, stripped, into the build's library folder, where ours lies too, and has it
# installed beside ours. The file's name must be its SONAME: wheels hold no symbolic links.
function(rl_vendor source result)
  cmake_path(GET source FILENAME name)
  set(copy ${RL_LIBRARY_DIR}/${name})
  if(${source} IS_NEWER_THAN ${copy})
    file(MAKE_DIRECTORY ${RL_LIBRARY_DIR})
    execute_process(COMMAND ${CMAKE_STRIP} -o ${copy} ${source} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  install(PROGRAMS ${copy} DESTINATION lib COMPONENT cpp)
  set(${result} ${copy} PARENT_SCOPE)
endfunction()

# Installs the licence of something that our binaries contain.
function(rl_license source name)
  install(FILES ${source} DESTINATION licenses RENAME ${name} COMPONENT cpp)
endfunction()
