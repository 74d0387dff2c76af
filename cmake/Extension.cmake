# The Python extension rushlight._C: src/python and the generated bindings, on nanobind and the C API. It is small beside
# librushlight, which it shares with those for other Pythons (RUSHLIGHT_PYTHONS): a Python loads the file that has its
# suffix, so that one wheel serves them all. The bindings fill types of the C API that its stable part hides; there is
# no one file for many Pythons.

set(RUSHLIGHT_PYTHONS "" CACHE STRING "Interpreters of other Pythons to build the extension for")

if(NOT Python_Development.Module_FOUND)
  message(FATAL_ERROR "Python's headers are missing (Debian, Ubuntu: apt install python3-dev)")
endif()
execute_process(
  COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "nanobind is missing: pip install 'nanobind>=2.15,<3'")
endif()
find_package(nanobind CONFIG REQUIRED)

file(GLOB python_sources CONFIGURE_DEPENDS src/python/*.cpp)
include(cmake/Jpeg.cmake)

# rl_add_extension(TARGET HEADERS SUFFIX): `_C` for a Python of which these are the folder of headers and what its
# extensions' names end with.
function(rl_add_extension target headers suffix)
  set(nanobind nanobind-static-${target})
  set(Python_INCLUDE_DIRS ${headers})
  nanobind_build_library(${nanobind})
  nanobind_disable_stack_protector(${nanobind})
  target_compile_options(${nanobind} PRIVATE -w)  # not ours to warn about

  add_library(${target} MODULE ${python_sources} ${generated_python_sources})
  target_link_libraries(${target} PRIVATE ${nanobind} rl_headers rushlight)
  target_compile_definitions(${target} PRIVATE NB_DOMAIN=rushlight PY_SSIZE_T_CLEAN)
  nanobind_disable_stack_protector(${target})
  nanobind_strip(${target})
  rl_instrument(${target})
  rl_precompile(${target} <Python.h>)
  # Types name the slots that they fill and leave out the others on purpose.
  target_compile_options(${target} PRIVATE -Wno-missing-field-initializers)
  # src/python/ending.cpp: what happens to threads that Python ends.
  target_link_options(${target} PRIVATE -Wl,--wrap=__gxx_personality_v0)
  set_target_properties(${target} PROPERTIES
    OUTPUT_NAME _C PREFIX "" SUFFIX ${suffix} LINKER_LANGUAGE CXX BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/lib")
  rl_link_jpeg(${target})
  install(TARGETS ${target} LIBRARY DESTINATION . COMPONENT native)
endfunction()

set(suffix ${NB_SUFFIX})
if(RUSHLIGHT_EXTENSION_SUFFIX)  # that of another machine's Python (cmake/aarch64.cmake)
  set(suffix ${RUSHLIGHT_EXTENSION_SUFFIX})
endif()
rl_add_extension(_C "${Python_INCLUDE_DIRS}" ${suffix})
set(RL_EXTENSIONS _C)
foreach(python ${RUSHLIGHT_PYTHONS})
  execute_process(
    COMMAND ${python} -c "import sysconfig as s; print(s.get_path('include'), s.get_config_var('EXT_SUFFIX'), sep=';')"
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  list(GET found 0 headers)
  list(GET found 1 suffix)
  string(REGEX REPLACE "^[.]cpython-([0-9]+).*" "_C_\\1" target ${suffix})
  rl_add_extension(${target} ${headers} ${suffix})
  list(APPEND RL_EXTENSIONS ${target})
endforeach()

install(DIRECTORY ${RL_GENERATED_DIR}/package/ ${RL_GENERATED_DIR}/stubs/ DESTINATION . COMPONENT native)
install(DIRECTORY python/rushlight/ DESTINATION . COMPONENT python
  FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "*.json" PATTERN "*.bin" PATTERN "__pycache__" EXCLUDE)

rl_wheel_files(license nanobind /licenses/LICENSE)
if(license)
  rl_license(${license} nanobind.txt)
endif()
rl_license(${PROJECT_SOURCE_DIR}/cmake/licenses/robin_map.txt robin_map.txt)
rl_license(${PROJECT_SOURCE_DIR}/cmake/licenses/sobol.txt sobol.txt)
