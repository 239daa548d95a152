# The target cudnn, where cuDNN 9 or later is found: in the compiler's own paths, in the CUDA
# Toolkit, or in Python's packages (pip install nvidia-cudnn-cu13). -DCONVLADDER_CUDNN=OFF leaves it
# out.
option(CONVLADDER_CUDNN "Let bench time cuDNN beside the stages, where it is found" ON)
if(CONVLADDER_CUDNN)
  execute_process(
    COMMAND python3 -c "import nvidia.cudnn; print(nvidia.cudnn.__path__[0])"
    OUTPUT_VARIABLE pip_folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_path(CUDNN_INCLUDE_DIR cudnn_version.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDNN_ROOT}/include ${pip_folder}/include)
  find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9  # pip's has no other name
    HINTS ${CUDAToolkit_LIBRARY_DIR} ${CUDNN_ROOT}/lib ${pip_folder}/lib)
  set(version "")
  if(CUDNN_INCLUDE_DIR AND CUDNN_LIBRARY)
    file(READ "${CUDNN_INCLUDE_DIR}/cudnn_version.h" header)
    if(header MATCHES "define CUDNN_MAJOR ([0-9]+)")
      set(version "${CMAKE_MATCH_1}")
    endif()
  endif()
  if(version GREATER_EQUAL 9)
    add_library(cudnn INTERFACE)
    target_include_directories(cudnn SYSTEM INTERFACE "${CUDNN_INCLUDE_DIR}")
    target_link_libraries(cudnn INTERFACE "${CUDNN_LIBRARY}")
    message(STATUS "cuDNN ${version}: ${CUDNN_LIBRARY}")
  else()
    message(STATUS "cuDNN 9 or later not found: bench goes without it")
  endif()
endif()
