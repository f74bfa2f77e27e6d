# Fails when a folder includes what it must not. Run with -DROOT=<source folder> -P.
# Every rule reads: files below the folder may include only the listed prefixes of our own tree.
set(rules
  "sim/units=sim/units/"
  "sim/config=sim/units/|sim/config/"
  "sim/graph=sim/units/|sim/graph/"
  "sim/results=sim/units/|sim/results/"
  "sim/kernel=sim/units/|sim/kernel/"
  "sim/machine=sim/units/|sim/config/|sim/graph/|sim/machine/"
  "sim/network=sim/units/|sim/graph/|sim/kernel/|sim/network/"
  "sim/replay=sim/units/|sim/graph/|sim/kernel/|sim/results/|sim/network/|sim/replay/"
  "models=sim/units/|sim/config/|sim/graph/|sim/machine/|models/"
  "workloads=sim/units/|sim/config/|sim/graph/|workloads/"
  "validation/calibration=sim/units/|sim/config/|sim/graph/|sim/machine/|sim/results/|models/|workloads/|validation/importers/|validation/calibration/"
  "validation/importers=sim/units/|sim/config/|sim/graph/|sim/results/|validation/importers/")
set(violations "")
set(checked 0)
foreach(rule IN LISTS rules)
  string(REGEX MATCH "^([^=]+)=(.+)$" _ "${rule}")
  set(folder ${CMAKE_MATCH_1})
  set(allowed ${CMAKE_MATCH_2})
  file(GLOB_RECURSE files "${ROOT}/${folder}/*.h" "${ROOT}/${folder}/*.cpp")
  foreach(file IN LISTS files)
    math(EXPR checked "${checked} + 1")
    file(STRINGS "${file}" includes REGEX "^#include \"")
    foreach(include IN LISTS includes)
      if(NOT include MATCHES "^#include \"(${allowed})")
        file(RELATIVE_PATH name "${ROOT}" "${file}")
        string(APPEND violations "  ${name}: ${include}\n")
      endif()
    endforeach()
    if(NOT folder STREQUAL "sim/kernel" AND NOT folder STREQUAL "sim/replay")
      file(STRINGS "${file}" systemc REGEX "^#include <systemc")
      if(systemc)
        file(RELATIVE_PATH name "${ROOT}" "${file}")
        string(APPEND violations "  ${name}: includes SystemC; only sim/kernel and sim/replay may\n")
      endif()
    endif()
  endforeach()
endforeach()

# Nobody includes a source: clang-tidy's own rule is off where it joins sources.
foreach(folder sim models workloads validation tests)
  file(GLOB_RECURSE files "${ROOT}/${folder}/*.h" "${ROOT}/${folder}/*.cpp")
  foreach(file IN LISTS files)
    file(STRINGS "${file}" includes REGEX "^#include .*\\.cpp[\">]")
    if(includes)
      file(RELATIVE_PATH name "${ROOT}" "${file}")
      string(APPEND violations "  ${name}: ${includes}\n")
    endif()
  endforeach()
endforeach()
if(checked EQUAL 0)
  message(FATAL_ERROR "no files found below ${ROOT}")
endif()
if(violations)
  message(FATAL_ERROR "layering violated:\n${violations}")
endif()
message(STATUS "layering holds in ${checked} files")
