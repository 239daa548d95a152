# The default CUDA architectures, chosen before CUDA is enabled as a language (CMake fixes a default
# of its own there): those of the GPUs in this machine; with no GPU, the oldest that this nvcc
# supports and sm_90. -DCMAKE_CUDA_ARCHITECTURES=... overrides.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  find_program(CONVLADDER_NVIDIA_SMI nvidia-smi)
  set(architectures "")
  if(CONVLADDER_NVIDIA_SMI)
    execute_process(
      COMMAND "${CONVLADDER_NVIDIA_SMI}" --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE capabilities ERROR_QUIET RESULT_VARIABLE status)
    if(status EQUAL 0)
      string(REGEX MATCHALL "[0-9]+\\.[0-9]+" capabilities "${capabilities}")
      foreach(capability IN LISTS capabilities)
        string(REPLACE "." "" architecture "${capability}")
        list(APPEND architectures "${architecture}-real")
      endforeach()
      list(REMOVE_DUPLICATES architectures)
    endif()
  endif()

  if(NOT architectures)
    find_program(CONVLADDER_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
    if(CONVLADDER_NVCC)
      execute_process(COMMAND "${CONVLADDER_NVCC}" --list-gpu-arch
        OUTPUT_VARIABLE supported ERROR_QUIET)
      string(REGEX MATCHALL "compute_[0-9]+" supported "${supported}")
      list(TRANSFORM supported REPLACE "compute_" "")
      list(SORT supported COMPARE NATURAL)
      list(GET supported 0 oldest)
      set(architectures "${oldest}-real")
      if("90" IN_LIST supported)
        list(APPEND architectures "90")  # with PTX, for whatever is newer
      endif()
      list(REMOVE_DUPLICATES architectures)
    endif()
  endif()

  if(architectures)
    set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "CUDA architectures to build for")
  endif()
endif()
