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
  install(PROGRAMS ${copy} DESTINATION ${RL_LIBDIR} COMPONENT cpp)
  set(${result} ${copy} PARENT_SCOPE)
endfunction()

# The same for a library of the system and those that it needs, with the licences that Debian keeps of them; not for those of
# the compiler and of C, which every system has. Where a licence is not at hand nothing travels.
function(rl_vendor_with_needed library)
  execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${library} OUTPUT_VARIABLE header COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE ".*SONAME +([^ \n]+).*" "\\1" soname "${header}")
  cmake_path(GET library PARENT_PATH folder)
  set(paths ${folder}/${soname})
  execute_process(COMMAND ldd ${library} OUTPUT_VARIABLE needed COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "=> /[^ ]+" needed "${needed}")
  list(TRANSFORM needed REPLACE "^=> " "")
  list(FILTER needed EXCLUDE REGEX "/lib(c|m|dl|rt|pthread|gcc_s|stdc[+][+])[.]so")
  list(APPEND paths ${needed})
  set(licenses "")
  foreach(path ${paths})
    cmake_path(GET path FILENAME name)
    string(REGEX REPLACE "[.]so.*" "" stem ${name})
    file(GLOB found /usr/share/doc/${stem}[0-9.-]*/copyright)
    if(NOT found)
      message(STATUS "${name}: no licence in /usr/share/doc, so ${soname} does not travel")
      return()
    endif()
    list(GET found 0 license)
    list(APPEND licenses ${license})
  endforeach()
  foreach(path license IN ZIP_LISTS paths licenses)
    cmake_path(GET path FILENAME name)
    string(REGEX REPLACE "[.]so.*" ".txt" text ${name})
    rl_vendor(${path} copy)
    rl_license(${license} ${text})
  endforeach()
endfunction()

# Installs the licence of something that our binaries contain.
function(rl_license source name)
  install(FILES ${source} DESTINATION licenses RENAME ${name} COMPONENT cpp)
endfunction()
