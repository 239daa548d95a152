// Of the driver API there is nothing: programs include its header without need, for what the runtime's brings.
#pragma once
#include <cuda_runtime.h>
#define CUDA_VERSION CUDART_VERSION
