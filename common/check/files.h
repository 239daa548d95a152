// Files that appear under their name only when they are complete, and JSON in them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace convladder {

using Json = nlohmann::ordered_json;  // keys in the order given; NaN and infinity become null

// A number as JSON: without a point where it is whole, as counts are.
Json number(double value);

// The bytes in a file that is to be read. Refuses what has no end, or would be waited for: pipes and devices.
uint64_t size_to_read(const std::string& path);

// Writes beside `path`, then renames; where `path` is a symbolic link, its target is written. Throw
// std::runtime_error naming the file and the reason, as all functions here do.
void write_file(const std::string& path, const std::vector<std::string_view>& parts);
// Each member of an object, and each item of an array, begins a line.
void write_json(const std::string& path, const Json& value);

// Throws as write_file() would, and changes nothing: for commands that work for minutes before they
// write.
void require_writable(const std::string& path);

}  // namespace convladder
