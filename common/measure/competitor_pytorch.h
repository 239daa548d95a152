// PyTorch as a competitor: a Python process that takes its turns when told to.
#pragma once

#include <string>
#include <vector>

#include "common/measure/competitor.h"

namespace convladder {

struct PyTorchSettings {
  // Speaks the protocol at the head of common/measure/time_pytorch.py.
  std::vector<std::string> command;
  double l2_bytes = 0;   // what twice as much written flushes
  double seconds = 180;  // for one answer: the search for the fastest algorithm can take long
};

// FP32 NCHW, TF32 NCHW (what PyTorch does by default) and TF32 NHWC, all three in one process, with
// random data of its own. Starts it, and throws std::runtime_error with the reason where PyTorch or
// its GPU is missing. A process that ends or hangs later is started anew, twice at most.
Competitors pytorch_competitors(const PyTorchSettings& settings);

}  // namespace convladder
