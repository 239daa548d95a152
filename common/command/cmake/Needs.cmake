# What ConvLadder needs from a machine, and uses where it is there. What a build links is a target, or
# a variable below; nothing else in this project looks for anything.
include(Need)
find_package(Threads REQUIRED)

convladder_need("C++ compiler" g++ "builds everything" REQUIRED
  FOUND "${CMAKE_CXX_COMPILER}" DETAIL "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
convladder_need("CMake" cmake "configures the build" REQUIRED
  FOUND "${CMAKE_COMMAND}" DETAIL "${CMAKE_VERSION}")
convladder_need("ninja or make" make "runs the build" REQUIRED FOUND "${CMAKE_MAKE_PROGRAM}")

# Headers alone: nothing of them is linked. A machine without network can have them unpacked anywhere
# (dpkg -x), named by CMAKE_PREFIX_PATH.
add_library(convladder_headers INTERFACE)
target_compile_definitions(convladder_headers INTERFACE FMT_HEADER_ONLY)
function(convladder_need_header name package purpose header)
  find_path(path "${header}" NO_CACHE)
  set(found "")
  if(path)
    set(found "${path}/${header}")
    target_include_directories(convladder_headers SYSTEM INTERFACE "${path}")
  endif()
  convladder_need("${name}" "${package}" "${purpose}" REQUIRED FOUND "${found}" DETAIL "no header ${header}")
endfunction()
convladder_need_header("nlohmann-json" nlohmann-json3-dev "records" nlohmann/json.hpp)
convladder_need_header("CLI11" libcli11-dev "options" CLI/CLI.hpp)
convladder_need_header("fmt" libfmt-dev "text" fmt/format.h)
convladder_need_header("stb" libstb-dev "pictures" stb/stb_image_write.h)

if(CONVLADDER_BACKEND STREQUAL "sim")
  convladder_need("Boost.Context" libboost-context-dev "simulator: fibres, its CUDA threads" REQUIRED
    HEADER boost/context/fiber.hpp LIBRARIES boost_context boost_context-mt TARGET convladder_fibres
    CODE "return !boost::context::fiber([](boost::context::fiber&& f) { return std::move(f); });")
  convladder_need("CBLAS" libopenblas-dev "simulator: stands in for cuBLAS" REQUIRED
    HEADER cblas.h SUFFIXES openblas blis TARGET convladder_cblas
    LIBRARIES openblas cblas blas cblas+blas blis flexiblas mkl_rt
    CODE "float x = 1; cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 1, 1, 1, x, &x, 1, &x, 1, x, &x, 1);")
endif()
if(CONVLADDER_COUNTING)
  set(gnu "")
  set(remark "the compiler is ${CMAKE_CXX_COMPILER}, ${CMAKE_CXX_COMPILER_ID}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(gnu "${CMAKE_CXX_COMPILER}")
    set(remark "${CMAKE_CXX_COMPILER_VERSION}")
  endif()
  convladder_need("g++" g++ "simulator: its instrumentation counts" REQUIRED
    FOUND "${gnu}" DETAIL "${remark}")
endif()

convladder_need("GoogleTest" libgtest-dev "tests" OPTIONAL FOR test build bugs
  HEADER gtest/gtest.h LIBRARIES gtest_main+gtest TARGET GTest::gtest_main
  CODE "#include <gtest/gtest.h>\nint main(int n, char** words) { testing::InitGoogleTest(&n, words); return RUN_ALL_TESTS(); }")
convladder_need("Python 3" python3 "3.10 or later: tables, reports, and tests by scripts" OPTIONAL
  FOR run test profile bench report bugs variant sanitize diff exercise new PYTHON VARIABLE CONVLADDER_PYTHON)
set(sees_gpu "")
if(CONVLADDER_BACKEND STREQUAL "gpu")
  set(sees_gpu "assert torch.cuda.is_available(), 'PyTorch sees no GPU'")
endif()
convladder_need("PyTorch" "" "timed beside the stages; the stages as its module" OPTIONAL
  REMEDY "pip install torch" PYTHON torch CODE "${sees_gpu}" VARIABLE CONVLADDER_TORCH_PYTHON)
# ---- For a GPU; none of it is ever installed -----------------------------------------------------------

set(gpu "")
set(remark "no nvidia-smi that lists one, or CUDA_VISIBLE_DEVICES hides it")
set(on_gpu OPTIONAL)
if(CONVLADDER_GPUS)
  list(JOIN CONVLADDER_GPUS " | " gpu)
  set(remark "")
endif()
convladder_need("GPU and driver" "" "GPU backend" OPTIONAL FOUND "${gpu}" DETAIL "${remark}"
  REMEDY "an NVIDIA GPU, and NVIDIA's driver for it")
if(CONVLADDER_BACKEND STREQUAL "gpu")
  set(on_gpu REQUIRED)
endif()
convladder_need("nvcc" "" "builds the GPU backend" ${on_gpu} FOUND "${CONVLADDER_NVCC}"
  DETAIL "${CMAKE_CUDA_COMPILER_VERSION}" REMEDY "NVIDIA's CUDA Toolkit; in PATH, or set CUDACXX")
get_filename_component(cuda_bin "${CONVLADDER_NVCC}" DIRECTORY)
convladder_need("ncu" "" "profile: reads a GPU's memory counters" OPTIONAL
  PROGRAMS ncu HINTS "${cuda_bin}" REMEDY "Nsight Compute, part of the CUDA Toolkit")
convladder_need("compute-sanitizer" "" "sanitize: stray accesses and races on a GPU" OPTIONAL
  PROGRAMS compute-sanitizer HINTS "${cuda_bin}" REMEDY "part of the CUDA Toolkit")

# The driver opens its counters to everybody, or to those with CAP_SYS_ADMIN (bit 21).
set(access "")
set(remark "no driver")
if(EXISTS /proc/driver/nvidia/params)
  set(remark "the driver keeps them for the administrator")
  file(STRINGS /proc/driver/nvidia/params open REGEX "RmProfilingAdminOnly: 0")
  file(STRINGS /proc/self/status capabilities REGEX "^CapEff:")
  string(REGEX REPLACE "CapEff:[ \t]*" "0x" capabilities "${capabilities}")
  math(EXPR administrator "${capabilities} >> 21 & 1")
  if(open)
    set(access "everybody")
  elseif(administrator)
    set(access "the administrator")
  endif()
endif()
convladder_need("counter access" "" "lets ncu read them" OPTIONAL FOUND "${access}" DETAIL "${remark}"
  REMEDY "be root, or NVreg_RestrictProfilingToAdminUsers=0 for the driver (docs/profiling.md)")

if(CONVLADDER_BACKEND STREQUAL "gpu" AND CONVLADDER_NVCC)
  find_package(CUDAToolkit QUIET)
  convladder_need("cuBLAS" "" "stage 02" REQUIRED REMEDY "part of the CUDA Toolkit"
    HEADER cublas_v2.h LIBRARIES cublas+cublasLt TARGET convladder_cublas
    HINTS ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_DIR}
    CODE "cublasHandle_t handle; return cublasCreate(&handle);")
  option(CONVLADDER_CUDNN "Let bench time cuDNN beside the stages, where it is found" ON)
  if(CONVLADDER_CUDNN)
    set(pip "")
    foreach(python ${CONVLADDER_TORCH_PYTHON} ${CONVLADDER_PYTHON})
      execute_process(COMMAND "${python}" -c "import nvidia.cudnn as c; print(list(c.__path__)[0])"
        OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
      list(APPEND pip "${folder}")
    endforeach()
    convladder_need("cuDNN" "" "9 or later: timed beside the stages" OPTIONAL RUN
      REMEDY "NVIDIA's cuDNN, or pip install nvidia-cudnn-cu13"
      HEADER cudnn_version.h LIBRARIES cudnn libcudnn.so.9 TARGET cudnn
      HINTS ${CUDNN_ROOT} ${CUDAToolkit_INCLUDE_DIRS} ${CUDAToolkit_LIBRARY_DIR} ${pip}
      CODE "#include <cstdio>
#include <cudnn_version.h>
extern \"C\" std::size_t cudnnGetVersion(void);
int main() {
  std::printf(\"header %d, library %zu\", int(CUDNN_VERSION), cudnnGetVersion());
  return CUDNN_MAJOR < 9 || cudnnGetVersion() / 10000 != CUDNN_MAJOR;
}")
  endif()
endif()

convladder_settle_needs()
