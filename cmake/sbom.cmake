# The software bill of materials of the wheel (CycloneDX 1.6), installed in the folder `sboms` of its
# metadata as PEP 770 specifies. It lists what is compiled into the extension module besides our code.
# It has no time stamp and no random serial number, so that two builds give the same bytes.

# Add a component to the lists COMPONENTS and REFERENCES of the caller.
function(add_component NAME VERSION LICENSE PURL)
  set(COMPONENT "{\"type\": \"library\", \"bom-ref\": \"${NAME}\", \"name\": \"${NAME}\"")
  if(VERSION)
    string(APPEND COMPONENT ", \"version\": \"${VERSION}\"")
    set(PURL "${PURL}@${VERSION}")
  endif()
  string(APPEND COMPONENT ", \"licenses\": [${LICENSE}], \"purl\": \"${PURL}\"}")
  list(APPEND COMPONENTS "${COMPONENT}")
  list(APPEND REFERENCES "\"${NAME}\"")
  set(COMPONENTS "${COMPONENTS}" PARENT_SCOPE)
  set(REFERENCES "${REFERENCES}" PARENT_SCOPE)
endfunction()

set(COMPONENTS "")
set(REFERENCES "")
add_component(nanobind "${nanobind_VERSION}" "{\"license\": {\"id\": \"BSD-3-Clause\"}}" "pkg:pypi/nanobind")

# The hash map that nanobind includes. Distributions of nanobind may keep its headers elsewhere.
find_file(ROBIN_MAP robin_growth_policy.h HINTS ${NB_DIR}/ext/robin_map/include PATH_SUFFIXES tsl include/tsl)
set(ROBIN_MAP_VERSION "")
if(ROBIN_MAP)
  file(STRINGS ${ROBIN_MAP} LINES REGEX "define TSL_RH_VERSION_(MAJOR|MINOR|PATCH)")
  string(REGEX REPLACE "[^0-9;]" "" ROBIN_MAP_VERSION "${LINES}")
  list(JOIN ROBIN_MAP_VERSION "." ROBIN_MAP_VERSION)
endif()
add_component(robin-map "${ROBIN_MAP_VERSION}" "{\"license\": {\"id\": \"MIT\"}}" "pkg:github/Tessil/robin-map")

# zig links LLVM's C++ library and runtime statically. Other compilers use the libraries of the system.
get_filename_component(COMPILER ${CMAKE_CXX_COMPILER} NAME)
if(COMPILER MATCHES "^zig")
  add_component(llvm-libcxx "${CMAKE_CXX_COMPILER_VERSION}" "{\"expression\": \"Apache-2.0 WITH LLVM-exception\"}"
                "pkg:github/llvm/llvm-project")
endif()

list(JOIN COMPONENTS ",\n    " COMPONENTS)
list(JOIN REFERENCES ", " REFERENCES)
configure_file(${CMAKE_CURRENT_LIST_DIR}/sbom.cdx.json.in ${CMAKE_CURRENT_BINARY_DIR}/pairstep.cdx.json @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/pairstep.cdx.json DESTINATION ${SKBUILD_METADATA_DIR}/sboms)
