# Warnings, determinism flags and sanitizers that every target of ours is built with.
function(orrery_options target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror
    $<$<CXX_COMPILER_ID:Clang>:-Wreserved-identifier>
    -ffp-contract=off
    # g++ 12 sees overlaps and uninitialised bytes in inlined std::string that are not there (GCC bugs 105651, 105562).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(ORRERY_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${ORRERY_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${ORRERY_SANITIZE})
  endif()
  if(ORRERY_COVERAGE)
    target_compile_options(${target} PRIVATE --coverage)
    target_link_options(${target} PRIVATE --coverage)
  endif()
endfunction()

# orrery_layer(name FOLDERS dir... [LAYERS layer...] [PACKAGES target...] [PRECOMPILED header...] [APART file...]
# [LINKED_WHOLE] [COLD] ABOUT text): one library for all sources below the folders, linked to the layers below it;
# write_layers() lists them. PRECOMPILED names what most sources include and what takes seconds to read; they include it
# all the same (clang-tidy reads them without). Presets that build everything join 48 or 64 files to one
# (CMAKE_UNITY_BUILD), which reads their headers once; APART are regular expressions of files that call their own what
# others do, and stay alone. LINKED_WHOLE layers are object libraries, because a static library drops the files that
# nothing refers to: those that only register themselves, and the sc_main that libsystemc asks for. COLD layers mostly
# call other layers: -O1 builds them in two thirds of the time of -O2, and sweeps take about 5 % longer. With sanitizers
# they are not optimised (-O0), which builds in a third.
function(orrery_layer name)
  cmake_parse_arguments(layer "LINKED_WHOLE;COLD" "ABOUT" "FOLDERS;LAYERS;PACKAGES;PRECOMPILED;APART" ${ARGN})
  note_layer()
  list(TRANSFORM layer_FOLDERS PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE folders)
  list(TRANSFORM folders APPEND /*.cpp)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folders})
  list(FILTER sources EXCLUDE REGEX "/sim/app/cli/main\\.cpp$")
  foreach(pattern IN LISTS layer_APART)
    set(apart ${sources})
    list(FILTER apart INCLUDE REGEX "/${pattern}$")
    set_source_files_properties(${apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
  list(TRANSFORM layer_LAYERS PREPEND orrery_)
  set(target orrery_${name})
  if(NOT sources)
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  elseif(layer_LINKED_WHOLE)
    add_library(${target}_objects OBJECT ${sources})
    target_include_directories(${target}_objects PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(${target}_objects PUBLIC ${layer_LAYERS} ${layer_PACKAGES})
    orrery_options(${target}_objects)
    target_precompile_headers(${target}_objects PRIVATE ${layer_PRECOMPILED})
    add_library(${target} INTERFACE)
    # With g++, CMake counts the precompiled header among the objects.
    target_link_libraries(${target} INTERFACE $<FILTER:$<TARGET_OBJECTS:${target}_objects>,EXCLUDE,cmake_pch>)
    set(scope INTERFACE)
  else()
    add_library(${target} STATIC ${sources})
    set(scope PUBLIC)
    orrery_options(${target})
    target_precompile_headers(${target} PRIVATE ${layer_PRECOMPILED})
  endif()
  set(compiled ${target})
  if(layer_LINKED_WHOLE)
    set(compiled ${target}_objects)
  endif()
  if(layer_COLD AND sources)
    if(ORRERY_SANITIZE)
      target_compile_options(${compiled} PRIVATE -O0)
    else()
      target_compile_options(${compiled} PRIVATE $<$<CONFIG:Release>:-O1>)
    endif()
  endif()
  target_include_directories(${target} ${scope} ${CMAKE_SOURCE_DIR})
  target_link_libraries(${target} ${scope} ${layer_LAYERS} ${layer_PACKAGES})
endfunction()

# Remembers what the layer of the caller may include: its own folders and those of all layers below it.
macro(note_layer)
  set(own ${layer_FOLDERS})
  set(below "")
  foreach(lower IN LISTS layer_LAYERS)
    get_property(lower_folders GLOBAL PROPERTY orrery_folders_${lower})
    list(APPEND below ${lower_folders})
  endforeach()
  list(REMOVE_DUPLICATES below)
  set_property(GLOBAL PROPERTY orrery_folders_${name} ${below} ${own})
  list(JOIN own " " own)
  list(JOIN below " " below)
  list(JOIN layer_LAYERS ", " direct)
  set_property(GLOBAL APPEND PROPERTY orrery_layers "${name}|${own}|${below}|${direct}|${layer_ABOUT}")
endmacro()

# Writes layers.txt into the build folder, a line a layer: name|folders|folders below|layers below|about.
function(write_layers)
  get_property(layers GLOBAL PROPERTY orrery_layers)
  list(JOIN layers "\n" text)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/layers.txt CONTENT "${text}\n" @ONLY)
endfunction()
