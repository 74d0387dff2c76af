# libjpeg-turbo, for rushlight.vision: an archive of it goes into the extension (Debian, Ubuntu: libjpeg-dev, which
# `./dev` installs where it may). Without one Pillow decodes JPEG files, to the same pixels in more time.
# rl_link_jpeg(TARGET) puts it into one.

set(RUSHLIGHT_JPEG AUTO CACHE STRING "JPEG files by libjpeg-turbo: AUTO (where its archive is found), ON or OFF")
if(RUSHLIGHT_JPEG)
  include(CheckCXXSourceCompiles)
  find_path(RL_JPEG_INCLUDE jpeglib.h)
  find_library(RL_JPEG_LIBRARY NAMES libjpeg.a)
  file(GLOB RL_JPEG_LICENSE /usr/share/doc/libjpeg62-turbo-dev/copyright /usr/share/doc/libjpeg-turbo8-dev/copyright)
  if(RL_JPEG_INCLUDE AND RL_JPEG_LIBRARY AND RL_JPEG_LICENSE)
    set(CMAKE_REQUIRED_INCLUDES ${RL_JPEG_INCLUDE})
    set(CMAKE_REQUIRED_LIBRARIES ${RL_JPEG_LIBRARY})
    set(CMAKE_REQUIRED_FLAGS -fPIC)
    set(CMAKE_REQUIRED_LINK_OPTIONS -shared -Wl,--exclude-libs,libjpeg.a)
    check_cxx_source_compiles("
      #include <stddef.h>
      #include <stdio.h>
      #include <jpeglib.h>
      int main() {
        jpeg_crop_scanline(nullptr, nullptr, nullptr);
        jpeg_mem_src(nullptr, nullptr, 0);
        jpeg_read_header(nullptr, TRUE);
        jpeg_start_decompress(nullptr);
        jpeg_read_scanlines(nullptr, nullptr, 0);
        return jpeg_skip_scanlines(nullptr, JCS_EXT_RGBX);
      }" RL_JPEG_IS_TURBO)
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_LIBRARIES)
    unset(CMAKE_REQUIRED_FLAGS)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
  endif()
  if(RL_JPEG_IS_TURBO)
    message(STATUS "JPEG: ${RL_JPEG_LIBRARY}")
    rl_license(${RL_JPEG_LICENSE} libjpeg_turbo.txt)
  elseif(RUSHLIGHT_JPEG STREQUAL "ON")
    message(FATAL_ERROR "libjpeg-turbo's archive is missing (Debian, Ubuntu: apt install libjpeg-dev)")
  else()
    message(STATUS "JPEG: by Pillow, more slowly (Debian, Ubuntu: apt install libjpeg-dev)")
  endif()
endif()

function(rl_link_jpeg target)
  if(RL_JPEG_IS_TURBO)
    target_include_directories(${target} SYSTEM PRIVATE ${RL_JPEG_INCLUDE})
    target_compile_definitions(${target} PRIVATE RL_HAVE_JPEG=1)
    # Its names stay inside: Pillow brings a library with the same ones.
    target_link_libraries(${target} PRIVATE ${RL_JPEG_LIBRARY})
    target_link_options(${target} PRIVATE -Wl,--exclude-libs,libjpeg.a)
  endif()
endfunction()
