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

# -O0 and -g0 below matter only for Zig itself: without them it adds checks that abort the process.
set(CMAKE_CXX_COMPILER ${ZIG} c++ -target ${ZIG_TARGET})
set(CMAKE_CXX_COMPILER_TARGET "")
set(CMAKE_CXX_FLAGS_INIT "-fno-sanitize=undefined")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-s")
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-Wl,-s")

# `zig ar` is a subcommand, and CMake expects a program.
set(CMAKE_AR ${ZIG} CACHE FILEPATH "")
set(CMAKE_RANLIB ${ZIG} CACHE FILEPATH "")
foreach(NAME AR RANLIB)
  set(CMAKE_CXX_COMPILER_${NAME} ${ZIG} CACHE FILEPATH "")
endforeach()
set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> ar qc <TARGET> <LINK_FLAGS> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> ar q <TARGET> <LINK_FLAGS> <OBJECTS>")
set(CMAKE_CXX_ARCHIVE_FINISH "<CMAKE_RANLIB> ranlib <TARGET>")

# Programs come from this computer, headers and libraries only from the folders that are given.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
