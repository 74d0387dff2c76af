# The Python extension rushlight._C: src/python and the generated bindings, on nanobind and the C API.

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
nanobind_add_module(_C NB_STATIC NOMINSIZE NB_DOMAIN rushlight ${python_sources} ${generated_python_sources})
target_link_libraries(_C PRIVATE rl_headers rushlight)
target_compile_definitions(_C PRIVATE PY_SSIZE_T_CLEAN)
rl_instrument(_C)
rl_precompile(_C <Python.h>)
# src/python/ending.cpp: what happens to threads that Python ends.
target_link_options(_C PRIVATE -Wl,--wrap=__gxx_personality_v0)
set_target_properties(_C PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/lib")
include(cmake/Jpeg.cmake)
# Types name the slots that they fill and leave out the others on purpose.
target_compile_options(_C PRIVATE -Wno-missing-field-initializers)
# nanobind's own sources are not ours to warn about.
target_compile_options(nanobind-static PRIVATE -w)

install(TARGETS _C LIBRARY DESTINATION . COMPONENT native)
install(DIRECTORY ${RL_GENERATED_DIR}/package/ ${RL_GENERATED_DIR}/stubs/ DESTINATION . COMPONENT native)
install(DIRECTORY python/rushlight/ DESTINATION . COMPONENT python
  FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "*.json" PATTERN "*.bin" PATTERN "__pycache__" EXCLUDE)

rl_wheel_files(license nanobind /licenses/LICENSE)
if(license)
  rl_license(${license} nanobind.txt)
endif()
rl_license(${PROJECT_SOURCE_DIR}/cmake/licenses/robin_map.txt robin_map.txt)
rl_license(${PROJECT_SOURCE_DIR}/cmake/licenses/sobol.txt sobol.txt)
