# convladder_add_stage(NAME SOURCE... [ARCHITECTURE A] [TF32]): a stage of the ladder. With TF32 its source
# registers NAME_tf32, too. With an ARCHITECTURE, such as 90a, its kernels are compiled for that alone.
#   stage_NAME  object library (an archive would drop the registration, which nothing refers to)
#   NAME        program with this stage alone, in bin/: `ncu bin/01_naive run --shape ...`
#   tests       the shared suite of every stage, under the CTest label NAME
# What links convladder_stages holds every stage.
add_library(convladder_stages INTERFACE)
function(convladder_add_stage name)
  cmake_parse_arguments(PARSE_ARGV 1 stage "TF32" "ARCHITECTURE" "")
  get_filename_component(folder "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  if(NOT name STREQUAL folder)
    message(FATAL_ERROR "${folder}/CMakeLists.txt makes the stage ${name}, not ${folder}. "
      "A copy of a stage needs its own name there, and in its .cu file's CONVLADDER_REGISTER_STAGE.")
  endif()
  string(LENGTH "${name}" letters)
  if(letters GREATER 100)  # which files of the build have in their names
    message(FATAL_ERROR "${name}: a stage's name has 100 letters at most")
  endif()
  set(sources ${stage_UNPARSED_ARGUMENTS})
  convladder_device_sources(${sources})
  add_library(stage_${name} OBJECT ${sources})
  if(stage_ARCHITECTURE)
    set_target_properties(stage_${name} PROPERTIES CUDA_ARCHITECTURES ${stage_ARCHITECTURE}-real)
  endif()
  target_link_libraries(stage_${name} PUBLIC convladder_core)
  # A program that has become a stage may have kept its own: it would take our programs' place.
  target_compile_definitions(stage_${name} PRIVATE main=main_of_${name})
  target_sources(convladder_stages INTERFACE $<TARGET_OBJECTS:stage_${name}>)

  add_executable(${name} $<TARGET_OBJECTS:stage_${name}>)
  target_link_libraries(${name} PRIVATE convladder_main)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  convladder_add_stage_tests(${name} "${stage_TF32}")
endfunction()

# .cu files are CUDA to nvcc, and to the simulator C++ when translate.py has been at them.
function(convladder_device_sources)
  if(CONVLADDER_BACKEND STREQUAL "sim")
    set_source_files_properties(${ARGN} PROPERTIES
      LANGUAGE CXX COMPILE_OPTIONS "-x;c++;${CONVLADDER_DEVICE_OPTIONS}" OBJECT_DEPENDS
      "${PROJECT_SOURCE_DIR}/common/simulator/translate.py;${PROJECT_SOURCE_DIR}/common/simulator/ptx.py")
  endif()
endfunction()

# How the simulator has kernels compiled: messages name lines (a last call too is called from its line), and
# assertions hold.
set(CONVLADDER_DEVICE_OPTIONS -gdwarf-4 -g1 -UNDEBUG -fno-optimize-sibling-calls)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND CONVLADDER_DEVICE_OPTIONS -Wno-unused-command-line-argument)  # of the translated source
endif()
if(CONVLADDER_COUNTING)  # docs/counting.md says why
  list(APPEND CONVLADDER_DEVICE_OPTIONS
    # the compiler calls a hook for every access and for every basic block
    -O1 -fsanitize=thread -fsanitize-coverage=trace-pc)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    list(APPEND CONVLADDER_DEVICE_OPTIONS
      -mllvm -tsan-instrument-func-entry-exit=0 -mllvm -tsan-distinguish-volatile=1
      -mllvm -tsan-instrument-read-before-write=1)
  else()
    list(APPEND CONVLADDER_DEVICE_OPTIONS
      --param=tsan-instrument-func-entry-exit=0 --param=tsan-distinguish-volatile=1
      # one access in the source is one in the code: none split, merged or duplicated; a loop that is unrolled
      # though nobody knows its length has other code for each lane's
      -fno-tree-sra -fno-thread-jumps -fno-reorder-blocks -fdisable-rtl-loop2_unroll
      # what nobody writes is read all the same: it may be the host's
      -fno-ipa-reference-addressable)
  endif()
endif()
