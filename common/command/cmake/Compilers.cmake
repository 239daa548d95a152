# Which compilers are used; before project(), which takes them from here.
include(Gpus)

# What a configuration that failed has found must not decide this one: neither its compilers, which
# may have been put right since, nor what CMake has learned of them. The same where one is gone.
set(CONVLADDER_UNFINISHED "${CMAKE_BINARY_DIR}/unfinished")
set(gone "")
foreach(language CXX CUDA)
  if(CMAKE_${language}_COMPILER AND IS_ABSOLUTE "${CMAKE_${language}_COMPILER}"
      AND NOT EXISTS "${CMAKE_${language}_COMPILER}")
    set(gone "${CMAKE_${language}_COMPILER}")
  endif()
endforeach()
if(EXISTS "${CONVLADDER_UNFINISHED}" OR gone)
  file(REMOVE_RECURSE "${CMAKE_BINARY_DIR}/CMakeFiles/${CMAKE_VERSION}")
  foreach(language CXX CUDA)
    get_property(help CACHE CMAKE_${language}_COMPILER PROPERTY HELPSTRING)
    if(help STREQUAL "${language} compiler")  # found, not given with -D
      unset(CMAKE_${language}_COMPILER CACHE)
    endif()
  endforeach()
endif()
file(WRITE "${CONVLADDER_UNFINISHED}" "")  # removed at the end

# Only g++ has the instrumentation that counts. CXX may be another: sim takes any compiler.
if(CONVLADDER_COUNTING AND NOT CMAKE_CXX_COMPILER)
  foreach(candidate "$ENV{CXX}" c++ g++ g++-15 g++-14 g++-13 g++-12 g++-11)
    unset(compiler)
    find_program(compiler NAMES "${candidate}" NO_CACHE)
    if(compiler)
      execute_process(COMMAND "${compiler}" -dM -E -x c++ /dev/null
        OUTPUT_VARIABLE macros ERROR_QUIET)
      if(macros MATCHES "__GNUC__" AND NOT macros MATCHES "__clang__")
        set(CMAKE_CXX_COMPILER "${compiler}" CACHE FILEPATH "CXX compiler")
        break()
      endif()
    endif()
  endforeach()
endif()

# nvcc, and its default architectures, chosen before CUDA is enabled as a language (CMake fixes a
# default of its own there): those of the GPUs in this machine; with no GPU, the oldest that this nvcc
# supports and sm_90. -DCMAKE_CUDA_ARCHITECTURES=... overrides.
convladder_find_gpus(CONVLADDER_GPUS)
convladder_find_nvcc(CONVLADDER_NVCC)
if(CONVLADDER_BACKEND STREQUAL "gpu" AND CONVLADDER_NVCC)
  set(ENV{CUDACXX} "${CONVLADDER_NVCC}")
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
    set(architectures "")
    foreach(gpu IN LISTS CONVLADDER_GPUS)
      if(gpu MATCHES "compute ([0-9]+)\\.([0-9]+)$")
        list(APPEND architectures "${CMAKE_MATCH_1}${CMAKE_MATCH_2}-real")
      endif()
    endforeach()
    if(NOT architectures)
      execute_process(COMMAND "${CONVLADDER_NVCC}" --list-gpu-arch
        OUTPUT_VARIABLE supported ERROR_QUIET)
      string(REGEX MATCHALL "compute_[0-9]+" supported "${supported}")
      list(TRANSFORM supported REPLACE "compute_" "")
      list(SORT supported COMPARE NATURAL)
      if(supported)
        list(GET supported 0 oldest)
        set(architectures "${oldest}-real")
      endif()
      if("90" IN_LIST supported)
        list(APPEND architectures "90")  # with PTX, for whatever is newer
      endif()
    endif()
    if(architectures)
      list(REMOVE_DUPLICATES architectures)
      set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "CUDA architectures to build for")
    endif()
  endif()
endif()
