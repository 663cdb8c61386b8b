# Compile with Zig, which has the headers and libraries of every target. Set ZIG to its executable
# and ZIG_TARGET to a target such as x86_64-linux-gnu.2.28, where 2.28 is the version of glibc.
cmake_minimum_required(VERSION 3.21)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ZIG ZIG_TARGET)

string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "${ZIG_TARGET}")
if(ZIG_TARGET MATCHES "-linux-")
  set(CMAKE_SYSTEM_NAME Linux)
elseif(ZIG_TARGET MATCHES "-macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  # CMake would ask Xcode for these.
  set(CMAKE_OSX_SYSROOT "")
  set(CMAKE_OSX_DEPLOYMENT_TARGET "")
  set(CMAKE_OSX_ARCHITECTURES "")
  set(CMAKE_INSTALL_NAME_TOOL ${CMAKE_COMMAND})  # never called for a module
elseif(ZIG_TARGET MATCHES "-windows-")
  set(CMAKE_SYSTEM_NAME Windows)
else()
  message(FATAL_ERROR "Unknown target: ZIG_TARGET is '${ZIG_TARGET}'")
endif()

set(CMAKE_CXX_COMPILER ${ZIG} c++ -target ${ZIG_TARGET})
# Without this, Zig adds checks that end the process when they fail.
set(CMAKE_CXX_FLAGS_INIT "-fno-sanitize=undefined")
# Tests of the compiler do not link. Zig would first compile the C++ library for them, which takes
# minutes, and again for the module, whose options differ.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_CXX_COMPILER_ID Clang)
set(CMAKE_CXX_COMPILER_ID_RUN TRUE)
set(CMAKE_CXX_COMPILER_VERSION 22.1)
set(CMAKE_CXX_COMPILER_FRONTEND_VARIANT GNU)
set(CMAKE_CXX_STANDARD_COMPUTED_DEFAULT 17)
set(CMAKE_CXX_EXTENSIONS_COMPUTED_DEFAULT ON)
set(CMAKE_SKIP_RPATH TRUE)

# CMake expects programs, and these are subcommands of Zig.
foreach(TOOL ar ranlib rc)
  string(TOUPPER ${TOOL} NAME)
  set(SCRIPT ${CMAKE_BINARY_DIR}/zig-${TOOL})
  file(WRITE ${SCRIPT} "#!/bin/sh\nexec ${ZIG} ${TOOL} \"$@\"\n")
  file(CHMOD ${SCRIPT} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  set(CMAKE_${NAME} ${SCRIPT} CACHE FILEPATH "" FORCE)
endforeach()
set(CMAKE_RC_COMPILER ${CMAKE_RC})

# On macOS, nanobind passes a file to the linker that lists the functions of Python, which Zig does
# not read. Let all undefined functions be found at run time instead. Zig 0.17 crashes when it links
# a bundle, so make a library, which differs in the type in its header only.
if(CMAKE_SYSTEM_NAME STREQUAL Darwin)
  set(CMAKE_CXX_LINKER_LAUNCHER ${CMAKE_BINARY_DIR}/zig-link)
  file(WRITE ${CMAKE_CXX_LINKER_LAUNCHER} [=[#!/bin/sh
for argument do
  shift
  case $argument in
    -Wl,@*) argument=-Wl,-undefined,dynamic_lookup ;;
    -bundle) argument=-shared ;;
  esac
  set -- "$@" "$argument"
done
exec "$@"
]=])
  file(CHMOD ${CMAKE_CXX_LINKER_LAUNCHER} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endif()

# Programs come from this computer, headers and libraries only from the folders that are given.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
