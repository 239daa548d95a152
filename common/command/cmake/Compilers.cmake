# Which compilers are used; before project(), which takes them from here.

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
if(CONVLADDER_BACKEND STREQUAL "gpu")
  set(names "$ENV{CUDACXX}")
  if(NOT names)
    set(names nvcc)
  endif()
  find_program(CONVLADDER_NVCC NAMES "${names}" NO_CACHE
    HINTS "$ENV{CUDA_PATH}" PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(CONVLADDER_NVCC)
    set(ENV{CUDACXX} "${CONVLADDER_NVCC}")
  else()
    set(CONVLADDER_NVCC "")
  endif()
endif()
if(CONVLADDER_NVCC AND NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE capabilities ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+[.][0-9]+" architectures "${capabilities}")
  string(REPLACE "." "" architectures "${architectures}")
  if(NOT architectures)
    execute_process(COMMAND "${CONVLADDER_NVCC}" --list-gpu-arch OUTPUT_VARIABLE supported ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+" supported "${supported}")
    if(NOT supported)
      message(FATAL_ERROR "${CONVLADDER_NVCC} is no nvcc: it lists no architectures")
    endif()
    list(SORT supported COMPARE NATURAL)
    list(GET supported 0 architectures)
  endif()
  list(REMOVE_DUPLICATES architectures)
  list(TRANSFORM architectures APPEND "-real")
  if(NOT capabilities AND "90" IN_LIST supported)
    list(APPEND architectures "90")  # with PTX, for whatever is newer
  endif()
  set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "CUDA architectures to build for")
endif()
