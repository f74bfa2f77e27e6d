# Debian ships libsystemc with systemc.pc but without a CMake package.
# Its library was built as C++17: SC_CPLUSPLUS keeps the ABI check linking from a C++20 program.
find_path(SystemC_INCLUDE_DIR systemc)
find_library(SystemC_LIBRARY systemc)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SystemC DEFAULT_MSG SystemC_LIBRARY SystemC_INCLUDE_DIR)
if(SystemC_FOUND AND NOT TARGET SystemC::SystemC)
  add_library(SystemC::SystemC UNKNOWN IMPORTED)
  set_target_properties(SystemC::SystemC PROPERTIES
    IMPORTED_LOCATION "${SystemC_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${SystemC_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS "SC_CPLUSPLUS=201703L")
endif()
