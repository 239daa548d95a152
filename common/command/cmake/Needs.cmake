# What ConvLadder needs from a machine, and uses where it is there. Everything is looked for here, by
# CMake's own means, anew each time that it configures. What a build links is a target or a variable.
#
# convladder_need(NAME "path or other finding, empty where it is missing" FOR "what it does here"
#                 [DETAIL text] PACKAGE name | REMEDY text  REQUIRED | USED_BY command...)
#
# adds a line to build/<preset>/needs.tsv, which ./ladder reads: `doctor` shows it, and the commands
# install, by its Debian package, what they use. Without what is REQUIRED there is no configuration.
# (./ladder reads PACKAGE, REQUIRED and USED_BY in this file, too, before there is a CMake: one line each.)
set(CONVLADDER_NEEDS "")
set(CONVLADDER_LACKS "")
function(convladder_need name found)
  cmake_parse_arguments(PARSE_ARGV 2 need "REQUIRED" "FOR;DETAIL;PACKAGE;REMEDY" "USED_BY")
  if(need_PACKAGE)
    set(need_REMEDY "apt-get install ${need_PACKAGE}")
  endif()
  set(verdict found)
  if(NOT found)
    set(verdict missing)
    if(need_REQUIRED)
      set(CONVLADDER_LACKS "${CONVLADDER_LACKS}\n  ${name}: ${need_REMEDY}" PARENT_SCOPE)
    endif()
  endif()
  if(need_REQUIRED)
    set(need_USED_BY "*")
  endif()
  string(JOIN "\t" line "${verdict}" "${name}" "${need_USED_BY}" "${need_PACKAGE}" "${need_REMEDY}"
    "${need_FOR}" "${found}" "${need_DETAIL}")
  string(REGEX REPLACE "[\r\n]+" " " line "${line}")
  set(CONVLADDER_NEEDS "${CONVLADDER_NEEDS}${line}\n" PARENT_SCOPE)
endfunction()

# Where the compiler itself looks because of its environment.
string(REPLACE ":" ";" CMAKE_INCLUDE_PATH "$ENV{CPATH}:$ENV{CPLUS_INCLUDE_PATH}")
string(REPLACE ":" ";" CMAKE_LIBRARY_PATH "$ENV{LIBRARY_PATH}")

find_package(Threads REQUIRED)
convladder_need("C++ compiler" "${CMAKE_CXX_COMPILER}" FOR "builds everything" PACKAGE g++ REQUIRED
  DETAIL "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
convladder_need("CMake" "${CMAKE_COMMAND}" FOR "configures the build" PACKAGE cmake REQUIRED
  DETAIL "${CMAKE_VERSION}")
convladder_need("ninja or make" "${CMAKE_MAKE_PROGRAM}" FOR "runs the build" PACKAGE make REQUIRED)
find_package(Python3 3.10 QUIET COMPONENTS Interpreter)
set(CONVLADDER_PYTHON "${Python3_EXECUTABLE}")
convladder_need("Python 3" "${CONVLADDER_PYTHON}" FOR "./ladder, tables, tests" PACKAGE python3 REQUIRED
  DETAIL "${Python3_VERSION}")

# Headers alone: nothing of them is linked. A machine without network can have them unpacked anywhere
# (dpkg -x), named by CMAKE_PREFIX_PATH.
add_library(convladder_headers INTERFACE)
target_compile_definitions(convladder_headers INTERFACE FMT_HEADER_ONLY)
function(convladder_need_header name header)
  find_path(folder "${header}" NO_CACHE)
  set(path "")
  if(folder)
    cmake_path(APPEND path "${folder}" "${header}")
    target_include_directories(convladder_headers SYSTEM INTERFACE "${folder}")
  endif()
  convladder_need("${name}" "${path}" ${ARGN})
  set(CONVLADDER_NEEDS "${CONVLADDER_NEEDS}" PARENT_SCOPE)
  set(CONVLADDER_LACKS "${CONVLADDER_LACKS}" PARENT_SCOPE)
endfunction()
convladder_need_header("nlohmann-json" nlohmann/json.hpp FOR "records" PACKAGE nlohmann-json3-dev REQUIRED)
convladder_need_header("CLI11" CLI/CLI.hpp FOR "options" PACKAGE libcli11-dev REQUIRED)
convladder_need_header("fmt" fmt/format.h FOR "text" PACKAGE libfmt-dev REQUIRED)
convladder_need_header("stb" stb/stb_image_write.h FOR "pictures" PACKAGE libstb-dev REQUIRED)

# ---- For the simulator -----------------------------------------------------------------------------

if(CONVLADDER_BACKEND STREQUAL "sim")
  if(POLICY CMP0167)
    cmake_policy(SET CMP0167 NEW)  # Boost's own configuration, not CMake's module
  endif()
  find_package(Boost QUIET COMPONENTS context)
  set(found "")
  if(TARGET Boost::context)
    set(found "${Boost_INCLUDE_DIRS}/boost/context/fiber.hpp")
  endif()
  convladder_need("Boost.Context" "${found}" FOR "simulator: fibres, its CUDA threads"
    DETAIL "${Boost_VERSION_STRING}" PACKAGE libboost-context-dev REQUIRED)

  # CMake's FindBLAS knows nothing of C's interface, which not every libblas has.
  find_path(cblas cblas.h PATH_SUFFIXES openblas blis NO_CACHE)
  set(found "")
  foreach(name openblas blas cblas blis flexiblas mkl_rt)
    unset(library)
    find_library(library ${name} PATH_SUFFIXES openblas blis NO_CACHE)
    if(cblas AND library)
      set(code "#include <cblas.h>\nint main() { return int(cblas_sdot(0, nullptr, 1, nullptr, 1)); }\n")
      try_compile(works SOURCE_FROM_VAR cblas.cpp code CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${cblas}"
        LINK_LIBRARIES "${library}" Threads::Threads NO_CACHE)
      if(works)
        set(found "${library}")
        add_library(convladder_cblas INTERFACE IMPORTED GLOBAL)
        target_include_directories(convladder_cblas INTERFACE "${cblas}")
        target_link_libraries(convladder_cblas INTERFACE "${library}")
        break()
      endif()
    endif()
  endforeach()
  convladder_need("CBLAS" "${found}" FOR "simulator: stands in for cuBLAS" PACKAGE libopenblas-dev REQUIRED)
endif()
if(CONVLADDER_COUNTING)
  set(found "")
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND NOT APPLE)
    set(found "${CMAKE_CXX_COMPILER}")
  endif()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(WARNING "Clang finds races and stray accesses, but counts other accesses than g++ and nvcc")
  endif()
  convladder_need("g++" "${found}" FOR "simulator: its instrumentation counts" PACKAGE g++ REQUIRED)
endif()

# ---- For tests, and what is timed beside the stages ------------------------------------------------

find_package(GTest QUIET)
set(found "")
if(TARGET GTest::gtest_main)
  set(found "${GTest_DIR}")
endif()
convladder_need("GoogleTest" "${found}" FOR "tests" DETAIL "${GTest_VERSION}" PACKAGE libgtest-dev USED_BY test build bugs)

set(sees_gpu "")
if(CONVLADDER_BACKEND STREQUAL "gpu")
  set(sees_gpu "import torch; assert torch.cuda.is_available(), 'it sees no GPU'; ")
endif()
execute_process(COMMAND "${CONVLADDER_PYTHON}" -B -c
    "import importlib.metadata as m; v = m.version('torch'); ${sees_gpu}print(v, end='')"
  OUTPUT_VARIABLE version ERROR_QUIET)
convladder_need("PyTorch" "${version}" FOR "timed beside the stages; the stages as its module"
  REMEDY "pip install torch, for that Python" USED_BY bench)

# ---- For a GPU; none of it is ever installed -------------------------------------------------------

if(CONVLADDER_BACKEND STREQUAL "gpu")
  convladder_need("nvcc" "${CONVLADDER_NVCC}" FOR "builds the GPU backend" REQUIRED
    DETAIL "${CMAKE_CUDA_COMPILER_VERSION}" REMEDY "NVIDIA's CUDA Toolkit; in PATH, or set CUDACXX")
  if(CONVLADDER_NVCC)
    find_package(CUDAToolkit QUIET)
  endif()
  convladder_need("cuBLAS" "${CUDA_cublas_LIBRARY}" FOR "stage 02" REMEDY "part of the CUDA Toolkit" REQUIRED)
  option(CONVLADDER_CUDNN "Let bench time cuDNN beside the stages, where it is found" ON)
  if(CONVLADDER_CUDNN)
    execute_process(COMMAND "${CONVLADDER_PYTHON}" -B -c "import nvidia.cudnn as c; print(list(c.__path__)[0], end='')"
      OUTPUT_VARIABLE pip ERROR_QUIET)
    set(hints ${CUDNN_ROOT} ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_DIR} ${pip})
    find_path(header cudnn_version.h HINTS ${hints} PATH_SUFFIXES include NO_CACHE)
    find_library(library NAMES cudnn libcudnn.so.9 HINTS ${hints} PATH_SUFFIXES lib lib64 NO_CACHE)
    set(found "")
    set(version "")
    if(header AND library)
      file(STRINGS "${header}/cudnn_version.h" version REGEX "define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
      string(REGEX REPLACE "[^;]* ([0-9]+)" "\\1" version "${version}")
      string(REPLACE ";" "." version "${version}")
      file(REAL_PATH "${library}" real)
      string(REGEX MATCH "^[0-9]+" major "${version}")
      if(version VERSION_GREATER_EQUAL 9 AND real MATCHES "[.]so[.]${major}([.]|$)")
        set(found "${library}")  # header and library of one major version
        add_library(cudnn INTERFACE IMPORTED GLOBAL)
        target_include_directories(cudnn INTERFACE "${header}")
        target_link_libraries(cudnn INTERFACE "${library}")
      endif()
    endif()
    convladder_need("cuDNN" "${found}" FOR "9 or later: timed beside the stages" DETAIL "${version}"
      REMEDY "NVIDIA's cuDNN, or pip install nvidia-cudnn-cu13" USED_BY bench)
  endif()
endif()

file(WRITE "${CMAKE_BINARY_DIR}/needs.tsv"
  "verdict\tname\tcommands\tpackage\tremedy\tpurpose\tfound\tdetail\n${CONVLADDER_NEEDS}")
if(CONVLADDER_LACKS)
  message(FATAL_ERROR "This is missing here; get it:${CONVLADDER_LACKS}")
endif()
