// What launches ask for, as records have it.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "common/simulator/counts.h"

namespace convladder::simulator {

using Json = nlohmann::ordered_json;

// The launches of one kernel; equal ones that follow each other stand once, with how many times. `first`, if it is
// among them, is marked: it alone begins with a cold L2.
Json work_json(const std::vector<const LaunchWork*>& launches, const LaunchWork* first);

}  // namespace convladder::simulator
