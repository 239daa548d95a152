# Which GPUs and which nvcc this machine has. Run as a script, `cmake -P Gpus.cmake`, it prints a line
# for each to stderr: "gpu NAME, driver VERSION, compute CAPABILITY" and "nvcc PATH".

# convladder_find_gpus(OUT): a list of such descriptions, empty where CUDA programs see no GPU:
# nvidia-smi lists them all, whatever CUDA_VISIBLE_DEVICES hides.
function(convladder_find_gpus out)
  set(${out} "" PARENT_SCOPE)
  find_program(smi nvidia-smi NO_CACHE)
  if(NOT smi)
    return()
  endif()
  execute_process(COMMAND "${smi}" -L OUTPUT_VARIABLE listed ERROR_QUIET)
  execute_process(COMMAND "${smi}" --query-gpu=name,driver_version,compute_cap --format=csv,noheader
    OUTPUT_VARIABLE lines ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT listed MATCHES "GPU 0:")
    return()
  endif()
  string(REGEX REPLACE "([^,\n]+), ([^,\n]+), ([^,\n]+)" "\\1, driver \\2, compute \\3" lines "${lines}")
  string(REPLACE "\n" ";" gpus "${lines}")
  if(DEFINED ENV{CUDA_VISIBLE_DEVICES})
    # Indices, or beginnings of a UUID; CUDA stops at the first that names no GPU.
    string(REGEX REPLACE ",.*" "" first "$ENV{CUDA_VISIBLE_DEVICES}")
    string(STRIP "${first}" first)
    list(LENGTH gpus count)
    if(first MATCHES "^[0-9]+$")
      if(NOT first LESS count)
        return()
      endif()
    elseif(NOT first MATCHES "^(GPU|MIG)-" OR NOT listed MATCHES "UUID: ${first}")
      return()
    endif()
  endif()
  set(${out} "${gpus}" PARENT_SCOPE)
endfunction()

# convladder_find_nvcc(OUT): its path, or empty. CUDACXX names the program itself; otherwise it is
# looked for in PATH and in the CUDA Toolkit's usual folder.
function(convladder_find_nvcc out)
  set(${out} "" PARENT_SCOPE)
  if(DEFINED ENV{CUDACXX} AND NOT "$ENV{CUDACXX}" STREQUAL "")
    find_program(nvcc NAMES "$ENV{CUDACXX}" NO_CACHE)
  else()
    find_program(nvcc nvcc HINTS "$ENV{CUDA_PATH}" PATHS /usr/local/cuda PATH_SUFFIXES bin NO_CACHE)
  endif()
  if(nvcc AND NOT IS_DIRECTORY "${nvcc}")
    set(${out} "${nvcc}" PARENT_SCOPE)
  endif()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  convladder_find_gpus(gpus)
  foreach(gpu IN LISTS gpus)
    message(NOTICE "gpu ${gpu}")
  endforeach()
  convladder_find_nvcc(nvcc)
  if(nvcc)
    message(NOTICE "nvcc ${nvcc}")
  endif()
endif()
